// A shuffle is a chain of insertions whose numbers are extracted from one vector at the elements of another one. The places of each lane's vector are numbered
// from where it begins in the register, or in the half of it that an instruction chooses from.
#include "shuffled_elements.h"

#include "lane_types.h"

#include <algorithm>
#include <llvm/ADT/SmallBitVector.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {
namespace {

using namespace llvm::PatternMatch;

constexpr unsigned shuffled_elements_min = 4, shuffled_byte_bits = 8, permuted_bits = 512, permuted_registers_max = 4;
constexpr unsigned narrow_bits = 256, half_bits = 128, short_bits = 16, word_bits = 32;

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

// Whether AVX2 has an instruction for vectors within each half of a register of 256 bits.
bool is_permuted_in_halves(const ShuffledElements& shuffled, Permutes permutes) {
    const llvm::FixedVectorType& type = vector_type(*shuffled.elements);
    const unsigned bits = type.getScalarSizeInBits(), all = bits_of_lane(type);
    if (permutes == Permutes::none || type.getNumElements() != vector_type(*shuffled.places).getNumElements())
        return false;
    return bits == word_bits ? all == half_bits : bits < word_bits && all <= half_bits;
}

// Of one register of 256 bits. `places`: of elements of each half.
llvm::Value* permuted_in_halves(llvm::IRBuilder<>& builder, llvm::Value* words, llvm::Value* places) {
    llvm::Type* const type = places->getType();
    const auto bytes = [&](llvm::Value* value) {
        return builder.CreateBitCast(value,
                                     llvm::FixedVectorType::get(builder.getInt8Ty(), narrow_bits / shuffled_byte_bits));
    };
    if (type->getScalarSizeInBits() == word_bits) {
        auto* const floats = llvm::FixedVectorType::get(builder.getFloatTy(), narrow_bits / word_bits);
        return builder.CreateBitCast(builder.CreateIntrinsic(floats, llvm::Intrinsic::x86_avx_vpermilvar_ps_256,
                                                             {builder.CreateBitCast(words, floats), places}),
                                     type);
    }
    if (type->getScalarSizeInBits() == short_bits) {
        constexpr uint64_t both_bytes = 0x0202, second_byte = 0x0100;
        places = builder.CreateAdd(builder.CreateMul(places, llvm::ConstantInt::get(type, both_bytes)),
                                   llvm::ConstantInt::get(type, second_byte));
    }
    llvm::Value* const chosen = builder.CreateIntrinsic(bytes(words)->getType(), llvm::Intrinsic::x86_avx2_pshuf_b,
                                                        {bytes(words), bytes(places)});
    return builder.CreateBitCast(chosen, type);
}

// What LLVM makes of the vectors of one work-item.
bool is_one_instruction(const ShuffledElements& shuffled, Permutes permutes) {
    const llvm::FixedVectorType& type = vector_type(*shuffled.elements);
    const unsigned bits = type.getScalarSizeInBits(), all = bits_of_lane(type);
    if (permutes == Permutes::none || type.getNumElements() != vector_type(*shuffled.places).getNumElements())
        return false;
    if (bits <= word_bits && all == half_bits)
        return true;
    return permutes_wide_registers(permutes, bits) ? all == narrow_bits || all == permuted_bits
                                                   : bits == word_bits && all == narrow_bits;
}

struct Part {
    std::optional<ShuffledElements> shuffled;
    bool is_last = false;
};

// The shuffle that an extraction or insertion is a part of.
Part part_of_shuffle(const llvm::Instruction& part) {
    for (const auto* at = &part; llvm::isa<llvm::InsertElementInst, llvm::ExtractElementInst, llvm::ZExtInst>(at);
         at = llvm::cast<llvm::Instruction>(*at->user_begin())) {
        if (const auto* const insertion = llvm::dyn_cast<llvm::InsertElementInst>(at))
            if (const auto shuffled = shuffled_elements(*insertion))
                return {shuffled, at == &part};
        if (!at->hasOneUse())
            break;
    }
    return {};
}

}  // namespace

