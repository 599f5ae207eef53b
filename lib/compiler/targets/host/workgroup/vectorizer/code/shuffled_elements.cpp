#include "shuffled_elements.h"

#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"

#include <llvm/ADT/SmallBitVector.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {
namespace {

using namespace llvm::PatternMatch;

constexpr unsigned shuffled_elements_min = 4, shuffled_byte_bits = 8, permuted_bits = 512, permuted_registers_max = 4;

// The vector from which the inserted element is taken, at the place that its own element of another vector says.
ShuffledElements source_of(const llvm::InsertElementInst& insertion, uint64_t own) {
    ShuffledElements from;
    llvm::Value* place = nullptr;
    if (!match(insertion.getOperand(1), m_ExtractElt(m_Value(from.elements), m_Value(place))) ||
        !match(place, m_ZExtOrSelf(m_ExtractElt(m_Value(from.places), m_SpecificInt(own)))))
        return {};
    return from;
}

const llvm::FixedVectorType& vector_type(const llvm::Value& value) {
    return *llvm::cast<llvm::FixedVectorType>(value.getType());
}

unsigned bits_of_lane(const llvm::FixedVectorType& type) { return elements_of_lane(type) * type.getScalarSizeInBits(); }

}  // namespace

std::optional<ShuffledElements> shuffled_elements(llvm::InsertElementInst& last) {
    const unsigned count = vector_type(last).getNumElements();
    if (count < shuffled_elements_min || !llvm::isPowerOf2_32(count) ||
        llvm::any_of(last.users(), llvm::IsaPred<llvm::InsertElementInst>))
        return std::nullopt;
    ShuffledElements shuffled;
    llvm::SmallBitVector missing(count, true);
    for (llvm::Value* at = &last; missing.any();) {
        const auto* const insertion = llvm::dyn_cast<llvm::InsertElementInst>(at);
        uint64_t own = 0;
        if (insertion == nullptr || !match(insertion->getOperand(2), m_ConstantInt(own)) || own >= count ||
            !missing[static_cast<unsigned>(own)])
            return std::nullopt;
        const ShuffledElements from = source_of(*insertion, own);
        if (from.elements == nullptr)
            return std::nullopt;
        if (at == &last)
            shuffled = from;
        if (from.elements != shuffled.elements || from.places != shuffled.places)
            return std::nullopt;
        missing.reset(static_cast<unsigned>(own));
        at = insertion->getOperand(0);
    }
    return vector_type(*shuffled.places).getNumElements() == count ? std::optional{shuffled} : std::nullopt;
}

bool is_permuted(const ShuffledElements& shuffled, unsigned lanes, Permutes permutes) {
    const llvm::FixedVectorType& type = vector_type(*shuffled.elements);
    const unsigned bits = type.getScalarSizeInBits();
    return bits >= shuffled_byte_bits && llvm::isPowerOf2_32(bits) && permutes_wide_registers(permutes, bits) &&
           llvm::isPowerOf2_32(lanes) && lanes * bits_of_lane(type) <= permuted_registers_max * permuted_bits &&
           (bits > shuffled_byte_bits || lanes * elements_of_lane(type) <= 1U << shuffled_byte_bits);
}

llvm::Value* permuted(llvm::IRBuilder<>& builder, llvm::Value& elements, llvm::Value& places, unsigned lanes) {
    const llvm::FixedVectorType& from = vector_type(elements);
    auto* const word = builder.getIntNTy(from.getScalarSizeInBits());
    const unsigned own = from.getNumElements() / lanes, count = vector_type(places).getNumElements();
    llvm::SmallVector<llvm::Constant*> first;
    for (unsigned place = 0; place < count; ++place)
        first.push_back(llvm::ConstantInt::get(word, uint64_t{place / (count / lanes)} * own));
    llvm::Value* const numbers = builder.CreateAdd(
        builder.CreateZExtOrTrunc(&places, llvm::FixedVectorType::get(word, count)), llvm::ConstantVector::get(first));
    llvm::Value* const words =
        builder.CreateBitCast(&elements, llvm::FixedVectorType::get(word, from.getNumElements()));
    const unsigned in_register = permuted_bits / word->getBitWidth();
    llvm::SmallVector<llvm::Value*, permuted_registers_max> registers;
    const unsigned taken = std::min(in_register, from.getNumElements());
    for (unsigned begin = 0; begin < from.getNumElements(); begin += taken)
        registers.push_back(
            builder.CreateShuffleVector(words, llvm::createSequentialMask(begin, taken, in_register - taken)));
    llvm::Value* const chosen = chosen_elements(builder, registers, *numbers);
    return builder.CreateBitCast(chosen, chosen->getType()->getWithNewType(from.getElementType()));
}

}  // namespace polder::compiler::workgroup
