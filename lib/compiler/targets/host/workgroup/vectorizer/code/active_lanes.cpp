// An instruction without a vector form, for the active lanes of a vector: a loop over the bits of the mask.
//
// A copy of the instruction for each of 16 lanes, under a branch each, takes 16 branches where one lane is active. The processor mispredicts them where the
// mask varies, and 33 basic blocks take long to compile. The loop has one branch for each active lane.
//
// Before the loop, the vectors that the lanes need are stored, one behind the other. Processors that can move the active lanes' values to the front of a
// register keep them there, and the loop shifts them by one each time: an atomic instruction waits until all stores before it are in the cache (votes
// under a rare mask took 1.4 times as long on an Intel server processor with stores, and as long on a Zen 4). What follows from one such value and values that all lanes share,
// and is used by nothing else, is computed in the loop: an address of 64 bits is often a base and an index of 32. Results are stored in the loop, too,
// and loaded as a vector behind it.
#include "lane_code.h"
#include "values_in_memory.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Instructions.h>
#include <numeric>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t queues_max = 2;  // more would take registers from the code around

bool has_used_result(const llvm::Instruction& instruction) {
    return !instruction.getType()->isVoidTy() && !instruction.use_empty();
}

}  // namespace

bool LaneCode::is_made_for_one_lane(const llvm::Value& value) const {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || !instruction->hasOneUse() || plan_.privates.scale(instruction) != 1 ||
        !is_scalar(*instruction->getType()))
        return false;
    const bool is_short =
        llvm::isa<llvm::GetElementPtrInst, llvm::SExtInst, llvm::ZExtInst, llvm::TruncInst>(instruction) ||
        (llvm::isa<llvm::BinaryOperator>(instruction) && !instruction->isIntDivRem() &&
         instruction->getType()->isIntegerTy());
    const auto varies = [&](const llvm::Use& operand) { return !shapes_.of(operand.get()).is_uniform(); };
    return is_short && llvm::count_if(instruction->operands(), varies) <= 1;
}

void LaneCode::collect_vectors_of(llvm::Value& value, llvm::SmallSetVector<llvm::Value*, 4>& vectors) const {
    if (shapes_.of(&value).is_strided())
        return;
    if (!is_made_for_one_lane(value)) {
        vectors.insert(&value);
        return;
    }
    for (const llvm::Use& operand : llvm::cast<llvm::Instruction>(value).operands())
        collect_vectors_of(*operand.get(), vectors);
}

bool LaneCode::loops_over_active_lanes(const llvm::Instruction& instruction) const {
    const llvm::DataLayout& layout = instruction.getDataLayout();
    if (width_ > lanes_in_memory_max ||
        (has_used_result(instruction) && !is_array_element(*instruction.getType(), layout)))
        return false;
    llvm::SmallSetVector<llvm::Value*, 4> vectors;
    for (const llvm::Use& operand : instruction.operands())
        collect_vectors_of(*operand.get(), vectors);
    return llvm::all_of(vectors, [&](llvm::Value* value) { return is_array_element(*value->getType(), layout); });
}

// Whether there is an instruction that moves the values of active lanes to the front, in one register.
bool LaneCode::is_moved_to_front(const llvm::Value& value) const {
    constexpr unsigned register_bits = 512;
    llvm::Type* const type = wide(value.getType());
    const llvm::DataLayout& layout = function_.getDataLayout();
    return !value.getType()->isPointerTy() && layout.getTypeSizeInBits(type) <= register_bits &&
           accesses_.target().isLegalMaskedCompressStore(type, layout.getABITypeAlign(value.getType()));
}

// The values of `vectors` in the loop over active lanes that `lane_loop` is: from the front of registers that shift by one in each iteration.
void LaneCode::shift_values(const llvm::SmallSetVector<llvm::Value*, 4>& vectors, llvm::ArrayRef<llvm::Value*> fronts,
                            llvm::BasicBlock& before, llvm::SmallDenseMap<llvm::Value*, llvm::Value*>& loaded) {
    llvm::BasicBlock* const lane_loop = builder_.GetInsertBlock();
    llvm::SmallVector<int> shifted(width_, llvm::PoisonMaskElem);
    std::iota(shifted.begin(), shifted.end() - 1, 1);
    for (const auto [value, front] : llvm::zip(vectors, fronts)) {
        llvm::PHINode* const queue = llvm::PHINode::Create(front->getType(), 2, "queue");
        queue->insertBefore(lane_loop->begin());
        queue->addIncoming(front, &before);
        queue->addIncoming(builder_.CreateShuffleVector(queue, shifted), lane_loop);
        loaded[value] = builder_.CreateExtractElement(queue, uint64_t{0});
    }
}

