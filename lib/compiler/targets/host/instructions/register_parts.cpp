#include "register_parts.h"

#include <llvm/ADT/bit.h>
#include <llvm/Support/MathExtras.h>
#include <numeric>

namespace polder::compiler {
namespace {

constexpr unsigned least_bits = 128, largest_bits = 512;

llvm::Value* half_of(llvm::IRBuilder<>& at, llvm::Value& whole, unsigned first, unsigned count) {
    llvm::SmallVector<int> places(count);
    std::iota(places.begin(), places.end(), static_cast<int>(first));
    return at.CreateShuffleVector(&whole, places);
}

}  // namespace

bool fills_registers(const llvm::Type& type) {
    const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
    return vector && llvm::isPowerOf2_32(vector->getNumElements()) && vector->getPrimitiveSizeInBits() >= least_bits &&
           (vector->getElementType()->isDoubleTy() || vector->getElementType()->isFloatTy());
}

llvm::Value* in_registers(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> operands,
                          llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> operation) {
    const auto& type = *llvm::cast<llvm::FixedVectorType>(operands.front()->getType());
    if (type.getPrimitiveSizeInBits() <= largest_bits)
        return operation(operands);
    const unsigned elements = type.getNumElements();
    const auto computed_from = [&](unsigned first) {
        llvm::SmallVector<llvm::Value*> halves;
        for (llvm::Value* const operand : operands)
            halves.push_back(half_of(at, *operand, first, elements / 2));
        return in_registers(at, halves, operation);
    };
    llvm::Value* const low = computed_from(0);
    llvm::Value* const high = computed_from(elements / 2);
    llvm::SmallVector<int> places(elements);
    std::iota(places.begin(), places.end(), 0);
    return at.CreateShuffleVector(low, high, places);
}

llvm::Intrinsic::ID intrinsic_for(const llvm::Type& type, const RegisterIntrinsics& all) {
    const unsigned size =
        llvm::Log2_32(static_cast<uint32_t>(type.getPrimitiveSizeInBits().getFixedValue() / least_bits));
    return type.getScalarType()->isDoubleTy() ? all.doubles[size] : all.floats[size];
}

llvm::Constant* mask_of_all(llvm::IRBuilder<>& at, const llvm::Type& type) {
    const unsigned elements = llvm::cast<llvm::FixedVectorType>(type).getNumElements();
    return llvm::ConstantInt::getAllOnesValue(at.getIntNTy(std::max(elements, 8U)));
}

}  // namespace polder::compiler
