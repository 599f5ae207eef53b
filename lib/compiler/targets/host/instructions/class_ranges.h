// Questions for the class of floating-point numbers (llvm.is.fpclass), such as isnormal, of vectors for which code generation has no instruction: comparisons of
// whole numbers, where it would ask for each element.
#pragma once

#include <llvm/IR/Function.h>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Runs after LLVM's passes, which know the question.
void compare_classes(llvm::Function& function, const llvm::TargetMachine& machine);

}  // namespace polder::compiler
