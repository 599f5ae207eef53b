// Calls of cold functions of explicit vectors, such as that of the library for huge angles of float16, as calls for each element: only the code of vectors can
// be split into their elements, and lanes have such calls where they are needed.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler::workgroup {

// Of the library's functions alone, and of those whose result's elements depend on the same element of the arguments (elementwise.h).
void call_for_each_element(llvm::Function& function);

}  // namespace polder::compiler::workgroup
