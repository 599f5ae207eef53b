// Questions about two numbers at once. Of `x < 0 || y < 0` LLVM makes one about `x | y`: whether its sign, or a bit above others, is set. With `x` of each
// work-item and `y` of a whole row, all lanes compute and compare it, often with 64 bits. Taken apart, the question about the row is asked once before the
// loop, and that about the work-item is a bound of its id, or has an answer that is known.
#pragma once

namespace llvm {
class Loop;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Takes such questions of a loop over work-items apart; it must have a preheader, else nothing happens.
void separate_questions(llvm::Loop& loop);

}  // namespace polder::compiler::workgroup
