// Loads and stores of lanes: together where their places follow each other with a constant step, each on its own elsewhere.
// Where that is only likely, or holds only while all lanes are active, the code asks; a gather costs ten loads.
#include "lane_access.h"
#include "lane_code.h"

#include <llvm/Analysis/VectorUtils.h>

namespace polder::compiler::workgroup {

llvm::Value* LaneCode::emit_load(llvm::LoadInst& load, llvm::Value* mask) {
    const std::optional<LaneAccess> access = access_of(load, shapes_, guesses_, width_);
    if (!access)
        return load_apart(load, mask);
    llvm::Value* condition = condition_of(*access, load.getPointerOperand(), mask);
    if (condition == nullptr)
        return load_row(load, *access, mask);
    const TwoWays ways = branch_on(condition);
    builder_.SetInsertPoint(ways.together);
    llvm::Value* row = load_row(load, *access, mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.apart);
    llvm::Value* gathered = load_apart(load, mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
    llvm::PHINode* result = builder_.CreatePHI(row->getType(), 2);
    result->addIncoming(row, ways.together);
    result->addIncoming(gathered, ways.apart);
    return result;
}

void LaneCode::emit_store(llvm::StoreInst& store, llvm::Value* mask) {
    llvm::Value* value = store.getValueOperand();
    llvm::Value* to = store.getPointerOperand();
    if (!mask && shapes_.of(to).is_uniform()) {
        // The last work-item's is what remains.
        llvm::Value* last =
            shapes_.of(value).is_uniform() ? scalar(value) : builder_.CreateExtractElement(vector(value), width_ - 1);
        builder_.CreateAlignedStore(last, scalar(to), store.getAlign());
        return;
    }
    const std::optional<LaneAccess> access = access_of(store, shapes_, guesses_, width_);
    if (!access || (access->step > 1 && !access->is_whole_group())) {
        store_apart(store, mask);
        return;
    }
    // A group is stored where its last store is.
    if (llvm::any_of(access->group, [&](llvm::Instruction* other) { return store.comesBefore(other); }))
        return;
    llvm::Value* condition = condition_of(*access, to, mask);
    if (condition == nullptr) {
        store_row(*access, store, mask);
        return;
    }
    const TwoWays ways = branch_on(condition);
    builder_.SetInsertPoint(ways.together);
    store_row(*access, store, mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.apart);
    for (llvm::Instruction* member : access->group)
        store_apart(*llvm::cast<llvm::StoreInst>(member), mask);
    builder_.CreateBr(ways.done);
    builder_.SetInsertPoint(ways.done);
}

// What must hold for the lanes to be accessed together; null when it always does.
llvm::Value* LaneCode::condition_of(const LaneAccess& access, llvm::Value* address, llvm::Value* mask) {
    llvm::Value* condition = mask && !access.is_consecutive() ? builder_.CreateAndReduce(mask) : nullptr;
    if (access.is_certain)
        return condition;
    llvm::Value* addresses = vector(address);
    const int64_t stride = guesses_.of(address).stride;
    llvm::Value* expected =
        builder_.CreateGEP(builder_.getInt8Ty(), builder_.CreateVectorSplat(width_, first_place(access, address)),
                           lane_offsets(builder_.getInt64Ty(), stride));
    llvm::Value* follows = builder_.CreateAndReduce(builder_.CreateICmpEQ(addresses, expected));
    return condition ? builder_.CreateAnd(condition, follows) : follows;
}

llvm::Value* LaneCode::first_place(const LaneAccess& access, llvm::Value* address) {
    return access.is_certain ? scalar(address) : builder_.CreateExtractElement(vector(address), uint64_t{0});
}

LaneCode::TwoWays LaneCode::branch_on(llvm::Value* condition) {
    const auto block = [&](const char* name) {
        return llvm::BasicBlock::Create(function_.getContext(), name, &function_);
    };
    const TwoWays ways{block("together"), block("apart"), block("accessed")};
    builder_.CreateCondBr(condition, ways.together, ways.apart);
    return ways;
}

llvm::Value* LaneCode::load_row(llvm::LoadInst& load, const LaneAccess& access, llvm::Value* mask) {
    llvm::Value* first = first_place(access, load.getPointerOperand());
    llvm::Type* type = wide(load.getType());
    if (mask && access.is_consecutive())
        return builder_.CreateMaskedLoad(type, first, load.getAlign(), mask, llvm::Constant::getNullValue(type));
    return load_with_step(builder_, load, access, first, width_);
}

void LaneCode::store_row(const LaneAccess& access, llvm::StoreInst& store, llvm::Value* mask) {
    if (access.step > 1) {
        llvm::SmallVector<llvm::Value*, lane_step_max> values;
        llvm::Align align = store.getAlign();
        for (llvm::Instruction* member : access.group) {
            auto* its = llvm::cast<llvm::StoreInst>(member);
            values.push_back(vector(its->getValueOperand()));
            align = std::min(align, its->getAlign());
        }
        auto* first = llvm::cast<llvm::StoreInst>(access.group.front());
        store_group(builder_, values, first_place(access, first->getPointerOperand()), align);
        return;
    }
    llvm::Value* value = vector(store.getValueOperand());
    llvm::Value* first = first_place(access, store.getPointerOperand());
    if (access.step == -1) {
        value = builder_.CreateVectorReverse(value);
        first = builder_.CreateGEP(store.getValueOperand()->getType(), first,
                                   builder_.getInt64(static_cast<uint64_t>(1 - static_cast<int64_t>(width_))));
    }
    if (mask && access.is_consecutive())
        builder_.CreateMaskedStore(value, first, store.getAlign(), mask);
    else
        builder_.CreateAlignedStore(value, first, store.getAlign());
}

llvm::Value* LaneCode::lane_address(llvm::Value* address, unsigned lane) {
    const LaneShape shape = shapes_.of(address);
    if (!shape.is_strided())
        return builder_.CreateExtractElement(vector(address), lane);
    return builder_.CreateGEP(builder_.getInt8Ty(), scalar(address),
                              builder_.getInt64(static_cast<uint64_t>(shape.stride) * lane));
}

llvm::Value* LaneCode::load_apart(llvm::LoadInst& load, llvm::Value* mask) {
    llvm::Type* type = wide(load.getType());
    if (mask || width_ > accessed_one_by_one_max)
        return builder_.CreateMaskedGather(type, vector(load.getPointerOperand()), load.getAlign(),
                                           mask ? mask : all_lanes());
    llvm::Value* result = llvm::PoisonValue::get(type);
    for (unsigned lane = 0; lane < width_; ++lane) {
        llvm::Value* value =
            builder_.CreateAlignedLoad(load.getType(), lane_address(load.getPointerOperand(), lane), load.getAlign());
        result = builder_.CreateInsertElement(result, value, lane);
    }
    return result;
}

// In the order of the lanes, as a scatter: the last of several to one place remains.
void LaneCode::store_apart(llvm::StoreInst& store, llvm::Value* mask) {
    llvm::Value* values = vector(store.getValueOperand());
    if (mask || width_ > accessed_one_by_one_max) {
        builder_.CreateMaskedScatter(values, vector(store.getPointerOperand()), store.getAlign(),
                                     mask ? mask : all_lanes());
        return;
    }
    for (unsigned lane = 0; lane < width_; ++lane)
        builder_.CreateAlignedStore(builder_.CreateExtractElement(values, lane),
                                    lane_address(store.getPointerOperand(), lane), store.getAlign());
}

}  // namespace polder::compiler::workgroup
