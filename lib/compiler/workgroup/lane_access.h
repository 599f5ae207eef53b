// Where the lanes of one load or store access memory, and how to access places that are a constant step apart: structures, vectors
// of two to eight elements, every second number, rows backwards.
//
// Such places are loaded together with what lies between them and sorted out in registers. Accesses of one block to
// the same structures are a group: all begin at the structures' first member that is accessed, so that LLVM finds their
// loads to be the same ones. Stores need the whole group, since what lies between must stay as it is.
#pragma once

#include "lane_shape.h"

#include <llvm/IR/IRBuilder.h>
#include <optional>

namespace polder::compiler::workgroup {

// More than so many elements from lane to lane are accessed one by one.
inline constexpr int64_t lane_step_max = 8;

struct LaneAccess {
    // In elements from lane to lane; never 0 (places that are the same for all lanes have no step), 1 when they are consecutive.
    int64_t step = 0;
    bool is_certain = false;  // else the code has to ask
    // Elements, in the order of their places, that accesses of the same block use out of each `step`: which of them this is,
    // and how far the last is from the first.
    int64_t member = 0;
    int64_t span = 0;
    llvm::SmallVector<llvm::Instruction*, 4> group;  // by place; this alone when the others are of no use

    [[nodiscard]] bool is_consecutive() const { return step == 1; }
    [[nodiscard]] bool is_whole_group() const { return static_cast<int64_t>(group.size()) == step; }
};

// Of a load or store; nothing where places differ without a pattern or by more than `lane_step_max`.
[[nodiscard]] std::optional<LaneAccess> access_of(llvm::Instruction& instruction, const LaneShapes& shapes,
                                                  const LaneShapes& guesses, unsigned lanes);

// How far one of a group is from another.
[[nodiscard]] int64_t elements_between(const llvm::Instruction& from, const llvm::Instruction& to);

// `first`: the first lane's place. Reads nothing beyond the places of the group's first and last elements.
[[nodiscard]] llvm::Value* load_with_step(llvm::IRBuilder<>& builder, llvm::LoadInst& load, const LaneAccess& access,
                                          llvm::Value* first, unsigned lanes);

// The vectors of a whole group, by member; `first`: the first lane's place of the first member.
void store_group(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values, llvm::Value* first,
                 llvm::Align align);

}  // namespace polder::compiler::workgroup
