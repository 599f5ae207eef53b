// Long loops that branch inside, whose number of iterations is known only at run time, are not unrolled.
//
// LLVM repeats the body of such a loop as often as it fits into the processor's cache of decoded instructions: up to eight times for recent ones. A body with
// branches gains nothing by that: its parts are not scheduled together. But each repetition has values of its own, which do not fit into the registers, and each
// branch is to be learned for each repetition. The rest of the iterations runs in a further copy, which is most of the loop where filters have three or five taps.
#pragma once

namespace llvm {
class PassBuilder;
}  // namespace llvm

namespace polder::compiler {

// For kernels without lanes. Marks innermost loops before LLVM's vectorizer, after loops with a constant number of iterations were unrolled.
void add_branching_loops_pass(llvm::PassBuilder& builder);

}  // namespace polder::compiler
