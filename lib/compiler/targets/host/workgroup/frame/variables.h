// Clang's variables, which hold the arguments of a function and what it computes.
#pragma once

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Makes values of the variables of the entry block that are only loaded and stored.
void promote_variables(llvm::Function& function);

}  // namespace polder::compiler::workgroup
