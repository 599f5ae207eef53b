// Loads and stores of lanes: one vector access where the addresses have a constant step, otherwise one access for each lane. Elements of structures
// that lanes load at once are in lane_structures.cpp.
// Where the constant step is only likely (likely_steps.cpp), or holds only while all lanes are active, the code checks at run time and has
// both forms, because a gather costs as much as ten loads.
#include "lane_code.h"
#include "one_by_one.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_of_addresses.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/Support/KnownBits.h>
#include <utility>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned address_bits = 64;

// Whether `load` is the first of `loads`, and no instruction writes to memory before the last one.
bool is_first_of_undisturbed(const llvm::Instruction& load, llvm::ArrayRef<llvm::Instruction*> loads) {
    size_t seen = 0;
    for (const llvm::Instruction* next = &load; next != nullptr; next = next->getNextNode()) {
        if (llvm::is_contained(loads, next))
            ++seen;
        if (seen == loads.size())
            return true;
        if (next->mayWriteToMemory())
            return false;
    }
    return false;
}

// The alignment of a row of lanes: at most the size of an element. LLVM's alignment of the access holds only for active lanes, and the first lane
// may be inactive. For example, one of 16 lanes reads the first member of a structure that is aligned to 64 bytes.
llvm::Align alignment_of_row(const llvm::Instruction& access) {
    const llvm::TypeSize bytes = access.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&access));
    return llvm::commonAlignment(llvm::getLoadStoreAlignment(&access), bytes);
}

// Whether a byte is loaded from a table that fits into registers, from which register_tables.cpp takes all lanes at once: a gather says so. The table is the same for all lanes.
bool is_from_table_of_bytes(const llvm::Type& type, const llvm::Value& address, const LaneShapes& shapes) {
    constexpr uint64_t bytes_max = 64;
    const auto* const element = llvm::dyn_cast<llvm::GetElementPtrInst>(&address);
    return type.isIntegerTy(8) && element != nullptr && element->getNumIndices() == 1 &&
           element->getSourceElementType()->isIntegerTy(8) && shapes.of(element->getPointerOperand()).is_uniform() &&
           llvm::computeKnownBits(*element->idx_begin(), element->getDataLayout()).getMaxValue().ult(bytes_max);
}

}  // namespace

llvm::Value* LaneCode::emit_load(llvm::LoadInst& load, llvm::Value* mask) {
    if (const auto found = loaded_before_.find(&load); found != loaded_before_.end())
        return found->second;
    if (const uint64_t word = plan_.privates.word_of(load); word != 0)
        return load_part_of_word(load, word, mask);
    if (const ConstantTable* const table = accesses_.table_of(load))
        return look_up(builder_, *table, *vector(table->index), *load.getType());
    const std::optional<LaneAccess> access = accesses_.of(load);
    llvm::Value* address = load.getPointerOperand();
    if (!access) {
        const auto neighbours = accesses_.structure_of(load);
        llvm::SmallVector<llvm::Instruction*, 4> structure(neighbours.begin(), neighbours.end());
        if (!is_first_of_undisturbed(load, structure))
            structure = {&load};
        for (const auto [member, value] : llvm::zip(structure, load_group_by_distance(load, structure, mask)))
            loaded_before_[member] = value;
        return loaded_before_[&load];
    }
    const PlaceCheck check = check_place(*access, address, mask);
    if (check.condition == nullptr)
        return load_row(load, *access, check.first, mask);
    // One check for all loads of the interleave group, when no instruction writes to memory between them.
    llvm::SmallVector<llvm::Instruction*, 4> group{&load};
    if (is_first_of_undisturbed(load, access->group))
        group = access->group;
    if (!access->row_takes_mask && is_whole_structure(load, *access, group)) {
        for (const auto [member, value] : llvm::zip(group, load_checked_structures(load, *access, check, mask)))
            loaded_before_[member] = value;
        return loaded_before_[&load];
    }
    llvm::SmallVector<llvm::Value*, 4> rows, gathered;
    const auto of_each_member = [&](auto load_member) {
        for (llvm::Instruction* member : group) {
            const int64_t distance = elements_between(load, *member);
            LaneAccess its = *access;
            its.member += distance;
            llvm::Value* place =
                builder_.CreateGEP(load.getType(), check.first, builder_.getInt64(static_cast<uint64_t>(distance)));
            load_member(llvm::cast<llvm::LoadInst>(*member), its, place);
        }
    };
    const TwoWays ways = branch_on(check.condition);
    builder_.SetInsertPoint(ways.together);
    of_each_member([&](llvm::LoadInst& member, const LaneAccess& its, llvm::Value* place) {
        rows.push_back(load_row(member, its, place, mask));
    });
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.apart);
    if (access->row_takes_mask) {
        // One load for all members: LLVM would not find that several are the same.
        llvm::Value* const structures = load_structures_under_mask(builder_, load, *access, check.first, width_, mask);
        of_each_member([&](llvm::LoadInst& member, const LaneAccess& its, llvm::Value* place) {
            gathered.push_back(load_with_step(builder_, member, its, place, width_, structures));
        });
    } else {
        gathered = load_group_apart(load, group, mask);
    }
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
    for (size_t i = 0; i < group.size(); ++i) {
        llvm::PHINode* result = builder_.CreatePHI(rows[i]->getType(), 2);
        result->addIncoming(rows[i], ways.together);
        result->addIncoming(gathered[i], ways.apart);
        loaded_before_[group[i]] = result;
    }
    return loaded_before_[&load];
}

