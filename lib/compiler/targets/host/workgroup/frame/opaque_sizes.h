// The size and the first work-item of a work-group as values that LLVM does not look behind.
//
// Most of LLVM's passes ask what is known about the values of addresses and counters, and search all operands, many times. Behind a group's size
// and its first work-item are a minimum and a product of words of the launch, about which nothing is known.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler::workgroup {

// Puts an empty assembly statement, which costs nothing, behind each such product and minimum in the first block of the work-group function
// `function`. Must run after lanes and loops over work-items are made, which compare sizes.
void hide_sizes(llvm::Function& function);

// Where more than `askers_max` loops ask whether a group has whole vectors, or a rest behind them, they compare one hidden answer. LLVM would search all these
// branches for what they say about the size each time that the size is used. Must run after hide_sizes.
constexpr unsigned askers_max = 24;
void hide_repeated_questions(llvm::Function& function);

}  // namespace polder::compiler::workgroup
