// How many vector registers a basic block needs when its instructions stay in their order.
//
// LLVM's scheduler moves independent computations of a long block beside each other. Where hundreds of them follow one another, as the exponentials of
// chemistry do, each with a store at its end, their values no longer fit the registers, and most of them go to the stack. In their order
// they need a few registers, and a processor that looks ahead by hundreds of instructions finds by itself what is independent.
//
// LLVM decides before it assigns registers whether a function aligns its stack. Without that, a vector of 64 bytes on the stack lies at a multiple of 16, and most
// often across two cache lines.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

// Whether the function has long blocks of vector instructions, which need at most a third of the registers. Most of the others are for constants.
[[nodiscard]] bool is_best_in_order(const llvm::Function& function);

// Whether some block needs more than half of the registers, so that vectors may go to the stack.
[[nodiscard]] bool may_store_registers(const llvm::Function& function);

}  // namespace polder::compiler
