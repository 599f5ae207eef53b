#include "lane_types.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {

bool is_scalar(const llvm::Type& type) { return type.isIntegerTy() || type.isFloatingPointTy() || type.isPointerTy(); }

bool has_lane_form(const llvm::Type& type) {
    constexpr unsigned elements_max = 16;
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
    if (vector == nullptr)
        return is_scalar(type);
    const unsigned elements = vector->getNumElements();
    return !vector->getElementType()->isPointerTy() && elements > 1 && elements <= elements_max &&
           (llvm::isPowerOf2_32(elements) || elements == 3);
}

unsigned elements_of_lane(const llvm::Type& type) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
    return vector ? static_cast<unsigned>(llvm::PowerOf2Ceil(vector->getNumElements())) : 1;
}

bool moves_elements(const llvm::Instruction& instruction) {
    return llvm::isa<llvm::ExtractElementInst, llvm::InsertElementInst, llvm::ShuffleVectorInst>(instruction);
}

bool is_cast_lane_by_lane(const llvm::CastInst& cast) {
    const auto bits = [](const llvm::Type& type) { return elements_of_lane(type) * type.getScalarSizeInBits(); };
    return cast.getOpcode() != llvm::Instruction::BitCast ||
           (bits(*cast.getSrcTy()) == bits(*cast.getDestTy()) && cast.getSrcTy()->getScalarSizeInBits() > 1 &&
            cast.getDestTy()->getScalarSizeInBits() > 1);
}

llvm::FixedVectorType* of_lanes(llvm::Type& type, unsigned lanes) {
    return llvm::FixedVectorType::get(type.getScalarType(), elements_of_lane(type) * lanes);
}

bool is_divided_in_lanes(const llvm::Type& type) {
    constexpr unsigned bits_max = 32;
    return type.isIntegerTy() && type.getIntegerBitWidth() <= bits_max;
}

bool is_mostly_double(const llvm::Loop& loop) {
    size_t doubles = 0, all = 0;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block) {
            doubles += instruction.getType()->isDoubleTy() ? 1 : 0;
            all += llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator() ? 0 : 1;
        }
    return 4 * doubles > all;
}

}  // namespace polder::compiler::workgroup
