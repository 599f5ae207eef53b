// Rewrites operations without a vector form, in functions that must become lanes because they use sub-groups. An operation whose
// result is a structure becomes a call of a small function, which is called for one lane after the other. A cast of an explicit vector to
// one number becomes operations on its elements.
#pragma once

namespace llvm {
class Function;
}

namespace polder::compiler::workgroup {

void make_operations_plain(llvm::Function& function);

}  // namespace polder::compiler::workgroup
