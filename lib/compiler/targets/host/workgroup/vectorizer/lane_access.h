// Where the lanes of one load or store access memory, and how to access places that are a constant step apart: structures, vectors
// of two to eight elements, every second number, rows backwards.
//
// Such places are loaded together with what lies between them and sorted out in registers. Accesses of one block to
// the same structures are a group: all begin at the structures' first member that is accessed, so that LLVM finds their
// loads to be the same ones. Stores need the whole group, since what lies between must stay as it is.
#pragma once

#include "lane_shape.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <memory>
#include <optional>
#include <tuple>

namespace polder::compiler::workgroup {

// More than so many elements from lane to lane are accessed one by one.
inline constexpr int64_t lane_step_max = 8;

struct LaneAccess {
    // In elements from lane to lane; never 0 (places that are the same for all lanes have no step), 1 when they are consecutive.
    int64_t step = 0;
    int64_t stride = 0;  // the same in bytes
    bool is_certain = false;  // else the code has to ask
    // Elements, in the order of their places, that accesses of the same block use out of each `step`: which of them this is,
    // and how far the last is from the first.
    int64_t member = 0;
    int64_t span = 0;
    llvm::SmallVector<llvm::Instruction*, 4> group;  // by place; this alone when the others are of no use

    bool takes_mask = false;  // consecutive, and the processor has an instruction for some of the lanes

    [[nodiscard]] bool is_consecutive() const { return step == 1; }
    [[nodiscard]] bool is_whole_group() const { return static_cast<int64_t>(group.size()) == step; }
};

// The accesses of one loop's blocks, which stay as they are as long as this lives: each is looked at once.
class LaneAccesses {
public:
    // `guesses`: shapes that are likely.
    LaneAccesses(const LaneShapes& shapes, const LaneShapes& guesses, unsigned lanes,
                 const llvm::TargetTransformInfo& target)
        : shapes_(shapes), guesses_(guesses), lanes_(lanes), target_(target) {}

    // Of a load or store; nothing where places differ without a pattern or by more than `lane_step_max`.
    [[nodiscard]] std::optional<LaneAccess> of(llvm::Instruction& instruction);

private:
    struct Placed {
        int64_t offset = 0;  // in bytes from their common base
        llvm::Instruction* access = nullptr;
    };
    // Loads or stores of one type whose places differ by constants, by place.
    using Neighbours = llvm::SmallVector<Placed, 4>;
    using NeighboursKey = std::tuple<const llvm::Value*, const llvm::Type*, unsigned>;  // base, type, opcode
    struct Block {
        llvm::DenseMap<NeighboursKey, Neighbours> neighbours;
        llvm::DenseMap<const llvm::Instruction*, size_t> numbers;  // of what accesses memory, in order
    };

    const Block& block_of(llvm::BasicBlock& block);
    [[nodiscard]] bool has_masked_form(const llvm::Instruction& access) const;
    void find_group(llvm::Instruction& instruction, LaneAccess& access, int64_t element_bytes);

    const LaneShapes& shapes_;
    const LaneShapes& guesses_;
    unsigned lanes_;
    const llvm::TargetTransformInfo& target_;
    llvm::DenseMap<const llvm::BasicBlock*, std::unique_ptr<Block>> blocks_;
};

// How far one of a group is from another.
[[nodiscard]] int64_t elements_between(const llvm::Instruction& from, const llvm::Instruction& to);

// `first`: the first lane's place. Reads nothing beyond the places of the group's first and last elements.
[[nodiscard]] llvm::Value* load_with_step(llvm::IRBuilder<>& builder, llvm::LoadInst& load, const LaneAccess& access,
                                          llvm::Value* first, unsigned lanes);

// The vectors of a whole group, by member; `first`: the first lane's place of the first member.
void store_group(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values, llvm::Value* first,
                 llvm::Align align);

}  // namespace polder::compiler::workgroup
