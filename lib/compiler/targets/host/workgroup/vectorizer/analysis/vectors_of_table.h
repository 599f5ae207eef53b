// Explicit vectors whose elements are loaded one by one from a small constant table (constant_tables.h), as functions of float16 in the library do.
//
// Sixteen elements take sixteen moves out of the register of indices, as many loads and as many moves into the result; a permutation takes one or two.
#pragma once

#include "constant_tables.h"

#include <llvm/ADT/STLFunctionalExtras.h>

namespace polder::compiler::workgroup {

struct VectorOfTable {
    const ConstantTable* table = nullptr;
    llvm::Type* element = nullptr;
    llvm::Value* indices = nullptr;  // a vector
    llvm::SmallVector<int, 16> places;  // of each element's index in `indices`
    const llvm::CastInst* extension = nullptr;  // of an index to the width of an address; null: none
};

// `last` completes the vector. `table_of`: the table from which a load reads, or null.
[[nodiscard]] std::optional<VectorOfTable>
vector_of_table(llvm::InsertElementInst& last, llvm::function_ref<const ConstantTable*(llvm::LoadInst&)> table_of);

// The vectors of all lanes side by side. `indices`: those of all lanes.
[[nodiscard]] llvm::Value* look_up(llvm::IRBuilder<>& builder, const VectorOfTable& vector, llvm::Value& indices);

}  // namespace polder::compiler::workgroup