llvm::Value* LaneCode::value_in_lane(llvm::Value& value, llvm::Value& lane,
                                     const llvm::SmallDenseMap<llvm::Value*, llvm::Value*>& loaded) {
    const LaneShape shape = shapes_.of(&value);
    if (shape.is_uniform())
        return scalar(&value);
    if (shape.is_strided()) {
        llvm::Value* const distance = builder_.CreateMul(&lane, builder_.getInt64(static_cast<uint64_t>(shape.stride)));
        if (value.getType()->isPointerTy())
            return builder_.CreateGEP(builder_.getInt8Ty(), scalar(&value), distance);
        return builder_.CreateAdd(scalar(&value), builder_.CreateSExtOrTrunc(distance, value.getType()));
    }
    if (llvm::Value* const found = loaded.lookup(&value))
        return found;
    llvm::Instruction* const copy = llvm::cast<llvm::Instruction>(value).clone();
    for (llvm::Use& operand : copy->operands())
        operand.set(value_in_lane(*operand.get(), lane, loaded));
    return builder_.Insert(copy);
}

llvm::Value* LaneCode::emit_for_active_lanes(llvm::Instruction& instruction, llvm::Value& mask) {
    PlacesInMemory memory(function_.getDataLayout(), width_);
    llvm::SmallSetVector<llvm::Value*, 4> vectors;
    for (const llvm::Use& operand : instruction.operands())
        collect_vectors_of(*operand.get(), vectors);
    const bool in_registers = instruction.isAtomic() && vectors.size() <= queues_max &&
                              llvm::all_of(vectors, [&](llvm::Value* value) { return is_moved_to_front(*value); });
    llvm::SmallVector<uint64_t> places;
    llvm::SmallVector<llvm::Value*> fronts;
    for (llvm::Value* value : vectors)
        if (in_registers)
            fronts.push_back(
                builder_.CreateIntrinsic(llvm::Intrinsic::experimental_vector_compress, {wide(value->getType())},
                                         {vector(value), &mask, llvm::PoisonValue::get(wide(value->getType()))}));
        else
            places.push_back(memory.next(*value->getType()));
    const bool has_result = has_used_result(instruction);
    const uint64_t result_place = has_result ? memory.next(*instruction.getType()) : 0;
    if (memory.bytes() > 0)
        lane_values_ = memory_for(memory.bytes(), function_, lane_values_);
    const auto address = [&](uint64_t place) {
        return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), lane_values_, place);
    };
    for (const auto [value, place] : llvm::zip(vectors, places))
        builder_.CreateAlignedStore(vector(value), address(place), llvm::Align(values_align));
    llvm::BasicBlock& before = *builder_.GetInsertBlock();
    for_each_lane(builder_, *mask_bits(builder_, mask), [&](llvm::Value& lane) {
        llvm::SmallDenseMap<llvm::Value*, llvm::Value*> loaded;
        if (in_registers)
            shift_values(vectors, fronts, before, loaded);
        for (const auto [value, place] : llvm::zip(vectors, places))
            loaded[value] = builder_.CreateLoad(value->getType(),
                                                builder_.CreateInBoundsGEP(value->getType(), address(place), &lane));
        llvm::Instruction* const copy = instruction.clone();
        for (llvm::Use& operand : copy->operands())
            operand.set(value_in_lane(*operand.get(), lane, loaded));
        copy->setMetadata(llvm::LLVMContext::MD_access_group, nullptr);
        builder_.Insert(copy);
        if (has_result)
            builder_.CreateStore(copy, builder_.CreateInBoundsGEP(copy->getType(), address(result_place), &lane));
    });
    return has_result ? builder_.CreateAlignedLoad(wide(instruction.getType()), address(result_place),
                                                   llvm::Align(values_align))
                      : nullptr;
}

}  // namespace polder::compiler::workgroup