// Each lane's elements, where all lanes may be quicker one by one than some of them.
llvm::SmallVector<llvm::Value*, 4>
LaneCode::load_group_by_distance(llvm::LoadInst& load, llvm::ArrayRef<llvm::Instruction*> group, llvm::Value* mask) {
    if (!is_asked_for_all(load, mask))
        return load_group_apart(load, group, mask);
    const TwoWays ways = branch_on(builder_.CreateAndReduce(mask));
    builder_.SetInsertPoint(ways.together);
    const auto of_all = load_group_apart(load, group, nullptr);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.apart);
    const auto of_some = load_group_apart(load, group, mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
    llvm::SmallVector<llvm::Value*, 4> values;
    for (const auto [all, some] : llvm::zip(of_all, of_some)) {
        llvm::PHINode* const result = builder_.CreatePHI(all->getType(), 2);
        result->addIncoming(all, ways.together);
        result->addIncoming(some, ways.apart);
        values.push_back(result);
    }
    return values;
}

void LaneCode::emit_store(llvm::StoreInst& store, llvm::Value* mask) {
    if (const uint64_t word = plan_.privates.word_of(store); word != 0) {
        store_part_of_word(store, word, mask);
        return;
    }
    llvm::Value* to = store.getPointerOperand();
    if (shapes_.of(to).is_uniform()) {
        store_once(store, mask);
        return;
    }
    if (accesses_.is_stored_apart(store)) {
        emit_store_apart(store, mask);
        return;
    }
    const std::optional<LaneAccess> access = accesses_.of(store);
    // A group is stored where its last store is.
    if (llvm::any_of(access->group, [&](llvm::Instruction* other) { return store.comesBefore(other); }))
        return;
    const PlaceCheck check = check_place(*access, to, mask);
    llvm::Value* condition = check.condition;
    const bool is_all_or_some = condition == nullptr && mask && access->takes_mask && access->is_slow_under_mask;
    if (is_all_or_some)
        condition = builder_.CreateAndReduce(mask);
    if (condition == nullptr) {
        store_row(*access, store, check.first, mask);
        return;
    }
    const TwoWays ways = branch_on(condition);
    builder_.SetInsertPoint(ways.together);
    store_row(*access, store, check.first, is_all_or_some || access->step > 1 ? nullptr : mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.apart);
    if (mask && access->is_slow_under_mask) {
        auto* const some = llvm::BasicBlock::Create(function_.getContext(), "some", &function_);
        builder_.CreateCondBr(any(mask), some, ways.done);
        builder_.SetInsertPoint(some);
    }
    if (is_all_or_some || access->row_takes_mask)
        store_row(*access, store, check.first, mask);
    else
        for (llvm::Instruction* member : access->group)
            store_apart(*llvm::cast<llvm::StoreInst>(member), mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
}

// All lanes store to one address: the value of the last active lane remains. A scatter would store each of them.
void LaneCode::store_once(llvm::StoreInst& store, llvm::Value* mask) {
    llvm::Value* const value = store.getValueOperand();
    llvm::BasicBlock* done = nullptr;
    if (mask != nullptr) {
        auto* some = llvm::BasicBlock::Create(function_.getContext(), "stored", &function_);
        done = llvm::BasicBlock::Create(function_.getContext(), "store.done", &function_);
        builder_.CreateCondBr(any(mask), some, done);
        builder_.SetInsertPoint(some);
    }
    llvm::Value* last = nullptr;
    if (shapes_.of(value).is_uniform()) {
        last = scalar(value);
    } else if (mask == nullptr) {
        last = value_of_lane(vector(value), *value->getType(), width_ - 1);
    } else {
        llvm::Value* active = builder_.CreateBitCast(mask, builder_.getIntNTy(width_));
        llvm::Value* behind = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, active, builder_.getTrue());
        llvm::Value* lane = builder_.CreateSub(llvm::ConstantInt::get(behind->getType(), width_ - 1), behind);
        last = builder_.CreateExtractElement(vector(value), builder_.CreateZExtOrTrunc(lane, builder_.getInt64Ty()));
    }
    builder_.CreateAlignedStore(last, scalar(store.getPointerOperand()), store.getAlign());
    if (done != nullptr) {
        builder_.CreateBr(done);
        builder_.SetInsertPoint(done);
    }
}

