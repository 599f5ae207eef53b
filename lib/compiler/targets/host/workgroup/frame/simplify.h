// LLVM's scalar passes over one function, before the work-item loops are formed, and the analyses of LLVM's passes.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/PassManager.h>

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace polder::compiler::workgroup {

// Changes an inlined body to SSA form with reducible control flow and canonical loops. Barriers do not move.
void simplify_body(llvm::Function& function, llvm::TargetMachine* target);

// Calls `use` with the analyses of LLVM's passes.
void with_analyses(llvm::TargetMachine* target, llvm::function_ref<void(llvm::FunctionAnalysisManager&)> use);

} // namespace polder::compiler::workgroup
