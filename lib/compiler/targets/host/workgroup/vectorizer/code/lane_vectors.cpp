// Explicit vectors in lanes (lane_types.h): masks and numbers are repeated for each element of a lane, and instructions that move the elements
// of one vector move them in all lanes.
#include "lane_code.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/shuffled_elements.h"
#include "targets/host/workgroup/vectorizer/analysis/vectors_of_table.h"
#include "targets/host/workgroup/vectorizer/preparation/chosen_elements.h"

#include <llvm/Analysis/VectorUtils.h>

namespace polder::compiler::workgroup {

// Each lane's number once for each element of a lane's `type`.
llvm::Value* LaneCode::repeated(llvm::Value* numbers, const llvm::Type& type) {
    const unsigned elements = elements_of_lane(type);
    return elements == 1 ? numbers
                         : builder_.CreateShuffleVector(numbers, llvm::createReplicatedMask(elements, width_));
}

// A uniform value in all lanes.
llvm::Value* LaneCode::splat(llvm::Value* value) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (type == nullptr)
        return builder_.CreateVectorSplat(width_, value);
    llvm::SmallVector<int> places;
    for (unsigned lane = 0; lane < width_; ++lane)
        for (unsigned element = 0; element < elements_of_lane(*type); ++element)
            places.push_back(element < type->getNumElements() ? static_cast<int>(element) : llvm::PoisonMaskElem);
    return builder_.CreateShuffleVector(value, places);
}

// The value of one lane, of type `type`.
llvm::Value* LaneCode::value_of_lane(llvm::Value* values, const llvm::Type& type, unsigned lane) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
    if (vector == nullptr)
        return builder_.CreateExtractElement(values, lane);
    return builder_.CreateShuffleVector(
        values, llvm::createSequentialMask(lane * elements_of_lane(type), vector->getNumElements(), 0));
}

// The explicit vectors of all lanes side by side.
llvm::Value* LaneCode::joined(llvm::ArrayRef<llvm::Value*> vectors) {
    const auto* type = llvm::cast<llvm::FixedVectorType>(vectors.front()->getType());
    const unsigned missing = elements_of_lane(*type) - type->getNumElements();
    llvm::SmallVector<llvm::Value*> parts;
    for (llvm::Value* one : vectors)
        parts.push_back(missing == 0 ? one
                                     : builder_.CreateShuffleVector(
                                           one, llvm::createSequentialMask(0, type->getNumElements(), missing)));
    return llvm::concatenateVectors(builder_, parts);
}

// Each lane loads its explicit vector.
llvm::Value* LaneCode::load_vectors_apart(llvm::Type& type, llvm::Align align, llvm::Value* address, int64_t distance,
                                          llvm::Value* mask) {
    llvm::SmallVector<llvm::Value*> vectors;
    for (llvm::Value* place : lane_addresses(address, align, distance, mask))
        vectors.push_back(builder_.CreateAlignedLoad(&type, place, align));
    return joined(vectors);
}

void LaneCode::store_vectors_apart(llvm::StoreInst& store, llvm::Value* mask) {
    llvm::Type& type = *store.getValueOperand()->getType();
    llvm::Value* const values = vector(store.getValueOperand());
    if (mask == nullptr) {
        for (const auto [lane, place] :
             llvm::enumerate(lane_addresses(store.getPointerOperand(), store.getAlign(), 0, nullptr)))
            builder_.CreateAlignedStore(value_of_lane(values, type, static_cast<unsigned>(lane)), place,
                                        store.getAlign());
        return;
    }
    for (unsigned lane = 0; lane < width_; ++lane) {
        llvm::Value* const value = value_of_lane(values, type, lane);
        llvm::Value* const place = lane_address(store.getPointerOperand(), lane);
        llvm::Value* const is_active = builder_.CreateExtractElement(mask, lane);
        const auto elements = llvm::cast<llvm::FixedVectorType>(type).getElementCount();
        builder_.CreateMaskedStore(value, place, store.getAlign(), builder_.CreateVectorSplat(elements, is_active));
    }
}

