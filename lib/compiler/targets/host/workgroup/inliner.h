// Makes a function self-contained: inlines every callee that depends on which work-item runs it.
#pragma once

#include <llvm/Support/Error.h>

namespace llvm {
class Function;
class GlobalVariable;
} // namespace llvm

namespace polder::compiler::workgroup {

// Inlines, transitively, all calls in `function` to defined functions that reach a work-item function
// or a __local variable (recursion among these is an Error), and other callees while they are small
// enough, so that the loop vectorizer sees through math functions.
[[nodiscard]] llvm::Error inline_callees(llvm::Function& function);

// Whether `global` is a __local variable.
[[nodiscard]] bool is_local_variable(const llvm::GlobalVariable& global);

} // namespace polder::compiler::workgroup
