// Answers to_global, to_local, to_private and get_fence for pointers whose type names the address space.
#pragma once

namespace llvm {
class Module;
}  // namespace llvm

namespace polder::compiler {

// Must run before the module is retargeted, which makes address spaces one, and while these functions are declarations.
void answer_named_spaces(llvm::Module& module);

}  // namespace polder::compiler
