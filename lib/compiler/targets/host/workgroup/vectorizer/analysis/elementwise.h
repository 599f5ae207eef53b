// Functions of explicit vectors that compute each element of their result from the same element of their arguments, such as a sine of float16.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler::workgroup {

// Whether `function` can be seen to be one: it only reads memory, and vectors with as many elements as its result meet element by element. Numbers may be
// arguments, too; pointers may not.
[[nodiscard]] bool is_elementwise(const llvm::Function& function);

}  // namespace polder::compiler::workgroup
