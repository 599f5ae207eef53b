// Each rule assumes that the sums or products are small (assume_small): then no bit is lost by the shift up, and the step remains.
#include "lane_shape_extensions.h"

#include "asked_bounds.h"
#include "differing_bits.h"
#include "lane_shape.h"
#include "lane_shape_values.h"
#include "unsigned_extensions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

// What `summand` adds to a number that is shifted up by 32 bits, if it is a small number.
std::optional<int64_t> small_summand(const llvm::APInt& summand) {
    constexpr int64_t most = int64_t{1} << 20;
    if (summand.getBitWidth() != 64 || summand.countr_zero() < 32)
        return std::nullopt;
    const int64_t number = summand.getSExtValue() >> 32;
    return -most <= number && number <= most ? std::optional(number) : std::nullopt;
}

// `base`, of which only the lower 32 bits are used, extended with their sign where more bits are never a small number. `made`: null at first, for the
// same base later the result.
llvm::Value* plain_half(llvm::Value& base, llvm::Value*& made, const llvm::Loop& loop) {
    constexpr uint64_t half = 32;
    if (!adds_negative_half(base))
        return &base;
    if (!made) {
        llvm::IRBuilder<> at(loop.getLoopPreheader()->getTerminator());
        made = at.CreateAShr(at.CreateShl(&base, half), half);
    }
    return made;
}

}  // namespace

std::optional<HalfOfExtension> half_of_extension(const llvm::BinaryOperator& op) {
    constexpr unsigned half = 32, word = 64;
    const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(op.getOperand(1));
    if (!constant || !op.getType()->isIntegerTy(word))
        return std::nullopt;
    if (op.getOpcode() == llvm::Instruction::Shl && constant->getValue().uge(half) &&
        constant->getValue().ult(word - 1))
        return HalfOfExtension{op.getOperand(0), int64_t{1} << (constant->getZExtValue() - half)};
    const bool is_product = op.getOpcode() == llvm::Instruction::Mul && constant->getValue().countr_zero() >= half;
    if (!is_product || !constant->getValue().isStrictlyPositive())
        return std::nullopt;
    return HalfOfExtension{op.getOperand(0), constant->getSExtValue() >> half};
}

// The shape of a value that is shifted down by at most the number of its lowest bits that are the same in all lanes, where lanes differ in a few bits above them.
std::optional<LaneShape> LaneShapes::shifted_below(llvm::BinaryOperator& op) const {
    uint64_t back = 0;
    if (!op.getType()->isIntegerTy() ||
        !llvm::PatternMatch::match(op.getOperand(1), llvm::PatternMatch::m_ConstantInt(back)))
        return std::nullopt;
    const LaneShape value = of(op.getOperand(0));
    const unsigned bits = op.getType()->getScalarSizeInBits();
    if (!value.is_strided() || value.differing_bits <= back || value.differing_bits >= bits ||
        value.stride % (int64_t{1} << back) != 0)
        return std::nullopt;
    return in_low_bits(LaneShape::strided(value.stride >> back), value.differing_bits - static_cast<unsigned>(back),
                       bits);
}

// (x << 32) >> n, with n from 12 to 32: a 64-bit x truncated, extended again and scaled. As a guess, any shift by less than 32 bits that loses
// no part of the step keeps it (x << 8 >> 8 is an operand cut to 24 bits).
// LLVM writes x - 1, extended with its sign, as ((x << 32) - (1 << 32)) >> n. This difference does not wrap around where x is from 0 to
// 2^31 - 1, which the preheader checks (assume_small). For a sum with a positive number it checks the sum.
// 3 * x is (x * (3 << 32)) >> n. The product must not wrap around either.
// Behind `get_group_id(0) * 512 + get_local_id(0)` it is ((x << 32) + (group << 41)) >> n. This sum must be from 0 to 2^31 - 1, too.
LaneShape LaneShapes::shifted_back(llvm::BinaryOperator& op) {
    uint64_t back = 0;
    using namespace llvm::PatternMatch;
    if (const auto known = shifted_back_above(op))
        return *known;
    if (const auto known = shifted_below(op))
        return *known;
    if (is_guess() && match(op.getOperand(1), m_ConstantInt(back)) && back < 32)
        if (const LaneShape value = of(op.getOperand(0));
            value.is_strided() && value.stride % (int64_t{1} << back) == 0)
            return LaneShape::strided(value.stride >> back);
    llvm::BinaryOperator* half = nullptr;
    const llvm::APInt* summand = nullptr;
    const bool has_summand =
        match(&op, m_AShr(m_Add(m_BinOp(half), m_APInt(summand)), m_ConstantInt(back))) && half_of_extension(*half);
    const bool is_matched = has_summand || match(&op, m_Shr(m_BinOp(half), m_ConstantInt(back)));
    const auto extension = is_matched ? half_of_extension(*half) : std::nullopt;
    if (!extension || back > 32 || back < 12)
        return all_uniform(*this, op) ? uniform : varying;
    const int64_t factor = extension->factor;
    const LaneShape value = of(extension->value);
    // The summand's lower bits are zeros where lanes differ, so that nothing carries.
    const unsigned differing = value.differing_bits;
    if (factor == 1 && differing > 0 && differing < 32 && of(op.getOperand(0)).is_strided() &&
        (!has_summand || summand->countr_zero() >= 32 + differing))
        return in_low_bits(LaneShape::strided(value.stride << (32 - back)),
                           differing + 32 - static_cast<unsigned>(back), 64);
    const auto number = has_summand ? small_summand(*summand) : 0;
    const bool is_behind = number && *number > 0;
    if (!number || (is_behind && is_guess()))
        return all_uniform(*this, op) ? uniform : varying;
    if (value.kind == LaneShape::Kind::unknown || value.is_uniform())
        return value;
    llvm::Value* base = times_constant(*half, value, factor);
    if (base)
        base = plain_half(*base, bases_[base], loop_);
    if (!value.is_strided() || (!is_guess() && (!base || !of(op.getOperand(0)).is_strided())))
        return varying;
    if (base) {
        llvm::Value* const sum = sum_of(*base, *llvm::ConstantInt::getSigned(base->getType(), *number));
        if (!assume_small(is_behind ? sum : base, false, value.stride * factor))
            return varying;
        extended_bases_[&op] = {sum, 32 - static_cast<unsigned>(back)};
    }
    LaneShape result = LaneShape::strided(value.stride * factor << (32 - back));
    result.is_exact_signed = true;
    result.is_exact_unsigned = *number >= 0;
    return result;
}

