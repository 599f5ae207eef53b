// Elements of explicit vectors at places that a program computes, such as those of a shuffle: choices by the bits of the place, of which each halves the
// elements that are left. To compare the place with each number would take twice as many instructions.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

namespace polder::compiler::workgroup {

// The one at `place`, a number or one for each lane. Anything where there is none.
llvm::Value* chosen_by_bits(llvm::IRBuilderBase& at, llvm::ArrayRef<llvm::Value*> elements, llvm::Value& place);

// Of vectors that will be split, which ScalarizerPass would compare.
void choose_by_bits(llvm::Function& function);

}  // namespace polder::compiler::workgroup
