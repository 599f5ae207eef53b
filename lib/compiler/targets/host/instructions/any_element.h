// Questions whether any or all elements of an explicit vector are set, in code without lanes: one comparison of the vector and one of its mask, where a program
// or the library joins the elements one by one.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Runs after LLVM's passes, which write such a question as halves of the vector that are joined, then elements.
void ask_whole_vectors(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
