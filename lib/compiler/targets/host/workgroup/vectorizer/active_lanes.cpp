// An instruction without a vector form, for the active lanes of a vector: a loop over the bits of the mask.
//
// A copy of the instruction for each of 16 lanes, under a branch each, takes 16 branches where one lane is active. The processor mispredicts them where the
// mask varies, and 33 basic blocks take long to compile. The loop has one branch for each active lane.
//
// Before the loop, the vectors that the lanes need are stored, one behind the other. What follows from one such value and values that all lanes share,
// and is used by nothing else, is computed in the loop: an address of 64 bits is often a base and an index of 32. Results are stored in the loop, too,
// and loaded as a vector behind it.
#include "lane_code.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned active_lanes_max = 64;  // bits of the mask
constexpr uint64_t vectors_align = 64;

// Whether a vector of `type` has the same layout in memory as an array of it.
bool is_like_array(llvm::Type& type, const llvm::DataLayout& layout) {
    return llvm::VectorType::isValidElementType(&type) &&
           layout.getTypeSizeInBits(&type) == layout.getTypeAllocSizeInBits(&type);
}

bool has_used_result(const llvm::Instruction& instruction) {
    return !instruction.getType()->isVoidTy() && !instruction.use_empty();
}

// The variable `known`, or a new one, with at least `bytes`.
llvm::AllocaInst* with_bytes(uint64_t bytes, llvm::Function& function, llvm::AllocaInst* known) {
    llvm::Type* const byte = llvm::Type::getInt8Ty(function.getContext());
    if (known == nullptr) {
        llvm::IRBuilder<> at(&*function.getEntryBlock().begin());
        known = at.CreateAlloca(llvm::ArrayType::get(byte, 0), nullptr, "active.values");
        known->setAlignment(llvm::Align(vectors_align));
    }
    const uint64_t before = llvm::cast<llvm::ArrayType>(known->getAllocatedType())->getNumElements();
    known->setAllocatedType(llvm::ArrayType::get(byte, std::max(before, bytes)));
    return known;
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
    if (width_ > active_lanes_max || (has_used_result(instruction) && !is_like_array(*instruction.getType(), layout)))
        return false;
    llvm::SmallSetVector<llvm::Value*, 4> vectors;
    for (const llvm::Use& operand : instruction.operands())
        collect_vectors_of(*operand.get(), vectors);
    return llvm::all_of(vectors, [&](llvm::Value* value) { return is_like_array(*value->getType(), layout); });
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
    const llvm::DataLayout& layout = function_.getDataLayout();
    uint64_t bytes = 0;
    const auto place_of_next = [&](llvm::Type* element) {
        const uint64_t place = bytes;
        bytes = llvm::alignTo(place + layout.getTypeAllocSize(element) * width_, vectors_align);
        return place;
    };
    llvm::SmallSetVector<llvm::Value*, 4> vectors;
    for (const llvm::Use& operand : instruction.operands())
        collect_vectors_of(*operand.get(), vectors);
    llvm::SmallVector<uint64_t> places;
    for (llvm::Value* value : vectors)
        places.push_back(place_of_next(value->getType()));
    const bool has_result = has_used_result(instruction);
    const uint64_t result_place = has_result ? place_of_next(instruction.getType()) : 0;
    active_values_ = with_bytes(bytes, function_, active_values_);
    const auto address = [&](uint64_t place) {
        return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), active_values_, place);
    };
    for (const auto [value, place] : llvm::zip(vectors, places))
        builder_.CreateAlignedStore(vector(value), address(place), llvm::Align(vectors_align));

    llvm::Value* const bits =
        builder_.CreateZExt(builder_.CreateBitCast(&mask, builder_.getIntNTy(width_)), builder_.getInt64Ty());
    llvm::BasicBlock* const before = builder_.GetInsertBlock();
    auto* const loop = llvm::BasicBlock::Create(function_.getContext(), "lane", &function_);
    auto* const done = llvm::BasicBlock::Create(function_.getContext(), "lanes.done", &function_);
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* const rest = builder_.CreatePHI(bits->getType(), 2, "rest");
    rest->addIncoming(bits, before);
    llvm::Value* const lane = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, rest, builder_.getTrue());
    llvm::SmallDenseMap<llvm::Value*, llvm::Value*> loaded;
    for (const auto [value, place] : llvm::zip(vectors, places))
        loaded[value] =
            builder_.CreateLoad(value->getType(), builder_.CreateInBoundsGEP(value->getType(), address(place), lane));
    llvm::Instruction* const copy = instruction.clone();
    for (llvm::Use& operand : copy->operands())
        operand.set(value_in_lane(*operand.get(), *lane, loaded));
    copy->setMetadata(llvm::LLVMContext::MD_access_group, nullptr);
    builder_.Insert(copy);
    if (has_result)
        builder_.CreateStore(copy, builder_.CreateInBoundsGEP(copy->getType(), address(result_place), lane));
    llvm::Value* const next = builder_.CreateAnd(rest, builder_.CreateSub(rest, builder_.getInt64(1)));
    rest->addIncoming(next, loop);
    builder_.CreateCondBr(builder_.CreateIsNull(next), done, loop);
    builder_.SetInsertPoint(done);
    return has_result ? builder_.CreateAlignedLoad(wide(instruction.getType()), address(result_place),
                                                   llvm::Align(vectors_align))
                      : nullptr;
}

}  // namespace polder::compiler::workgroup
