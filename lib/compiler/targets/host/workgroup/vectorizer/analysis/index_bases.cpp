#include "index_bases.h"

#include <cstdlib>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

constexpr int64_t offset_max = 1 << 20;

std::optional<int64_t> small_constant(const llvm::Value& value) {
    const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(&value);
    if (constant == nullptr || constant->getBitWidth() > 64)
        return std::nullopt;
    const int64_t number = constant->getSExtValue();
    return -offset_max <= number && number <= offset_max ? std::optional(number) : std::nullopt;
}

bool is_zero(const llvm::Value& value) {
    const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(&value);
    return constant != nullptr && constant->isZero();
}

}  // namespace

OffsetBase without_offset(llvm::Value& base) {
    using namespace llvm::PatternMatch;
    if (const auto constant = small_constant(base))
        return {llvm::ConstantInt::get(base.getType(), 0), *constant};
    llvm::Value *root = nullptr, *constant = nullptr;
    if (match(&base, m_Add(m_Value(root), m_Value(constant))))
        if (const auto offset = small_constant(*constant))
            return {root, *offset};
    return {&base, 0};
}

bool adds_negative_half(const llvm::Value& base) {
    constexpr unsigned summands_max = 16;
    llvm::SmallVector<const llvm::Value*, 4> todo{&base};
    for (unsigned number = 0; !todo.empty() && number < summands_max; ++number) {
        const llvm::Value* const summand = todo.pop_back_val();
        if (const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(summand);
            constant && constant->getValue().getActiveBits() == 32)
            return true;
        const auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(summand);
        if (sum && sum->getOpcode() == llvm::Instruction::Add)
            todo.append(sum->op_begin(), sum->op_end());
    }
    return false;
}

llvm::Value* IndexBases::sum(llvm::Value& left, llvm::Value& right, llvm::Instruction& before) {
    const OffsetBase one = without_offset(left), other = without_offset(right);
    const int64_t offset = one.offset + other.offset;
    if (std::abs(offset) > offset_max)
        return plain_sum(left, right, before);
    llvm::Value* const root = plain_sum(*one.root, *other.root, before);
    return plain_sum(*root, *llvm::ConstantInt::getSigned(root->getType(), offset), before);
}

llvm::Value* IndexBases::plain_sum(llvm::Value& left, llvm::Value& right, llvm::Instruction& before) {
    if (is_zero(left) || is_zero(right))
        return is_zero(left) ? &right : &left;
    llvm::Value*& made = sums_[{&left, &right}];
    if (!made)
        made = llvm::IRBuilder<>(&before).CreateAdd(&left, &right);
    return made;
}

}  // namespace polder::compiler::workgroup
