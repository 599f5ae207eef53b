// Writes the vector form of a loop's instructions. For each value of the loop it knows the replacement: one scalar for a uniform or
// strided value (the first lane's value), a vector for a varying one.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/preparation/rare_values.h"
#include "targets/host/workgroup/vectorizer/preparation/row_ends.h"
#include "targets/host/workgroup/work_items/sub_group_functions.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/IRBuilder.h>
#include <set>
#include <string>

namespace polder::compiler::workgroup {

class LaneCode {
public:
    // `sub_group`: null unless the loop is over the work-items of one sub-group.
    LaneCode(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned width,
             const SubGroupLanes* sub_group);

    [[nodiscard]] llvm::IRBuilder<>& builder() { return builder_; }
    [[nodiscard]] unsigned width() const { return width_; }
    [[nodiscard]] llvm::Type* wide(llvm::Type* type) const { return of_lanes(*type, width_); }

    // The scalar of a uniform value, or the first lane's of a strided one.
    llvm::Value* scalar(llvm::Value* value);
    llvm::Value* vector(llvm::Value* value);
    // `value` in the form in which `like` is kept: a scalar for a strided `like`, else a vector.
    llvm::Value* kept(llvm::Value* value, const llvm::Value* like) {
        return shapes_.of(like).is_strided() ? scalar(value) : vector(value);
    }
    // The replacement of `value` from now on, in the form in which it is kept.
    llvm::Value*& made(const llvm::Value* value) {
        return (shapes_.of(value).is_strided() ? scalars_ : vectors_)[value];
    }
    // As `made`, for a value from outside of the loop.
    void set_scalar(const llvm::Value* value, llvm::Value* scalar) { scalars_[value] = scalar; }

    // The work-items of the loop, so that rows of all of them are asked for once before it.
    void set_row(const WorkItemRow& row) { row_ = row; }
    // Where lanes are asked and accessed only if that question failed.
    [[nodiscard]] llvm::ArrayRef<RareBlocks> rare_blocks() const { return rare_blocks_; }

    llvm::Value* all_lanes() { return llvm::ConstantInt::getTrue(mask_type_); }
    llvm::Value* no_lanes() { return llvm::ConstantInt::getFalse(mask_type_); }
    llvm::Value* any(llvm::Value* mask) { return builder_.CreateOrReduce(mask); }
    llvm::Value* both(llvm::Value* mask, llvm::Value* condition) {
        return mask ? builder_.CreateSelect(mask, condition, no_lanes()) : condition;
    }
    llvm::Value* either(llvm::Value* a, llvm::Value* b) { return a ? builder_.CreateOr(a, b) : b; }
    // Of lanes in `mask` the first value, of others the second one. `type`: of one lane's value.
    llvm::Value* chosen(llvm::Value* mask, llvm::Value* first, llvm::Value* second, const llvm::Type& type) {
        return builder_.CreateSelect(repeated(mask, type), first, second);
    }

    // Names of the functions that are called for each lane in turn, except cold ones.
    [[nodiscard]] const std::set<std::string>& serial_calls() const { return serial_calls_; }

