// How many registers a basic block needs when its instructions stay in their order.
#pragma once

#include <cstddef>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/BasicBlock.h>

namespace polder::compiler {

// The largest number of registers that are occupied at once. `registers_for`: those of one value.
[[nodiscard]] size_t registers_alive(const llvm::BasicBlock& block,
                                     llvm::function_ref<size_t(const llvm::Value&)> registers_for);

}  // namespace polder::compiler
