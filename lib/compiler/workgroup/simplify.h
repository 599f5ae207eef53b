// LLVM's scalar passes over one function, before and after the work-item loops are formed.
#pragma once

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace polder::compiler::workgroup {

// Brings an inlined body into SSA form, reducible, with canonical loops. Barriers stay where they are.
void simplify_body(llvm::Function& function, llvm::TargetMachine* target);

} // namespace polder::compiler::workgroup