llvm::Value* LaneCode::emit_extraction(llvm::ExtractElementInst& extract) {
    const unsigned elements = elements_of_lane(*extract.getVectorOperandType());
    llvm::Value* const vectors = vector(extract.getVectorOperand());
    const auto element = [&](unsigned index) {
        return builder_.CreateShuffleVector(vectors, llvm::createStrideMask(index, elements, width_));
    };
    if (const auto* index = llvm::dyn_cast<llvm::ConstantInt>(extract.getIndexOperand()))
        return element(static_cast<unsigned>(index->getLimitedValue(elements - 1)));
    llvm::Value* const indices = vector(extract.getIndexOperand());
    llvm::SmallVector<llvm::Value*> left;
    for (unsigned index = 0; index < extract.getVectorOperandType()->getElementCount().getFixedValue(); ++index)
        left.push_back(element(index));
    return chosen_by_bits(builder_, left, *indices);
}

llvm::Value* LaneCode::emit_insertion(llvm::InsertElementInst& insert) {
    if (const auto from_table = vector_of_table(insert, [&](llvm::LoadInst& load) { return accesses_.table_of(load); }))
        return look_up(builder_, *from_table, *vector(from_table->indices));
    if (const auto shuffled = shuffled_elements(insert);
        shuffled && is_permuted(*shuffled, width_, accesses_.permutes()))
        return permuted(builder_, *vector(shuffled->elements), *vector(shuffled->places), width_, accesses_.permutes());
    const llvm::Type& type = *insert.getType();
    llvm::Value* const numbers = repeated(vector(insert.getOperand(1)), type);
    if (llvm::isa<llvm::UndefValue>(insert.getOperand(0)))
        return numbers;
    const unsigned elements = elements_of_lane(type);
    llvm::Value* const index = insert.getOperand(2);
    llvm::SmallVector<llvm::Constant*> own;
    for (unsigned place = 0; place < elements * width_; ++place)
        own.push_back(llvm::ConstantInt::get(index->getType(), place % elements));
    llvm::Value* const is_inserted =
        builder_.CreateICmpEQ(repeated(vector(index), type), llvm::ConstantVector::get(own));
    return builder_.CreateSelect(is_inserted, numbers, vector(insert.getOperand(0)));
}

llvm::Value* LaneCode::emit_moved_elements(llvm::Instruction& instruction) {
    if (auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction))
        return emit_extraction(*extract);
    if (auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction))
        return emit_insertion(*insert);
    const llvm::Type& type = *instruction.getType();
    auto& shuffle = llvm::cast<llvm::ShuffleVectorInst>(instruction);
    if (llvm::Value* const number = llvm::getSplatValue(&shuffle))
        return repeated(vector(number), type);
    const auto& from = *llvm::cast<llvm::FixedVectorType>(shuffle.getOperand(0)->getType());
    const unsigned elements = elements_of_lane(from), own = elements_of_lane(type);
    llvm::SmallVector<int> places;
    for (unsigned lane = 0; lane < width_; ++lane)
        for (unsigned element = 0; element < own; ++element) {
            const bool is_own = element < shuffle.getShuffleMask().size();
            const int chosen = is_own ? shuffle.getMaskValue(element) : llvm::PoisonMaskElem;
            const auto place = static_cast<unsigned>(chosen);
            const bool is_second = place >= from.getNumElements();
            places.push_back(chosen < 0 ? llvm::PoisonMaskElem
                                        : static_cast<int>(lane * elements + (is_second ? elements * width_ : 0) +
                                                           (is_second ? place - from.getNumElements() : place)));
        }
    return builder_.CreateShuffleVector(vector(shuffle.getOperand(0)), vector(shuffle.getOperand(1)), places);
}

// Where the condition is a number, it chooses all elements of a lane.
llvm::Value* LaneCode::emit_choice(llvm::SelectInst& choice) {
    llvm::Value* const condition = choice.getCondition();
    llvm::Value* const first = vector(choice.getTrueValue());
    llvm::Value* const second = vector(choice.getFalseValue());
    if (!choice.getType()->isVectorTy() || condition->getType()->isVectorTy())
        return builder_.CreateSelect(vector(condition), first, second);
    if (shapes_.of(condition).is_uniform())
        return builder_.CreateSelect(scalar(condition), first, second);
    return builder_.CreateSelect(repeated(vector(condition), *choice.getType()), first, second);
}

}  // namespace polder::compiler::workgroup
