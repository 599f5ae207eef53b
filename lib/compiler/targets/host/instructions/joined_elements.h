// The "or" and "and" of all elements of a vector of three, as any() and all() of three shorts have them, become two operations on numbers.
//
// LLVM makes one operation of them (llvm.vector.reduce), and loads two of three neighbours at once. Code generation puts the three in a register and takes
// each out again: nine instructions, where numbers can be operands from memory.
//
// Only code without lanes has such vectors. Runs after all other passes over IR that know vectors.
#pragma once

#include <llvm/IR/Function.h>

namespace polder::compiler {

void join_elements_as_numbers(llvm::Function& function);

}  // namespace polder::compiler