LaneCode::TwoWays LaneCode::branch_on(llvm::Value* condition) {
    const auto block = [&](const char* name) {
        return llvm::BasicBlock::Create(function_.getContext(), name, &function_);
    };
    // Behind the check of a whole row, the lanes are asked where it failed.
    const WholeRowCheck row = std::exchange(whole_row_, {});
    const TwoWays ways{row.together ? row.together : block("together"), block("apart"), block("accessed")};
    if (row.lanes) {
        builder_.SetInsertPoint(row.lanes);
        rare_blocks_.push_back({row.lanes, ways.apart});
    }
    builder_.CreateCondBr(condition, ways.together, ways.apart);
    return ways;
}

// The address of the last lane, where each lane's address is one element below that of the lane before.
llvm::Value* LaneCode::lowest_of_backward_row(llvm::Type& type, llvm::Value* first) {
    const int64_t elements = 1 - static_cast<int64_t>(width_);
    return builder_.CreateGEP(&type, first, builder_.getInt64(static_cast<uint64_t>(elements)));
}

llvm::Value* LaneCode::load_row(llvm::LoadInst& load, const LaneAccess& access, llvm::Value* first, llvm::Value* mask) {
    if (!mask || !access.takes_mask)
        return load_with_step(builder_, load, access, first, width_);
    llvm::Type* const type = wide(load.getType());
    const auto masked = [&](llvm::Value* from, llvm::Value* lanes) {
        return builder_.CreateMaskedLoad(type, from, alignment_of_row(load), repeated(lanes, *load.getType()),
                                         llvm::Constant::getNullValue(type));
    };
    if (access.is_consecutive())
        return masked(first, mask);
    llvm::Value* const last = lowest_of_backward_row(*load.getType(), first);
    return reversed(builder_, masked(last, reversed(builder_, mask, width_)), width_);
}

void LaneCode::store_row(const LaneAccess& access, llvm::StoreInst& store, llvm::Value* first, llvm::Value* mask) {
    llvm::Type* type = store.getValueOperand()->getType();
    if (access.step > 1) {
        llvm::SmallVector<llvm::Value*, lane_step_max> values;
        llvm::Align align = store.getAlign();
        for (llvm::Instruction* member : access.group) {
            auto* its = llvm::cast<llvm::StoreInst>(member);
            values.push_back(vector(its->getValueOperand()));
            align = std::min(align, its->getAlign());
        }
        const int64_t elements = elements_between(store, *access.group.front());
        llvm::Value* const front = builder_.CreateGEP(type, first, builder_.getInt64(static_cast<uint64_t>(elements)));
        store_group(builder_, values, front, align, access, width_, mask);
        return;
    }
    llvm::Value* value = vector(store.getValueOperand());
    if (access.step == -1) {
        value = reversed(builder_, value, width_);
        first = lowest_of_backward_row(*type, first);
        mask = mask && access.takes_mask ? reversed(builder_, mask, width_) : mask;
    }
    if (mask && access.takes_mask)
        builder_.CreateMaskedStore(value, first, alignment_of_row(store), repeated(mask, *type));
    else
        builder_.CreateAlignedStore(value, first, alignment_of_row(store));
}

