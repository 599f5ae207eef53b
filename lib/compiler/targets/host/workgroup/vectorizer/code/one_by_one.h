// Lanes that access memory one after the other. Few lanes are faster so than by a gather or a scatter.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/Alignment.h>

namespace polder::compiler::workgroup {

// A vector of what is loaded from each address; `type` is a number.
[[nodiscard]] llvm::Value* load_one_by_one(llvm::IRBuilder<>& builder, llvm::Type& type,
                                           llvm::ArrayRef<llvm::Value*> addresses, llvm::Align align);
void store_one_by_one(llvm::IRBuilder<>& builder, llvm::Value& values, llvm::ArrayRef<llvm::Value*> addresses,
                      llvm::Align align);

// Each address of a vector.
[[nodiscard]] llvm::SmallVector<llvm::Value*, 16> each_of(llvm::IRBuilder<>& builder, llvm::Value& addresses);

}  // namespace polder::compiler::workgroup