// The shape of ((x * factor << 32) + summand) >> n, where all work-items of the loop have one summand, whose lower half is zeros.
std::optional<LaneShape> LaneShapes::shifted_back_above(llvm::BinaryOperator& op) {
    constexpr unsigned half_bits = 32;
    using namespace llvm::PatternMatch;
    llvm::Value *left = nullptr, *right = nullptr;
    uint64_t back = 0;
    if (is_guess() || !match(&op, m_Shr(m_AddLike(m_Value(left), m_Value(right)), m_ConstantInt(back))) ||
        back > half_bits || back < 12)
        return std::nullopt;
    if (loop_.isLoopInvariant(left))
        std::swap(left, right);
    auto* const half = llvm::dyn_cast<llvm::BinaryOperator>(left);
    const auto extension = half ? half_of_extension(*half) : std::nullopt;
    if (!extension || llvm::isa<llvm::Constant>(right) || !loop_.isLoopInvariant(right) ||
        llvm::computeKnownBits(right, op.getDataLayout()).countMinTrailingZeros() < half_bits)
        return std::nullopt;
    const LaneShape value = of(extension->value);
    llvm::Value* const base = value.is_strided() ? times_constant(*half, value, extension->factor) : nullptr;
    if (base == nullptr || value.is_uniform() || !of(op.getOperand(0)).is_strided())
        return std::nullopt;
    llvm::Value* made = bases_.lookup(&op);
    if (!made) {
        llvm::IRBuilder<> at(loop_.getLoopPreheader()->getTerminator());
        made = plain_half(*at.CreateAdd(base, at.CreateAShr(right, half_bits)), bases_[&op], loop_);
        bases_[&op] = made;
    }
    const int64_t stride = value.stride * extension->factor;
    if (!assume_small(made, false, stride))
        return std::nullopt;
    extended_bases_[&op] = {made, half_bits - static_cast<unsigned>(back)};
    LaneShape result = LaneShape::strided(stride << (half_bits - back));
    result.is_exact_signed = result.is_exact_unsigned = true;
    return result;
}

// LLVM writes `size - 1 - index` as the size plus the complement of the index, which is -1 - index.
LaneShape LaneShapes::complement(llvm::BinaryOperator& op) {
    const LaneShape value = of(op.getOperand(0));
    if (!value.is_strided() || value.is_uniform())
        return value;
    LaneShape result = LaneShape::strided(-value.stride);
    if (value.base && value.stride == 1 && !is_guess())
        result.base = difference(op, *llvm::Constant::getAllOnesValue(op.getType()), *value.base);
    return result;
}

// Whether `index`, of 32 bits, may be below zero for some work-items although it is extended as an unsigned number: its base is a number minus a constant,
// and each extension is only used where it is below a bound. Then the extensions are taken for ones with the sign.
bool LaneShapes::assume_asked(const llvm::Instruction& index, llvm::Value& base) {
    if (certainty_ != Certainty::certain || without_offset(base).offset >= 0 || llvm::isa<llvm::Constant>(base))
        return false;
    llvm::SmallVector<const llvm::Instruction*, 4> extensions;
    llvm::SmallVector<llvm::Value*, 4> bounds;
    const auto matters = [&](const llvm::ZExtInst& extension) {
        extensions.push_back(&extension);
        return !extension.getType()->isIntegerTy(64) || !find_asked_bounds(extension, loop_, bounds);
    };
    if (is_extended_as_unsigned(index, matters))
        return false;
    assumed_bounds_.insert_range(bounds);
    asked_.insert(extensions.begin(), extensions.end());
    return true;
}

// The same of the lower 32 bits of a number of 64 bits, which a negative number of 32 bits is added to.
std::optional<LaneShape> LaneShapes::asked_half(llvm::BinaryOperator& mask, const LaneShape& value) {
    llvm::SmallVector<llvm::Value*, 4> bounds;
    if (certainty_ != Certainty::certain || value.stride != 1 || !adds_negative_half(*value.base) ||
        !llvm::PatternMatch::match(mask.getOperand(1), llvm::PatternMatch::m_SpecificInt(~uint32_t{0})) ||
        !find_asked_bounds(mask, loop_, bounds))
        return std::nullopt;
    llvm::Value* const base = plain_half(*value.base, bases_[&mask], loop_);
    if (!assume_small(base, true))
        return std::nullopt;
    assumed_bounds_.insert_range(bounds);
    extended_bases_[&mask] = {base, 0};
    LaneShape result = LaneShape::strided(1);
    result.is_exact_signed = true;
    return result;
}

}  // namespace polder::compiler::workgroup
