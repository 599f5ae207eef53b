// Which addresses the lanes of one load or store access, and how to access addresses that are a constant step apart: members of
// structures, vectors of two to eight elements, every second number, rows backwards.
//
// Such elements are loaded together with the elements between them, and separated in registers. Accesses of one block to
// the same structures are an interleave group: all its loads begin at the first member that is accessed, so that LLVM can merge
// them. A store of all its bytes is possible only for a whole group, because the bytes between must not change. Processors with mask registers store the
// row without them; others store one lane after the other, at known distances from the first one.
//
// Where there is no constant step, each lane still loads adjacent elements at once (structure_of), and the results are transposed.
#pragma once

#include "block_accesses.h"
#include "constant_tables.h"
#include "lane_shape.h"
#include "lane_target.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <memory>
#include <optional>

namespace polder::compiler::workgroup {

// Lanes whose addresses are more elements apart are accessed one by one.
inline constexpr int64_t lane_step_max = 8;

struct LaneAccess {
    // Elements from one lane to the next: 1 when the lanes are consecutive, never 0 (a uniform address is no LaneAccess).
    int64_t step = 0;
    int64_t stride = 0;  // the same in bytes
    bool is_certain = false;  // when false, the code checks the step at run time
    // Within the interleave group: the number of this element, counted from the first one that is accessed, and the distance
    // from the first to the last.
    int64_t member = 0;
    int64_t span = 0;
    llvm::SmallVector<llvm::Instruction*, 4> group;  // by address; only this access when it is in no group

    bool takes_mask = false;  // forwards or backwards, and the processor has an instruction for some of the lanes
    bool is_slow_under_mask = false;  // a store of some lanes takes ten times as long as one of all
    bool gaps_take_mask = false;  // the processor has an instruction that stores a row without the elements between
    bool row_takes_mask =
        false;  // structures side by side, and the processor has an instruction for those of some lanes

    [[nodiscard]] bool is_consecutive() const { return step == 1; }
    [[nodiscard]] bool is_whole_group() const { return static_cast<int64_t>(group.size()) == step; }
    // Whether the structures of all lanes are a whole number of registers, so that one access under a mask has them all.
    [[nodiscard]] bool is_one_access() const {
        return span + 1 == step && llvm::isPowerOf2_64(static_cast<uint64_t>(step));
    }
};

// The accesses of one loop. Each block is examined once, so the blocks must not change while this object lives.
// Whether all lanes access elements of this type at such addresses one by one, however many lanes there are: their distances are known, and a gather or scatter
// takes longer than instructions that need no addresses from a vector.
[[nodiscard]] bool are_quicker_one_by_one(Gathers gathers, const llvm::Type& element, const LaneShape& address);

class LaneAccesses {
public:
    // `guesses`: shapes that are likely, and are checked at run time.
    LaneAccesses(const LaneShapes& shapes, const LaneShapes& guesses, unsigned lanes,
                 const llvm::TargetTransformInfo& target, Permutes permutes, Gathers gathers = Gathers::slow)
        : shapes_(shapes), guesses_(guesses), lanes_(lanes), target_(target), permutes_(permutes), gathers_(gathers) {}

    [[nodiscard]] const llvm::TargetTransformInfo& target() const { return target_; }