std::optional<ShuffledElements> shuffled_elements(const llvm::InsertElementInst& last) {
    const unsigned count = vector_type(last).getNumElements();
    if (count < shuffled_elements_min || !llvm::isPowerOf2_32(count) ||
        llvm::any_of(last.users(), llvm::IsaPred<llvm::InsertElementInst>))
        return std::nullopt;
    ShuffledElements shuffled;
    llvm::SmallBitVector missing(count, true);
    for (const llvm::Value* at = &last; missing.any();) {
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
    if (bits < shuffled_byte_bits || !llvm::isPowerOf2_32(bits) || !llvm::isPowerOf2_32(lanes) ||
        lanes * bits_of_lane(type) > permuted_registers_max * permuted_bits)
        return false;
    if (!permutes_wide_registers(permutes, bits))
        return is_permuted_in_halves(shuffled, permutes);
    return bits > shuffled_byte_bits || lanes * elements_of_lane(type) <= 1U << shuffled_byte_bits;
}

std::optional<double> instructions_of_shuffle(const llvm::Instruction& part, unsigned lanes, Permutes permutes) {
    constexpr double sum_and_permutation = 2, places_of_bytes = 2;
    const Part found = part_of_shuffle(part);
    if (!found.shuffled || !is_permuted(*found.shuffled, lanes, permutes))
        return std::nullopt;
    const unsigned bits = vector_type(*found.shuffled->elements).getScalarSizeInBits();
    const bool has_bytes = bits == short_bits && !permutes_wide_registers(permutes, bits);
    return found.is_last ? sum_and_permutation + (has_bytes ? places_of_bytes : 0) : 0;
}

std::optional<double> saved_by_whole_shuffle(const llvm::Instruction& part, Permutes permutes) {
    const Part found = part_of_shuffle(part);
    if (!found.shuffled || !is_one_instruction(*found.shuffled, permutes))
        return std::nullopt;
    const unsigned elements = vector_type(*found.shuffled->elements).getNumElements();
    return found.is_last ? elements * (elements - 1) - 1 : 0;
}

llvm::Value* permuted(llvm::IRBuilder<>& builder, llvm::Value& elements, llvm::Value& places, unsigned lanes,
                      Permutes permutes) {
    const llvm::FixedVectorType& from = vector_type(elements);
    auto* const word = builder.getIntNTy(from.getScalarSizeInBits());
    const bool in_halves = !permutes_wide_registers(permutes, word->getBitWidth());
    const unsigned own = from.getNumElements() / lanes, count = vector_type(places).getNumElements();
    // The elements that one instruction chooses from, and how many of them are in a register.
    const unsigned register_bits = in_halves ? narrow_bits : permuted_bits;
    const unsigned in_register = register_bits / word->getBitWidth();
    const unsigned chosen_from = in_halves ? half_bits / word->getBitWidth() : from.getNumElements();
    llvm::SmallVector<llvm::Constant*> first;
    for (unsigned place = 0; place < count; ++place)
        first.push_back(llvm::ConstantInt::get(word, uint64_t{place / (count / lanes)} * own % chosen_from));
    llvm::Value* const numbers = builder.CreateAdd(
        builder.CreateZExtOrTrunc(&places, llvm::FixedVectorType::get(word, count)), llvm::ConstantVector::get(first));
    llvm::Value* const words =
        builder.CreateBitCast(&elements, llvm::FixedVectorType::get(word, from.getNumElements()));
    llvm::SmallVector<llvm::Value*, permuted_registers_max> registers, results;
    const unsigned taken = std::min(in_register, from.getNumElements());
    const auto part = [&](llvm::Value* all, unsigned begin) {
        return builder.CreateShuffleVector(all, llvm::createSequentialMask(begin, taken, in_register - taken));
    };
    for (unsigned begin = 0; begin < from.getNumElements(); begin += taken) {
        registers.push_back(part(words, begin));
        if (in_halves)
            results.push_back(
                builder.CreateShuffleVector(permuted_in_halves(builder, registers.back(), part(numbers, begin)),
                                            llvm::createSequentialMask(0, taken, 0)));
    }
    llvm::Value* const chosen =
        in_halves ? llvm::concatenateVectors(builder, results) : chosen_elements(builder, registers, *numbers);
    return builder.CreateBitCast(chosen, chosen->getType()->getWithNewType(from.getElementType()));
}

}  // namespace polder::compiler::workgroup
