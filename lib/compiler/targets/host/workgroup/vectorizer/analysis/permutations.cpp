// One instruction chooses from one register of 256 bits, or from one or two of 512. More are two halves, and one more bit of the index says which.
#include "permutations.h"

#include <algorithm>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {

namespace {

constexpr unsigned byte_bits = 8, short_bits = 16, word_bits = 32, narrow_elements = 8;

bool is_narrow(const llvm::FixedVectorType& type) {
    return type.getNumElements() == narrow_elements && type.getScalarSizeInBits() == word_bits;
}

unsigned registers_at_once(bool are_wide) { return are_wide ? 2 : 1; }

llvm::Intrinsic::ID permutation(const llvm::FixedVectorType& type, bool is_of_two) {
    if (is_narrow(type))
        return llvm::Intrinsic::x86_avx2_permd;
    switch (type.getScalarSizeInBits()) {
    case byte_bits:
        return is_of_two ? llvm::Intrinsic::x86_avx512_vpermi2var_qi_512 : llvm::Intrinsic::x86_avx512_permvar_qi_512;
    case short_bits:
        return is_of_two ? llvm::Intrinsic::x86_avx512_vpermi2var_hi_512 : llvm::Intrinsic::x86_avx512_permvar_hi_512;
    case word_bits:
        return is_of_two ? llvm::Intrinsic::x86_avx512_vpermi2var_d_512 : llvm::Intrinsic::x86_avx512_permvar_si_512;
    default:
        return is_of_two ? llvm::Intrinsic::x86_avx512_vpermi2var_q_512 : llvm::Intrinsic::x86_avx512_permvar_di_512;
    }
}

// `indices`: one register of them.
llvm::Value* chosen(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> registers, llvm::Value* indices) {
    auto* const type = llvm::cast<llvm::FixedVectorType>(indices->getType());
    if (registers.size() == 1)
        return builder.CreateIntrinsic(type, permutation(*type, false), {registers[0], indices});
    if (registers.size() == 2 && !is_narrow(*type))
        return builder.CreateIntrinsic(type, permutation(*type, true), {registers[0], indices, registers[1]});
    // The instruction ignores the bits of an index above those that it needs.
    const size_t half = registers.size() / 2;
    llvm::Value* const low = chosen(builder, registers.take_front(half), indices);
    llvm::Value* const high = chosen(builder, registers.drop_front(half), indices);
    llvm::Value* const above =
        builder.CreateAnd(indices, llvm::ConstantInt::get(type, uint64_t{half} * type->getNumElements()));
    return builder.CreateSelect(builder.CreateIsNotNull(above), high, low);
}

}  // namespace

Permutes permutes_of(const llvm::TargetMachine* machine) {
    const auto has = [&](const char* features) { return machine->getMCSubtargetInfo()->checkFeatures(features); };
    if (machine == nullptr || !machine->getTargetTriple().isX86() || !has("+avx2"))
        return Permutes::none;
    if (!has("+avx512vl,+avx512bw"))
        return Permutes::words;
    return has("+avx512vbmi") ? Permutes::bytes : Permutes::two_registers;
}

bool permutes_wide_registers(Permutes permutes, unsigned element_bits) {
    return permutes == Permutes::bytes || (permutes == Permutes::two_registers && element_bits != byte_bits);
}

unsigned permutations_for(unsigned registers, bool are_wide) {
    constexpr unsigned of_choice = 2;
    const unsigned permutations = std::max(registers / registers_at_once(are_wide), 1U);
    return permutations + of_choice * (permutations - 1);
}

llvm::Value* chosen_elements(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> registers, llvm::Value& indices) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(indices.getType())->getNumElements();
    const unsigned part = llvm::cast<llvm::FixedVectorType>(registers.front()->getType())->getNumElements();
    llvm::SmallVector<llvm::Value*, 4> parts;
    for (unsigned first = 0; first < lanes; first += part) {
        llvm::SmallVector<int> taken(part, llvm::PoisonMaskElem);
        const unsigned count = std::min(lanes - first, part);
        for (unsigned lane = 0; lane < count; ++lane)
            taken[lane] = static_cast<int>(first + lane);
        llvm::Value* const result = chosen(builder, registers, builder.CreateShuffleVector(&indices, taken));
        parts.push_back(builder.CreateShuffleVector(result, llvm::createSequentialMask(0, count, 0)));
    }
    return llvm::concatenateVectors(builder, parts);
}

}  // namespace polder::compiler