    // For a load or store; nothing when the lanes' addresses have no constant step, or one below -1 or above `lane_step_max`.
    [[nodiscard]] std::optional<LaneAccess> of(llvm::Instruction& instruction);
    // The constant table in which the lanes look up their elements; null where they load them.
    [[nodiscard]] Permutes permutes() const { return permutes_; }
    [[nodiscard]] const ConstantTable* table_of(llvm::Instruction& instruction);
    // BlockAccesses::structure_of, of the load's block.
    [[nodiscard]] llvm::SmallVector<llvm::LoadInst*, lane_structure_max> structure_of(llvm::LoadInst& load) {
        return block_of(*load.getParent()).structure_of(load);
    }
    // Whether each lane's element is stored alone: neither in a row with other lanes, nor together with other elements of its structure.
    [[nodiscard]] bool is_stored_apart(llvm::StoreInst& store);
    // BlockAccesses::number_with, where all its elements are stored apart and none in a row with gaps; else only `store`. Scatters, which stores of some lanes
    // are, have numbers of at most 64 bits.
    enum class Stored : uint8_t { all_lanes, some_lanes };
    [[nodiscard]] llvm::SmallVector<llvm::StoreInst*, 8> number_with(llvm::StoreInst& store, Stored lanes);
    // How many elements are stored with this access as one number; 1 for a load.
    [[nodiscard]] size_t elements_stored_with(llvm::Instruction& access, Stored lanes) {
        auto* const store = llvm::dyn_cast<llvm::StoreInst>(&access);
        return store ? number_with(*store, lanes).size() : 1;
    }
    // Whether each lane loads this number of elements of a structure at once.
    [[nodiscard]] bool is_loaded_at_once(llvm::Type& element, size_t elements) const {
        return workgroup::is_loaded_at_once(element, elements, lanes_) || are_bytes_of_word(element, elements);
    }
    // Whether a lane's elements are three bytes that are loaded with one beside them, as a word: where the processor gathers words.
    [[nodiscard]] bool are_bytes_of_word(llvm::Type& element, size_t elements) const;
    // The likely shape of a value.
    [[nodiscard]] LaneShape guess_of(const llvm::Value& value) const { return guesses_.of(&value); }
    [[nodiscard]] bool are_quicker_one_by_one(const llvm::Type& element, const llvm::Value& address) const {
        return workgroup::are_quicker_one_by_one(gathers_, element, shapes_.of(&address));
    }
    // Whether the processor has an instruction that gathers such elements.
    [[nodiscard]] bool has_gather(llvm::Type& element, llvm::Align align) const;

private:
    const BlockAccesses& block_of(llvm::BasicBlock& block);
    [[nodiscard]] bool has_masked_form(const llvm::Instruction& access) const;
    [[nodiscard]] bool has_masked_form_of_structures(const llvm::Instruction& instruction,
                                                     const LaneAccess& access) const;
    [[nodiscard]] bool is_slow_under_mask(const llvm::Instruction& access) const;
    [[nodiscard]] bool has_masked_form_with_gaps(const llvm::Instruction& instruction, const LaneAccess& access) const;
    void find_group(llvm::Instruction& instruction, LaneAccess& access, int64_t element_bytes);

    const LaneShapes& shapes_;
    const LaneShapes& guesses_;
    unsigned lanes_;
    const llvm::TargetTransformInfo& target_;
    const Permutes permutes_;
    const Gathers gathers_;
    llvm::DenseMap<const llvm::Instruction*, std::unique_ptr<ConstantTable>> tables_;
    llvm::DenseMap<const llvm::BasicBlock*, std::unique_ptr<BlockAccesses>> blocks_;
};

// The distance between two accesses of a group, in elements.
[[nodiscard]] int64_t elements_between(const llvm::Instruction& from, const llvm::Instruction& to);

// The structures of the lanes in `mask`, where the row takes it, in the order of memory.
[[nodiscard]] llvm::Value* load_structures_under_mask(llvm::IRBuilder<>& builder, llvm::LoadInst& load,
                                                      const LaneAccess& access, llvm::Value* first, unsigned lanes,
                                                      llvm::Value* mask);

// `first`: the first lane's address. Reads no byte before the group's first element or after its last. `structures`: those of all lanes if they are loaded
// already, else null.
[[nodiscard]] llvm::Value* load_with_step(llvm::IRBuilder<>& builder, llvm::LoadInst& load, const LaneAccess& access,
                                          llvm::Value* first, unsigned lanes, llvm::Value* structures = nullptr);

// For each element of a structure, the vector of this element over all lanes. `structures`: one vector of 2 or 4 elements for each lane.
[[nodiscard]] llvm::SmallVector<llvm::Value*, lane_structure_max> transposed(llvm::IRBuilder<>& builder,
                                                                             llvm::ArrayRef<llvm::Value*> structures);

// The other way: for each lane, a vector of its elements. `values`: 2 or 4 vectors over all lanes.
[[nodiscard]] llvm::SmallVector<llvm::Value*> structures_of(llvm::IRBuilder<>& builder,
                                                            llvm::ArrayRef<llvm::Value*> values, unsigned lanes);

// Stores the vectors of a whole group, in the order of members. `first`: the address of the first lane's first member. `mask`: the lanes that store, where
// the row takes it; null: all.
void store_group(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values, llvm::Value* first, llvm::Align align,
                 const LaneAccess& access, unsigned lanes, llvm::Value* mask = nullptr);

// Stores some elements of each lane's structure, which has `step` elements, and leaves the others as they are. `places`: of each vector of `values` in the
// structure, ascending from 0. `first`: the address of the first lane's first one. `mask`: the lanes that store; null: all.
void store_with_gaps(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> values, llvm::ArrayRef<int64_t> places,
                     llvm::Value* first, llvm::Align align, int64_t step, unsigned lanes, llvm::Value* mask);

// The lanes' values in the opposite order.
[[nodiscard]] llvm::Value* reversed(llvm::IRBuilder<>& builder, llvm::Value* values, unsigned lanes);

}  // namespace polder::compiler::workgroup
