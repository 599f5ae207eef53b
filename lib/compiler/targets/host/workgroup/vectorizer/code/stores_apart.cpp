// Stores whose lanes are apart: anywhere, or a constant step from each other, where the elements between must not change.
#include "lane_code.h"
#include "one_by_one.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/estimates/skipped_code.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/VectorUtils.h>

namespace polder::compiler::workgroup {

namespace {

// Whether the elements are more than a number has bits, so that each lane stores a vector of them.
bool make_vectors(llvm::ArrayRef<llvm::StoreInst*> elements) {
    constexpr uint64_t number_bits = 64;
    return elements.size() * elements.front()->getValueOperand()->getType()->getPrimitiveSizeInBits() > number_bits;
}

}  // namespace

void LaneCode::emit_store_apart(llvm::StoreInst& store, llvm::Value* mask) {
    const auto is_last_of = [&](const auto& stores) {
        return llvm::none_of(stores, [&](const llvm::Instruction* other) { return store.comesBefore(other); });
    };
    const auto number =
        accesses_.number_with(store, mask ? LaneAccesses::Stored::some_lanes : LaneAccesses::Stored::all_lanes);
    // A row with gaps is stored for the whole group; its numbers are single elements.
    const std::optional<LaneAccess> access = accesses_.of(*number.front());
    const bool has_gaps = access && !store.getValueOperand()->getType()->isVectorTy();
    if (has_gaps && access->gaps_take_mask) {
        if (is_last_of(access->group))
            store_with_gaps(number, *access, mask);
    } else if (!is_last_of(number)) {
        return;
    } else if (has_gaps) {
        store_with_gaps(number, *access, mask);
    } else if (!is_asked_for_all(*number.front(), mask)) {
        store_numbers_apart(number, mask);
    } else {
        const TwoWays ways = branch_on(builder_.CreateAndReduce(mask));
        builder_.SetInsertPoint(ways.together);
        store_numbers_apart(number, nullptr);
        builder_.CreateBr(ways.done);
        builder_.SetInsertPoint(ways.apart);
        store_numbers_apart(number, mask);
        builder_.CreateBr(ways.done);
        builder_.SetInsertPoint(ways.done);
    }
}

// Whether an access that all lanes make more quickly one by one has both forms: where all lanes are mostly active.
bool LaneCode::is_asked_for_all(llvm::Instruction& access, llvm::Value* mask) {
    llvm::BasicBlock& block = *access.getParent();
    const llvm::Loop* const around = plan_.loops->getLoopFor(&block);
    const bool leave_in_turns = around != plan_.loop && plan_.is_masked(around->getHeader());
    return mask != nullptr && width_ > accessed_one_by_one_max && !leave_in_turns &&
           accesses_.are_quicker_one_by_one(*llvm::getLoadStoreType(&access),
                                            *llvm::getLoadStorePointerOperand(&access)) &&
           !has_partial_mask(block, plan_, shapes_);
}

// With mask registers the whole interleave group is one row. Else one number is stored for each lane: to compute its address from the first lane's costs
// less than to take it from a vector.
void LaneCode::store_with_gaps(llvm::ArrayRef<llvm::StoreInst*> number, LaneAccess access, llvm::Value* mask) {
    llvm::StoreInst& store = *number.front();
    access.takes_mask = access.gaps_take_mask;
    const PlaceCheck check = check_place(access, store.getPointerOperand(), mask);
    const auto store_row = [&] {
        llvm::SmallVector<llvm::Value*, lane_step_max> values;
        llvm::SmallVector<int64_t, lane_step_max> places;
        llvm::Align align = store.getAlign();
        for (llvm::Instruction* member : access.group) {
            values.push_back(vector(llvm::cast<llvm::StoreInst>(member)->getValueOperand()));
            places.push_back(elements_between(*access.group.front(), *member));
            align = std::min(align, llvm::cast<llvm::StoreInst>(member)->getAlign());
        }
        llvm::Value* const first = builder_.CreateGEP(
            store.getValueOperand()->getType(), check.first,
            builder_.getInt64(static_cast<uint64_t>(elements_between(store, *access.group.front()))));
        workgroup::store_with_gaps(builder_, values, places, first, align, access.step, width_, mask);
    };
    const auto store_lanes = [&] {
        llvm::SmallVector<llvm::Value*> places;
        for (unsigned lane = 0; lane < width_; ++lane)
            places.push_back(builder_.CreateGEP(builder_.getInt8Ty(), check.first,
                                                builder_.getInt64(static_cast<uint64_t>(access.stride) * lane)));
        if (make_vectors(number))
            store_structures(number, places);
        else
            store_one_by_one(builder_, *numbers_of(number), places, store.getAlign());
    };
    const auto store_together = [&] { access.gaps_take_mask ? store_row() : store_lanes(); };
    if (check.condition == nullptr) {
        store_together();
        return;
    }
    const TwoWays ways = branch_on(check.condition);
    builder_.SetInsertPoint(ways.together);
    store_together();
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.apart);
    if (access.gaps_take_mask)
        for (llvm::Instruction* member : access.group)
            store_apart(*llvm::cast<llvm::StoreInst>(member), mask);
    else
        store_numbers_apart(number, mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
}

// Stores in the order of the lanes, as a scatter does: of several lanes with one address, the value of the last one remains.
void LaneCode::store_apart(llvm::StoreInst& store, llvm::Value* mask) {
    if (store.getValueOperand()->getType()->isVectorTy()) {
        store_vectors_apart(store, mask);
        return;
    }
    store_values_apart(vector(store.getValueOperand()), store.getPointerOperand(), store.getAlign(), mask);
}

// Stores adjacent elements, by address, as one number, at the position of the last store. A scatter takes time for each of its elements, so one
// scatter of numbers is faster than several of their parts.
void LaneCode::store_numbers_apart(llvm::ArrayRef<llvm::StoreInst*> elements, llvm::Value* mask) {
    llvm::StoreInst& first = *elements.front();
    if (elements.size() == 1)
        store_apart(first, mask);
    else if (make_vectors(elements))
        store_structures(elements, lane_addresses(first.getPointerOperand(), first.getAlign(), 0, nullptr));
    else
        store_values_apart(numbers_of(elements), first.getPointerOperand(), first.getAlign(), mask);
}

llvm::Value* LaneCode::numbers_of(llvm::ArrayRef<llvm::StoreInst*> elements) {
    llvm::StoreInst& first = *elements.front();
    if (elements.size() == 1)
        return vector(first.getValueOperand());
    const auto bits = static_cast<unsigned>(first.getValueOperand()->getType()->getPrimitiveSizeInBits());
    llvm::Type* const number = wide(builder_.getIntNTy(bits * static_cast<unsigned>(elements.size())));
    if (elements.size() == 2) {
        llvm::Value* const both =
            builder_.CreateShuffleVector(vector(first.getValueOperand()), vector(elements.back()->getValueOperand()),
                                         llvm::createInterleaveMask(width_, 2));
        return builder_.CreateBitCast(both, number);
    }
    // Shifts are faster than shuffles of more than two vectors.
    llvm::Value* numbers = nullptr;
    for (const auto [place, store] : llvm::enumerate(elements)) {
        llvm::Value* part = builder_.CreateBitCast(vector(store->getValueOperand()), wide(builder_.getIntNTy(bits)));
        part = builder_.CreateShl(builder_.CreateZExt(part, number), place * bits);
        numbers = numbers ? builder_.CreateOr(numbers, part) : part;
    }
    return numbers;
}

void LaneCode::store_structures(llvm::ArrayRef<llvm::StoreInst*> elements, llvm::ArrayRef<llvm::Value*> places) {
    llvm::SmallVector<llvm::Value*, lane_structure_max> values;
    for (llvm::StoreInst* element : elements)
        values.push_back(vector(element->getValueOperand()));
    for (const auto [structure, place] : llvm::zip(structures_of(builder_, values, width_), places))
        builder_.CreateAlignedStore(structure, place, elements.front()->getAlign());
}

void LaneCode::store_values_apart(llvm::Value* values, llvm::Value* address, llvm::Align align, llvm::Value* mask) {
    const bool is_one_by_one = width_ <= accessed_one_by_one_max ||
                               accesses_.are_quicker_one_by_one(*values->getType()->getScalarType(), *address);
    if (mask || !is_one_by_one) {
        builder_.CreateMaskedScatter(values, vector(address), align, mask ? mask : all_lanes());
        return;
    }
    store_one_by_one(builder_, *values, lane_addresses(address, align, 0, nullptr), align);
}

}  // namespace polder::compiler::workgroup