llvm::Value* LaneCode::lane_address(llvm::Value* address, unsigned lane) {
    const LaneShape shape = shapes_.of(address);
    if (!shape.is_strided())
        return lane_of_addresses(builder_, *vector(address), lane);
    return builder_.CreateGEP(builder_.getInt8Ty(), scalar(address),
                              builder_.getInt64(static_cast<uint64_t>(shape.stride) * lane));
}

// Adds the parts of an index to those of `place`; false where a part is neither the same for all lanes nor the same in all iterations of `loop`. Sums
// that are extended must not wrap around, as is known of those of an `int`.
bool LaneCode::add_to_place(llvm::Value& index, uint64_t bytes, const llvm::Loop& loop, PlaceInRow& place) const {
    constexpr size_t parts_max = 8;
    llvm::SmallVector<llvm::Value*, parts_max> parts{&index};
    while (!parts.empty()) {
        llvm::Value* const part = parts.pop_back_val();
        if (parts.size() + place.uniform.size() + place.varying.size() >= parts_max)
            return false;
        if (shapes_.of(part).is_uniform()) {
            place.uniform.emplace_back(part, bytes);
            continue;
        }
        if (loop.isLoopInvariant(part)) {
            place.varying.emplace_back(part, bytes);
            continue;
        }
        auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(part);
        if (const auto* extended = llvm::dyn_cast<llvm::SExtInst>(part))
            sum = llvm::dyn_cast<llvm::BinaryOperator>(extended->getOperand(0));
        if (sum == nullptr || sum->getOpcode() != llvm::Instruction::Add ||
            (!sum->getType()->isIntegerTy(address_bits) && !sum->hasNoSignedWrap()))
            return false;
        parts.append({sum->getOperand(0), sum->getOperand(1)});
    }
    return true;
}

// Splits an address into a row, which each lane has computed before the innermost loop, and an index in the row that is the same for all
// lanes. Returns nothing for an address of another form.
std::optional<LaneCode::PlaceInRow> LaneCode::place_in_row(const llvm::Value* address) const {
    const auto* place = llvm::dyn_cast<llvm::GetElementPtrInst>(address);
    if (place == nullptr || shapes_.of(place).is_strided())
        return std::nullopt;
    const llvm::Loop* const loop = plan_.loops->getLoopFor(place->getParent());
    if (loop == plan_.loop)
        return std::nullopt;
    PlaceInRow found;
    for (; place != nullptr && loop->contains(place);
         place = llvm::dyn_cast<llvm::GetElementPtrInst>(place->getPointerOperand())) {
        llvm::SmallMapVector<llvm::Value*, llvm::APInt, 4> indices;
        llvm::APInt distance(address_bits, 0);
        if (plan_.privates.scale(place) != 1 ||
            !place->collectOffset(function_.getDataLayout(), address_bits, indices, distance))
            return std::nullopt;
        for (const auto& [index, bytes] : indices)
            if (!add_to_place(*index, bytes.getZExtValue(), *loop, found))
                return std::nullopt;
        found.distance += distance.getSExtValue();
        found.base = const_cast<llvm::Value*>(place->getPointerOperand());
    }
    const bool is_row = loop->isLoopInvariant(found.base) &&
                        (!found.varying.empty() || !shapes_.of(found.base).is_uniform()) && !found.uniform.empty();
    return is_row ? std::optional(found) : std::nullopt;
}