    // Emits `instruction` for the lanes in `mask`; null: for all lanes.
    void emit(llvm::Instruction& instruction, llvm::Value* mask);
    // Whether lanes do something in memory one by one, as gathers and calls do.
    [[nodiscard]] bool accesses_apart(llvm::Instruction& instruction) {
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        return address ? !shapes_.of(address).is_uniform() && !accesses_.of(instruction)
                       : instruction.mayReadOrWriteMemory();
    }
    // Before the block is emitted again: its loads have nothing from earlier ones of their group any more.
    void forget_loads(const llvm::BasicBlock& block) {
        for (const llvm::Instruction& instruction : block)
            loaded_before_.erase(&instruction);
    }

private:
    llvm::Constant* lane_offsets(llvm::Type* type, int64_t stride);
    llvm::Value* emit_scalar(llvm::Instruction& instruction, llvm::Value* mask);
    llvm::Value* widened(llvm::Value* value, llvm::Type* type, llvm::Instruction::CastOps how);
    llvm::Instruction::CastOps extension_of(const llvm::CastInst& cast) const;
    llvm::Value* first_lane(llvm::Value& base, int64_t stride, unsigned up, llvm::Type& type);
    llvm::Instruction* clone_for_all(const llvm::Instruction& instruction);
    void make_harmless(llvm::Instruction& copy, llvm::Value* mask);
    llvm::Value* dummy(llvm::Align align);
    llvm::Value* emit_vector(llvm::Instruction& instruction, llvm::Value* mask);
    // Interleaved private arrays (interleaved_arrays.cpp)
    using Form = llvm::function_ref<llvm::Value*(llvm::Value*)>;
    llvm::Value* emit_interleaved(llvm::GetElementPtrInst& address, Form form);
    void fill_interleaved(llvm::MemSetInst& filling, llvm::Value* mask);
    llvm::Value* offset_in_copy(const llvm::Value* address, llvm::Type& type, Form form);
    // One part for each lane, `shift` bits above the beginning of a word.
    struct PartsOfWords {
        llvm::Type* words = nullptr;  // of all lanes
        llvm::Value* row = nullptr;  // the address of the words; null where they are apart
        llvm::Value *each_word = nullptr,
                    *each = nullptr;  // else vectors of the addresses of the words and of the parts
        llvm::Value* shift = nullptr;
    };
    PartsOfWords parts_of_words(llvm::Value& address, uint64_t word_bytes, llvm::Value* mask);
    llvm::Value* load_part_of_word(llvm::LoadInst& load, uint64_t word_bytes, llvm::Value* mask);
    void store_part_of_word(llvm::StoreInst& store, uint64_t word_bytes, llvm::Value* mask);
    // Explicit vectors (lane_vectors.cpp)
    llvm::Value* repeated(llvm::Value* numbers, const llvm::Type& type);
    llvm::Value* splat(llvm::Value* value);
    llvm::Value* value_of_lane(llvm::Value* values, const llvm::Type& type, unsigned lane);
    llvm::Value* joined(llvm::ArrayRef<llvm::Value*> vectors);
    llvm::Value* load_vectors_apart(llvm::Type& type, llvm::Align align, llvm::Value* address, int64_t distance,
                                    llvm::Value* mask);
    void store_vectors_apart(llvm::StoreInst& store, llvm::Value* mask);
    llvm::Value* emit_extraction(llvm::ExtractElementInst& extract);
    llvm::Value* emit_insertion(llvm::InsertElementInst& insert);
    llvm::Value* emit_moved_elements(llvm::Instruction& instruction);
    llvm::Value* emit_choice(llvm::SelectInst& choice);
    llvm::Value* divide(llvm::BinaryOperator& division, llvm::Value* numbers, llvm::Value* divisors);
    // Sub-groups (lane_sub_group.cpp)
    void emit_sub_group(llvm::CallBase& call, const SubGroupOperation& operation, llvm::Value* mask);
    llvm::Value* emit_shuffle(llvm::CallBase& call);
    llvm::Value* emit_ballot(llvm::CallBase& call, llvm::Value* mask);
    llvm::Value* emit_combination(llvm::CallBase& call, const SubGroupOperation& operation, llvm::Value* mask);
    // Memory (lane_memory.cpp, lane_structures.cpp, likely_steps.cpp)
    llvm::Value* emit_load(llvm::LoadInst& load, llvm::Value* mask);
    void emit_store(llvm::StoreInst& store, llvm::Value* mask);
    [[nodiscard]] bool is_asked_for_all(llvm::Instruction& access, llvm::Value* mask);
    void store_once(llvm::StoreInst& store, llvm::Value* mask);
    // The first lane's address, and the condition under which one vector access is possible; null when it always is.
    struct PlaceCheck {
        llvm::Value *condition, *first;
    };
    // The first lane's value, and the conditions under which the others follow it with this step. Null: no condition.
    struct LikelyStep {
        llvm::Value* first = nullptr;
        int64_t stride = 0;
        llvm::Value* condition = nullptr;
        llvm::Value* of_lanes = nullptr;  // one for each lane; those of inactive lanes do not matter
    };
    std::optional<LikelyStep> likely_step(llvm::Value* value, llvm::Value* mask);
    std::optional<LikelyStep> likely_address(llvm::GetElementPtrInst& address, llvm::Value* mask);
    std::optional<LikelyStep> likely_offset(llvm::BinaryOperator& operation, llvm::Value* mask);
    std::optional<LikelyStep> likely_half(llvm::BinaryOperator& operation, llvm::Value* mask);
    llvm::Value* does_not_wrap(llvm::Value* first, int64_t distance, bool is_signed);
    std::optional<LikelyStep> likely_low_bits(llvm::BinaryOperator& operation, llvm::Value* mask);
    std::optional<LikelyStep> likely_remainder(llvm::BinaryOperator& operation, llvm::Value* mask);
    std::optional<LikelyStep> likely_choice(llvm::SelectInst& choice, llvm::Value* mask);
    std::optional<LikelyStep> likely_bounded(llvm::Value* value);
    std::optional<LikelyStep> likely_number(llvm::Value* number, llvm::Value* mask);
    [[nodiscard]] int64_t distance_of_last(int64_t stride) const { return stride * (static_cast<int64_t>(width_) - 1); }
    std::optional<LikelyStep> likely_extension(llvm::CastInst& cast, llvm::Value* mask);
    std::optional<LikelyStep> number_of_row(llvm::Value& number, llvm::Type& type);
    // Either may be null: no condition.
    llvm::Value* both_conditions(llvm::Value* one, llvm::Value* other);
    void take_conditions(LikelyStep& step, const LikelyStep& other);
    // A check may be two: of the whole row, which is before the loop, and of the lanes. Then branch_on, which must follow, completes it.
    PlaceCheck check_place(const LaneAccess& access, llvm::Value* address, llvm::Value* mask);
    PlaceCheck check_lanes(const LaneAccess& access, llvm::Value* address, llvm::Value* mask);
    llvm::Value* load_row(llvm::LoadInst& load, const LaneAccess& access, llvm::Value* first, llvm::Value* mask);
    llvm::SmallVector<llvm::Value*, 4>
    load_group_by_distance(llvm::LoadInst& load, llvm::ArrayRef<llvm::Instruction*> group, llvm::Value* mask);
    llvm::SmallVector<llvm::Value*, 4> load_group_apart(llvm::LoadInst& load, llvm::ArrayRef<llvm::Instruction*> group,
                                                        llvm::Value* mask);
    llvm::SmallVector<llvm::Value*, lane_structure_max> load_structures(llvm::Type& type, size_t count,
                                                                        llvm::Align align, llvm::Value* address,
                                                                        int64_t distance, llvm::Value* mask,
                                                                        bool are_extended);
    llvm::Value* load_words_of_three_bytes(llvm::Value* address, int64_t distance, llvm::Value* mask);
    // Whether a lane's `group`, by address, is a structure of four elements that is loaded at once.
    [[nodiscard]] bool is_whole_structure(llvm::LoadInst& load, const LaneAccess& access,
                                          llvm::ArrayRef<llvm::Instruction*> group);
    llvm::SmallVector<llvm::Value*, lane_structure_max> divided(llvm::Value* structures, unsigned elements);
    llvm::SmallVector<llvm::Value*, lane_structure_max> bits_of(llvm::Value* numbers, llvm::Type& type,
                                                                unsigned elements);
    llvm::SmallVector<llvm::Value*, lane_structure_max>
    load_checked_structures(llvm::LoadInst& load, const LaneAccess& access, const PlaceCheck& check, llvm::Value* mask);
    // The sum of a row, which each lane has before the innermost loop, and of what is the same for all lanes.
    struct PlaceInRow {
        using Part = std::pair<llvm::Value*, uint64_t>;  // an index, and the size of its elements in bytes
        llvm::Value* base = nullptr;  // the same in all iterations
        llvm::SmallVector<Part, 2> varying;  // beyond `base`: each lane's own, the same in all iterations
        llvm::SmallVector<Part, 2> uniform;  // beyond that
        int64_t distance = 0;  // bytes beyond that
    };
    bool add_to_place(llvm::Value& index, uint64_t bytes, const llvm::Loop& loop, PlaceInRow& place) const;
    [[nodiscard]] std::optional<PlaceInRow> place_in_row(const llvm::Value* address) const;
    llvm::SmallVector<llvm::Value*, 16> lane_addresses_in_rows(const PlaceInRow& place, llvm::Align align,
                                                               int64_t distance, llvm::Value* mask);
    llvm::SmallVector<llvm::Value*, 16> lane_addresses(llvm::Value* address, llvm::Align align, int64_t distance,
                                                       llvm::Value* mask);
    llvm::Value* load_apart(llvm::Type& type, llvm::Align align, llvm::Value* address, int64_t distance,
                            llvm::Value* mask);
    llvm::Value* load_part(llvm::Type& type, llvm::Align align, llvm::Value* address, int64_t distance,
                           llvm::Value* mask);
    llvm::Value* lowest_of_backward_row(llvm::Type& type, llvm::Value* first);
    void store_row(const LaneAccess& access, llvm::StoreInst& store, llvm::Value* first, llvm::Value* mask);
    void store_apart(llvm::StoreInst& store, llvm::Value* mask);
    void emit_store_apart(llvm::StoreInst& store, llvm::Value* mask);
    void store_with_gaps(llvm::ArrayRef<llvm::StoreInst*> number, LaneAccess access, llvm::Value* mask);
    llvm::Value* numbers_of(llvm::ArrayRef<llvm::StoreInst*> elements);
    void store_numbers_apart(llvm::ArrayRef<llvm::StoreInst*> elements, llvm::Value* mask);
    void store_structures(llvm::ArrayRef<llvm::StoreInst*> elements, llvm::ArrayRef<llvm::Value*> places);
    void store_values_apart(llvm::Value* values, llvm::Value* address, llvm::Align align, llvm::Value* mask);
    llvm::Value* lane_address(llvm::Value* address, unsigned lane);
    struct TwoWays {
        llvm::BasicBlock *together, *apart, *done;
    };
    TwoWays branch_on(llvm::Value* condition);

