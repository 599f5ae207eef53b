// LLVM's passes for code of Effort::quick: hardly any. Launches with little work take less time than the passes that they would need to be faster.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <polder/result.h>

namespace polder::compiler {

[[nodiscard]] Result<void> optimize_quickly(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace polder::compiler