// To extract an address from a vector takes as long as to load from it. Rows do not change in the loop, so LLVM extracts them before it. An
// inactive lane reads what the first active lane reads, so that the loop has no select between addresses.
llvm::SmallVector<llvm::Value*, 16> LaneCode::lane_addresses_in_rows(const PlaceInRow& place, llvm::Align align,
                                                                     int64_t distance, llvm::Value* mask) {
    llvm::Value* rows = vector(place.base);
    for (const auto& [part, bytes] : place.varying) {
        llvm::Value* const elements = builder_.CreateSExtOrTrunc(vector(part), wide(builder_.getInt64Ty()));
        rows = builder_.CreateGEP(builder_.getInt8Ty(), rows,
                                  builder_.CreateMul(elements, splat(builder_.getInt64(bytes))));
    }
    llvm::Value* offset = builder_.getInt64(static_cast<uint64_t>(distance + place.distance));
    for (const auto& [part, bytes] : place.uniform) {
        llvm::Value* const elements = builder_.CreateSExtOrTrunc(scalar(part), builder_.getInt64Ty());
        offset = builder_.CreateAdd(builder_.CreateMul(elements, builder_.getInt64(bytes)), offset);
    }
    if (mask != nullptr) {
        llvm::Value* const some = any(mask);
        llvm::Value* const active = builder_.CreateBitCast(mask, builder_.getIntNTy(width_));
        llvm::Value* lane = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, active, builder_.getFalse());
        lane = builder_.CreateZExtOrTrunc(
            builder_.CreateSelect(some, lane, llvm::Constant::getNullValue(lane->getType())), builder_.getInt64Ty());
        llvm::Value* const unread = builder_.CreateAddrSpaceCast(dummy(align), place.base->getType());
        llvm::Value* const first = builder_.CreateSelect(some, builder_.CreateExtractElement(rows, lane), unread);
        rows = builder_.CreateSelect(mask, rows, builder_.CreateVectorSplat(width_, first));
        offset = builder_.CreateSelect(some, offset, builder_.getInt64(0));
    }
    llvm::SmallVector<llvm::Value*, 16> addresses;
    for (unsigned lane = 0; lane < width_; ++lane)
        addresses.push_back(
            builder_.CreateGEP(builder_.getInt8Ty(), builder_.CreateExtractElement(rows, lane), offset));
    return addresses;
}

// The address of each lane, `distance` bytes beyond `address`. An inactive lane gets an address that can be read, with the same alignment.
llvm::SmallVector<llvm::Value*, 16> LaneCode::lane_addresses(llvm::Value* address, llvm::Align align, int64_t distance,
                                                             llvm::Value* mask) {
    // Under a mask the rows that are read change with it.
    if (const auto place = place_in_row(address); place && (mask == nullptr || place->varying.empty()))
        return lane_addresses_in_rows(*place, align, distance, mask);
    const auto moved = [&](llvm::Value* place) {
        return builder_.CreateGEP(builder_.getInt8Ty(), place, builder_.getInt64(static_cast<uint64_t>(distance)));
    };
    llvm::Value* active = nullptr;
    if (mask) {
        llvm::Value* const unread = builder_.CreateAddrSpaceCast(dummy(align), address->getType());
        active = builder_.CreateSelect(mask, moved(vector(address)), builder_.CreateVectorSplat(width_, unread));
    }
    llvm::SmallVector<llvm::Value*, 16> addresses;
    for (unsigned lane = 0; lane < width_; ++lane)
        addresses.push_back(active ? builder_.CreateExtractElement(active, lane) : moved(lane_address(address, lane)));
    return addresses;
}

// Loads a structure as one number. Where the processor has no gathers, LLVM would make a branch for each lane of a masked gather. Here the
// inactive lanes load from an address that can be read (lane_addresses), so that no branch is needed.
llvm::Value* LaneCode::load_part(llvm::Type& type, llvm::Align align, llvm::Value* address, int64_t distance,
                                 llvm::Value* mask) {
    if (!mask || accesses_.has_gather(type, align))
        return load_apart(type, align, address, distance, mask);
    return load_one_by_one(builder_, type, lane_addresses(address, align, distance, mask), align);
}

// Loads one element for each lane, `distance` bytes beyond `address`.
llvm::Value* LaneCode::load_apart(llvm::Type& type, llvm::Align align, llvm::Value* address, int64_t distance,
                                  llvm::Value* mask) {
    if (type.isVectorTy())
        return load_vectors_apart(type, align, address, distance, mask);
    const bool is_one_by_one = width_ <= accessed_one_by_one_max || accesses_.are_quicker_one_by_one(type, *address);
    if (mask || !is_one_by_one || is_from_table_of_bytes(type, *address, shapes_)) {
        llvm::Value* places = builder_.CreateGEP(builder_.getInt8Ty(), vector(address),
                                                 builder_.getInt64(static_cast<uint64_t>(distance)));
        return builder_.CreateMaskedGather(wide(&type), places, align, mask ? mask : all_lanes());
    }
    return load_one_by_one(builder_, type, lane_addresses(address, align, distance, nullptr), align);
}

}  // namespace polder::compiler::workgroup