    // Calls
    void emit_call(llvm::Instruction& instruction, llvm::Value* mask);
    void emit_call_for_lanes(llvm::CallInst& call, llvm::Value* mask);
    llvm::Value* emit_intrinsic(llvm::CallInst& call, llvm::Intrinsic::ID id);
    void emit_lane_by_lane(llvm::Instruction& instruction, llvm::Value* mask);
    // A loop over the active lanes (active_lanes.cpp)
    [[nodiscard]] bool loops_over_active_lanes(const llvm::Instruction& instruction) const;
    // At least one lane is active. Returns the results, in which elements of inactive lanes are undefined; null where nothing uses them.
    llvm::Value* emit_for_active_lanes(llvm::Instruction& instruction, llvm::Value& mask);
    // Whether the loop computes the value, from at most one that differs between lanes.
    [[nodiscard]] bool is_made_for_one_lane(const llvm::Value& value) const;
    void collect_vectors_of(llvm::Value& value, llvm::SmallSetVector<llvm::Value*, 4>& vectors) const;
    [[nodiscard]] bool is_moved_to_front(const llvm::Value& value) const;
    void shift_values(const llvm::SmallSetVector<llvm::Value*, 4>& vectors, llvm::ArrayRef<llvm::Value*> fronts,
                      llvm::BasicBlock& before, llvm::SmallDenseMap<llvm::Value*, llvm::Value*>& loaded);
    llvm::Value* value_in_lane(llvm::Value& value, llvm::Value& lane,
                               const llvm::SmallDenseMap<llvm::Value*, llvm::Value*>& loaded);

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    llvm::Function& function_;
    unsigned width_;
    const SubGroupLanes* const sub_group_;
    llvm::IRBuilder<> builder_;
    llvm::Type* mask_type_;
    llvm::DenseMap<const llvm::Value*, llvm::Value*> scalars_;
    llvm::DenseMap<const llvm::Value*, llvm::Value*> vectors_;
    llvm::DenseMap<const llvm::Value*, llvm::Value*> loaded_before_;  // with an earlier load of their group
    WorkItemRow row_;
    bool asks_for_whole_row_ = false;
    struct WholeRowCheck {
        llvm::BasicBlock *lanes = nullptr, *together = nullptr;
    } whole_row_;  // of the access that is being emitted
    llvm::SmallVector<RareBlocks> rare_blocks_;
    llvm::AllocaInst* dummy_ = nullptr;
    llvm::AllocaInst* lane_values_ = nullptr;
    std::set<std::string> serial_calls_;
};

}  // namespace polder::compiler::workgroup
