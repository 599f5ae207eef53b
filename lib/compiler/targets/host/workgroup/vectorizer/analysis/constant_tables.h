// Loads of elements of a small constant table, each lane with an index of its own: `__constant float levels[16]`, indexed by four bits of a number.
// The table is in registers, and instructions that permute a register's elements by indices choose an element for each lane. One or two of them
// replace a load for each lane.
#pragma once

#include "lane_target.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <optional>

namespace polder::compiler::workgroup {

struct ConstantTable {
    llvm::Value* index = nullptr;  // one lane's
    unsigned shift = 0;  // the lowest bits of the index that do not count
    // The processor's form: integers of this many bits, a power of two of them. The lowest bits of an index are the place of its entry.
    unsigned entry_bits = 0;
    llvm::SmallVector<llvm::Constant*> entries;
    unsigned register_entries = 0;
    Permutes permutes = Permutes::none;

    // How many instructions look up the elements of `lanes` lanes.
    [[nodiscard]] unsigned instructions(unsigned lanes) const;
};

// The table from which `load` reads. Nothing where it is no constant, or does not fit into as many registers as the processor chooses from.
// An index outside of the table is undefined behaviour, so that it may choose any entry.
[[nodiscard]] std::optional<ConstantTable> constant_table_of(const llvm::LoadInst& load, Permutes permutes);

// The elements for all lanes, as numbers of `type`. `indices`: a vector of the lanes' indices.
[[nodiscard]] llvm::Value* look_up(llvm::IRBuilder<>& builder, const ConstantTable& table, llvm::Value& indices,
                                   llvm::Type& type);

}  // namespace polder::compiler::workgroup
