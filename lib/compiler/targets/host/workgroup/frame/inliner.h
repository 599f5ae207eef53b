// Inlines into a kernel every function whose result or effect depends on the work-item.
#pragma once

#include <llvm/Support/Error.h>

namespace llvm {
class Function;
class GlobalVariable;
} // namespace llvm

namespace polder::compiler::workgroup {

// Of functions that remain calls where they need not be inlined.
inline constexpr const char* called_attribute = "polder-called";

// `own`: the program's functions, not the library's.
enum class Callees : unsigned char { own, all };

// Inlines into `function`, transitively, all calls of functions that use a work-item function or a __local variable. Recursion
// among these is an Error. Other small functions are inlined too, so that the vectorizer can handle math functions.
[[nodiscard]] llvm::Error inline_callees(llvm::Function& function, Callees which = Callees::all);

// Whether `global` is a __local variable.
[[nodiscard]] bool is_local_variable(const llvm::GlobalVariable& global);

}  // namespace polder::compiler::workgroup
