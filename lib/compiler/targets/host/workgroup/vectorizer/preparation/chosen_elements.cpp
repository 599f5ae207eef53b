#include "chosen_elements.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {
namespace {

constexpr uint64_t chosen_elements_max = 16;

// A place outside of the vector gives poison, so that a wider number has the same low bits.
llvm::Value& narrowest_place(llvm::Value& place, uint64_t elements) {
    auto* const cast = llvm::dyn_cast<llvm::CastInst>(&place);
    const bool is_wider =
        cast && (cast->getOpcode() == llvm::Instruction::ZExt || cast->getOpcode() == llvm::Instruction::SExt);
    if (is_wider && cast->getOperand(0)->getType()->getIntegerBitWidth() >= llvm::Log2_64_Ceil(elements))
        return narrowest_place(*cast->getOperand(0), elements);
    return place;
}

}  // namespace

llvm::Value* chosen_by_bits(llvm::IRBuilderBase& at, llvm::ArrayRef<llvm::Value*> elements, llvm::Value& place) {
    llvm::SmallVector<llvm::Value*> left(elements);
    for (uint64_t bit = 1; left.size() > 1; bit <<= 1) {
        llvm::Value* const is_odd = at.CreateIsNotNull(at.CreateAnd(&place, bit));
        for (size_t i = 0; i < left.size() / 2; ++i)
            left[i] = at.CreateSelect(is_odd, left[2 * i + 1], left[2 * i]);
        if (left.size() % 2 != 0)
            left[left.size() / 2] = left.back();
        left.truncate((left.size() + 1) / 2);
    }
    return left.front();
}

void choose_by_bits(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        auto* const extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction);
        const auto* const type =
            extract ? llvm::dyn_cast<llvm::FixedVectorType>(extract->getVectorOperandType()) : nullptr;
        if (type == nullptr || llvm::isa<llvm::ConstantInt>(extract->getIndexOperand()) ||
            type->getNumElements() > chosen_elements_max)
            continue;
        llvm::IRBuilder<> at(extract);
        llvm::SmallVector<llvm::Value*> elements;
        for (uint64_t i = 0; i < type->getNumElements(); ++i)
            elements.push_back(at.CreateExtractElement(extract->getVectorOperand(), i));
        llvm::Value& place = narrowest_place(*extract->getIndexOperand(), type->getNumElements());
        extract->replaceAllUsesWith(chosen_by_bits(at, elements, place));
        extract->eraseFromParent();
    }
}

}  // namespace polder::compiler::workgroup
