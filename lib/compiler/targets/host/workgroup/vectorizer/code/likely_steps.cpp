// Checks at run time that addresses are a likely step apart. The addresses themselves are compared only where nothing simpler is enough:
// - a sum of 32 bits that is extended, or the lower half of one of 64: one comparison of the first lane's number excludes that any lane's wraps
//   around;
// - the lower half of a number of 64 bits that is extended: the same comparison;
// - the lower bits of a sum, as in `(id + 5) & 63`: one comparison of the first lane's bits;
// - a number of 32 bits that is held within bounds: the first or last lane's number is compared with them;
// - a number that was computed in floating point, such as a coordinate: whether it is a row for all work-items is asked once before the loop
//   (row_ends.h), and for the lanes only where it is none;
// - any other number of 32 bits with a likely step: the numbers are compared, which are half as wide as addresses;
// - a choice between an address and one that is the same for all lanes, as for places outside of an image: all lanes must choose the former.
#include "lane_code.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"

#include <bit>
#include <cstdlib>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

constexpr int64_t stride_max = int64_t{1} << 20;

}  // namespace

llvm::Value* LaneCode::both_conditions(llvm::Value* one, llvm::Value* other) {
    return one && other ? builder_.CreateAnd(one, other) : one ? one : other;
}

void LaneCode::take_conditions(LikelyStep& step, const LikelyStep& other) {
    step.condition = both_conditions(step.condition, other.condition);
    step.of_lanes = both_conditions(step.of_lanes, other.of_lanes);
}

// Returns nothing where another operation makes the step uncertain.
std::optional<LaneCode::LikelyStep> LaneCode::likely_step(llvm::Value* value, llvm::Value* mask) {
    if (const LaneShape shape = shapes_.of(value); shape.is_strided())
        return LikelyStep{.first = scalar(value), .stride = shape.stride};
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr)
        return std::nullopt;
    if (auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(instruction))
        return likely_address(*address, mask);
    if (auto* const choice = llvm::dyn_cast<llvm::SelectInst>(instruction))
        return likely_choice(*choice, mask);
    if (llvm::isa<llvm::SExtInst, llvm::ZExtInst>(instruction))
        return likely_extension(llvm::cast<llvm::CastInst>(*instruction), mask);
    auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(instruction);
    switch (operation ? operation->getOpcode() : llvm::Instruction::BinaryOpsEnd) {
    case llvm::Instruction::BinaryOpsEnd: return std::nullopt;
    case llvm::Instruction::And: return likely_low_bits(*operation, mask);
    case llvm::Instruction::AShr: return likely_half(*operation, mask);
    default: return likely_offset(*operation, mask);
    }
}

// The lower half of a number of 64 bits, extended with its sign and perhaps scaled: LLVM writes `(int)x` as an index as ((x << 32) + (number << 32)) >> n.
std::optional<LaneCode::LikelyStep> LaneCode::likely_half(llvm::BinaryOperator& operation, llvm::Value* mask) {
    constexpr unsigned half = 32, back_min = 12;
    using namespace llvm::PatternMatch;
    llvm::Value *shifted = operation.getOperand(0), *of = nullptr;
    const llvm::APInt* summand = nullptr;
    uint64_t back = 0;
    if (match(shifted, m_AddLike(m_Value(of), m_APInt(summand))))
        shifted = of;
    if (asks_for_whole_row_ || !operation.getType()->isIntegerTy(2 * half) ||
        !match(operation.getOperand(1), m_ConstantInt(back)) || back > half || back < back_min ||
        !match(shifted, m_Shl(m_Value(of), m_SpecificInt(half))) || (summand && summand->countr_zero() < half))
        return std::nullopt;
    auto number = likely_step(of, mask);
    if (!number || number->stride == 0 || std::abs(number->stride) > stride_max)
        return std::nullopt;
    const auto up = half - static_cast<unsigned>(back);
    // Of an inactive lane it may be poison.
    llvm::Value* const whole = mask != nullptr ? builder_.CreateFreeze(number->first) : number->first;
    llvm::Value* first = builder_.CreateTrunc(whole, builder_.getInt32Ty());
    if (summand)
        first = builder_.CreateAdd(first, builder_.getInt32(static_cast<uint32_t>(summand->getZExtValue() >> half)));
    number->first = builder_.CreateShl(builder_.CreateSExt(first, operation.getType()), up);
    number->condition =
        both_conditions(number->condition, does_not_wrap(first, distance_of_last(number->stride), true));
    number->stride *= int64_t{1} << up;
    return number;
}

// Whether the numbers of 32 bits from the first lane's on, up to `distance` from it, do not wrap around.
llvm::Value* LaneCode::does_not_wrap(llvm::Value* first, int64_t distance, bool is_signed) {
    const auto limit = [&](int64_t value) { return builder_.getInt32(static_cast<uint32_t>(value)); };
    if (distance > 0)
        return is_signed ? builder_.CreateICmpSLE(first, limit(INT32_MAX - distance))
                         : builder_.CreateICmpULE(first, limit(UINT32_MAX - distance));
    return is_signed ? builder_.CreateICmpSGE(first, limit(INT32_MIN - distance))
                     : builder_.CreateICmpUGE(first, limit(-distance));
}

// Sums, and products with constants, of 64 bits. Like addresses, they may wrap around.
std::optional<LaneCode::LikelyStep> LaneCode::likely_offset(llvm::BinaryOperator& operation, llvm::Value* mask) {
    constexpr auto factor_max = static_cast<uint64_t>(stride_max);
    const auto opcode = operation.getOpcode();
    const bool is_sum = opcode == llvm::Instruction::Add || opcode == llvm::Instruction::Sub;
    const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(operation.getOperand(1));
    const bool is_product = (opcode == llvm::Instruction::Shl || opcode == llvm::Instruction::Mul) && constant;
    if (!operation.getType()->isIntegerTy(64) || !(is_sum || is_product))
        return std::nullopt;
    auto left = likely_step(operation.getOperand(0), mask);
    if (!left || std::abs(left->stride) > stride_max)
        return std::nullopt;
    if (is_product) {
        const uint64_t number = constant->getValue().getLimitedValue(factor_max);
        if (number >= (opcode == llvm::Instruction::Shl ? uint64_t{std::bit_width(factor_max)} : factor_max))
            return std::nullopt;
        left->stride *= static_cast<int64_t>(opcode == llvm::Instruction::Shl ? uint64_t{1} << number : number);
        left->first = builder_.CreateBinOp(opcode, left->first, operation.getOperand(1));
        return left;
    }
    const auto right = likely_step(operation.getOperand(1), mask);
    if (!right)
        return std::nullopt;
    left->stride += opcode == llvm::Instruction::Sub ? -right->stride : right->stride;
    left->first = builder_.CreateBinOp(opcode, left->first, right->first);
    take_conditions(*left, *right);
    return left;
}

// The lower 32 bits of a number of 64 bits: LLVM writes `id - 1` of 32 bits as `(id + (2^32 - 1)) & (2^32 - 1)`. Under a mask, as in
// `if (id >= 1) x += a[id - 1]`, the lanes with negative numbers are likely not active. Their addresses remain near: some processors take long to
// find that a lane which is not active would access nothing.
std::optional<LaneCode::LikelyStep> LaneCode::likely_low_bits(llvm::BinaryOperator& operation, llvm::Value* mask) {
    constexpr unsigned low = 32, whole = 64;
    const auto* const kept = llvm::dyn_cast<llvm::ConstantInt>(operation.getOperand(1));
    if (asks_for_whole_row_ || !operation.getType()->isIntegerTy(whole) || !kept)
        return std::nullopt;
    if (!kept->getValue().isMask(low))
        return likely_remainder(operation, mask);
    auto number = likely_step(operation.getOperand(0), mask);
    if (!number || number->stride <= 0 || number->stride > stride_max)
        return std::nullopt;
    const int64_t distance = distance_of_last(number->stride);
    if (mask == nullptr || number->stride != 1 || width_ >= whole) {
        number->first = builder_.CreateAnd(number->first, uint64_t{UINT32_MAX});
        const auto limit = builder_.getInt64(static_cast<uint64_t>(UINT32_MAX - distance));
        number->condition = both_conditions(number->condition, builder_.CreateICmpULE(number->first, limit));
        return number;
    }
    // Of an inactive lane it may be poison.
    llvm::Value* const first = builder_.CreateTrunc(builder_.CreateFreeze(number->first), builder_.getInt32Ty());
    number->first = builder_.CreateSExt(first, builder_.getInt64Ty());
    llvm::Value* const limit = builder_.getInt64(static_cast<uint64_t>(INT32_MAX - distance));
    llvm::Value* negative =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, builder_.CreateNeg(number->first), builder_.getInt64(0));
    negative = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, negative, builder_.getInt64(width_));
    llvm::Value* const bits_of_negative =
        builder_.CreateSub(builder_.CreateShl(builder_.getInt64(1), negative), builder_.getInt64(1));
    llvm::Value* const bits =
        builder_.CreateZExt(builder_.CreateBitCast(mask, builder_.getIntNTy(width_)), builder_.getInt64Ty());
    llvm::Value* const condition =
        builder_.CreateAnd(builder_.CreateICmpSLE(number->first, limit),
                           builder_.CreateIsNull(builder_.CreateAnd(bits, bits_of_negative)));
    number->condition = both_conditions(number->condition, condition);
    return number;
}

// A number modulo a power of two has the number's step unless it wraps around between the first lane and the last one.
std::optional<LaneCode::LikelyStep> LaneCode::likely_remainder(llvm::BinaryOperator& operation, llvm::Value* mask) {
    llvm::Value* const of = operation.getOperand(0);
    const auto* const kept = llvm::dyn_cast<llvm::ConstantInt>(operation.getOperand(1));
    if (operation.getOpcode() != llvm::Instruction::And || !kept || !kept->getValue().isMask())
        return std::nullopt;
    auto number = operation.getType()->isIntegerTy(32) ? likely_number(of, mask) : likely_step(of, mask);
    if (!number || number->stride == 0 || std::abs(number->stride) > stride_max)
        return std::nullopt;
    const int64_t distance = distance_of_last(number->stride);
    if (kept->getValue().ult(static_cast<uint64_t>(std::abs(distance))))
        return std::nullopt;
    // Of an inactive lane it may be poison.
    llvm::Value* const whole = mask != nullptr ? builder_.CreateFreeze(number->first) : number->first;
    number->first = builder_.CreateAnd(whole, operation.getOperand(1));
    const auto limit = [&](uint64_t value) { return llvm::ConstantInt::get(operation.getType(), value); };
    llvm::Value* const is_row =
        distance > 0
            ? builder_.CreateICmpULE(number->first, limit(kept->getZExtValue() - static_cast<uint64_t>(distance)))
            : builder_.CreateICmpUGE(number->first, limit(static_cast<uint64_t>(-distance)));
    number->condition = both_conditions(number->condition, is_row);
    return number;
}

std::optional<LaneCode::LikelyStep> LaneCode::likely_address(llvm::GetElementPtrInst& address, llvm::Value* mask) {
    if (plan_.privates.scale(&address) != 1)
        return std::nullopt;
    const auto base = likely_step(address.getPointerOperand(), mask);
    if (!base)
        return std::nullopt;
    LikelyStep result = *base;
    llvm::SmallVector<llvm::Value*, 4> indices;
    for (auto part = llvm::gep_type_begin(address); part != llvm::gep_type_end(address); ++part) {
        const auto index = likely_step(part.getOperand(), mask);
        if (!index || (index->stride != 0 && !part.getOperand()->getType()->isIntegerTy(64)))
            return std::nullopt;
        indices.push_back(index->first);
        if (index->stride != 0)
            result.stride +=
                index->stride *
                static_cast<int64_t>(part.getSequentialElementStride(address.getDataLayout()).getFixedValue());
        take_conditions(result, *index);
    }
    result.first = builder_.CreateGEP(address.getSourceElementType(), result.first, indices);
    return result;
}

std::optional<LaneCode::LikelyStep> LaneCode::likely_choice(llvm::SelectInst& choice, llvm::Value* mask) {
    const bool is_first = shapes_.of(choice.getFalseValue()).is_uniform();
    const bool is_second = shapes_.of(choice.getTrueValue()).is_uniform();
    if (is_first == is_second || !choice.getType()->isPointerTy() || shapes_.of(choice.getCondition()).is_uniform())
        return std::nullopt;
    auto result = likely_step(is_first ? choice.getTrueValue() : choice.getFalseValue(), mask);
    if (!result)
        return std::nullopt;
    if (asks_for_whole_row_) {
        RowEnds ends(row_, shapes_, *plan_.loop);
        llvm::Value* const all = is_second ? nullptr : ends.all_true(choice.getCondition());
        if (all == nullptr)
            return std::nullopt;
        result->condition = both_conditions(result->condition, all);
        return result;
    }
    llvm::Value* chosen = vector(choice.getCondition());
    if (is_second)
        chosen = builder_.CreateNot(chosen);
    // What is not chosen may be poison.
    result->of_lanes = result->of_lanes ? builder_.CreateSelect(chosen, result->of_lanes, no_lanes()) : chosen;
    if (result->condition)
        result->condition = builder_.CreateFreeze(result->condition);
    return result;
}

// A number that minima and maxima hold within bounds, which no lane's reaches, or that is reflected behind them: then the bound has the opposite step. The
// condition holds for inactive lanes, too. A number may wrap around after the first lane: then it is too large to be extended (likely_extension).
// A bound that falls must not.
std::optional<LaneCode::LikelyStep> LaneCode::likely_bounded(llvm::Value* value) {
    if (const LaneShape shape = shapes_.of(value); shape.is_strided())
        return LikelyStep{.first = scalar(value), .stride = shape.stride};
    // Of the first lane or the last one.
    const auto in_lane = [&](const LikelyStep& step, bool is_last) {
        llvm::Value* const first = builder_.CreateSExt(step.first, builder_.getInt64Ty());
        return is_last && step.stride != 0
                   ? builder_.CreateAdd(first, builder_.getInt64(static_cast<uint64_t>(distance_of_last(step.stride))))
                   : first;
    };
    auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
    if (call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::abs) {
        auto result = likely_bounded(call->getArgOperand(0));
        if (!result)
            return std::nullopt;
        const auto is_positive = builder_.CreateICmpSGE(in_lane(*result, result->stride < 0), builder_.getInt64(0));
        result->condition = both_conditions(result->condition, is_positive);
        return result;
    }
    auto* const bounded = llvm::dyn_cast_or_null<llvm::MinMaxIntrinsic>(call);
    if (bounded == nullptr || !bounded->isSigned())
        return std::nullopt;
    auto result = likely_bounded(bounded->getLHS());
    auto bound = result ? likely_bounded(bounded->getRHS()) : std::nullopt;
    if (!bound)
        return std::nullopt;
    if (result->stride == 0 || (result->stride < 0 && bound->stride > 0))
        std::swap(result, bound);
    // A bound falls where the number rises, so the two are nearest to each other at one end.
    if (bound->stride != 0 && bound->stride != -result->stride)
        return std::nullopt;
    const bool is_minimum = bounded->getIntrinsicID() == llvm::Intrinsic::smin;
    const bool is_last_asked = is_minimum == (result->stride > 0);
    take_conditions(*result, *bound);
    result->condition = both_conditions(
        result->condition, builder_.CreateICmp(is_minimum ? llvm::CmpInst::ICMP_SLE : llvm::CmpInst::ICMP_SGE,
                                               in_lane(*result, is_last_asked), in_lane(*bound, is_last_asked)));
    if (bound->stride < 0 && !is_minimum)
        result->condition = builder_.CreateAnd(
            result->condition, builder_.CreateICmpSGE(in_lane(*bound, true), builder_.getInt64(INT32_MIN)));
    return result;
}

// How the numbers of 32 bits of the lanes follow one another: most cheaply known first.
std::optional<LaneCode::LikelyStep> LaneCode::likely_number(llvm::Value* number, llvm::Value* mask) {
    // Inactive lanes are often those beyond a bound.
    if (auto bounded = mask ? std::nullopt : likely_bounded(number))
        return bounded;
    const LaneShape certain = shapes_.of(number);
    const LaneShape shape = certain.is_strided() ? certain : accesses_.guess_of(*number);
    if (!shape.is_strided())
        return std::nullopt;
    // The numbers of inactive lanes, which often wrap around, are not compared below.
    const bool asks_first = mask == nullptr && !certain.is_strided();
    auto* const operation = asks_first ? llvm::dyn_cast<llvm::BinaryOperator>(number) : nullptr;
    if (auto remainder = operation ? likely_remainder(*operation, mask) : std::nullopt)
        return remainder;
    llvm::Value* first =
        certain.is_strided() ? scalar(number) : builder_.CreateExtractElement(vector(number), uint64_t{0});
    // Of an inactive lane, or of one that a choice excludes, it may be poison.
    if (mask != nullptr || !certain.is_strided())
        first = builder_.CreateFreeze(first);
    if (certain.is_strided())
        return LikelyStep{.first = first, .stride = shape.stride};
    llvm::Value* const expected =
        builder_.CreateAdd(builder_.CreateVectorSplat(width_, first), lane_offsets(number->getType(), shape.stride));
    return LikelyStep{
        .first = first, .stride = shape.stride, .of_lanes = builder_.CreateICmpEQ(vector(number), expected)};
}

std::optional<LaneCode::LikelyStep> LaneCode::likely_extension(llvm::CastInst& cast, llvm::Value* mask) {
    if (!cast.getOperand(0)->getType()->isIntegerTy(32))
        return std::nullopt;
    if (asks_for_whole_row_)
        return number_of_row(*cast.getOperand(0), *cast.getType());
    const auto number = likely_number(cast.getOperand(0), mask);
    if (!number || std::abs(number->stride) > stride_max)
        return std::nullopt;
    // As in emit_vector(): a number that is not negative in active lanes is extended with its sign, because it may be negative in inactive ones.
    const bool is_signed = llvm::isa<llvm::SExtInst>(cast) || cast.hasNonNeg();
    llvm::Value* const condition = does_not_wrap(number->first, distance_of_last(number->stride), is_signed);
    const auto how = is_signed ? llvm::Instruction::SExt : llvm::Instruction::ZExt;
    LikelyStep result = *number;
    result.first = builder_.CreateCast(how, number->first, cast.getType());
    result.condition = both_conditions(number->condition, condition);
    return result;
}

// Of the whole row of work-items: a number that is not negative, so its extension does not depend on the sign.
std::optional<LaneCode::LikelyStep> LaneCode::number_of_row(llvm::Value& number, llvm::Type& type) {
    RowEnds ends(row_, shapes_, *plan_.loop);
    const auto row = ends.row_of(&number, accesses_.guess_of(number).stride);
    if (!row)
        return std::nullopt;
    const int64_t stride = accesses_.guess_of(number).stride;
    llvm::Value* const items = builder_.CreateSub(scalar(plan_.index), row_.begin);
    llvm::Value* const steps = builder_.CreateMul(items, builder_.getInt64(static_cast<uint64_t>(stride)));
    llvm::Value* const first =
        builder_.CreateAdd(builder_.CreateZExt(row->first, &type), builder_.CreateZExtOrTrunc(steps, &type));
    return LikelyStep{.first = first, .stride = stride, .condition = row->condition};
}

LaneCode::PlaceCheck LaneCode::check_place(const LaneAccess& access, llvm::Value* address, llvm::Value* mask) {
    if (access.is_certain || mask != nullptr || row_.before == nullptr)
        return check_lanes(access, address, mask);
    asks_for_whole_row_ = true;
    const auto row = likely_step(address, nullptr);
    asks_for_whole_row_ = false;
    if (!row || row->stride != access.stride || row->condition == nullptr || row->of_lanes != nullptr)
        return check_lanes(access, address, mask);
    auto* const lanes = llvm::BasicBlock::Create(function_.getContext(), "lanes.check", &function_);
    auto* const together = llvm::BasicBlock::Create(function_.getContext(), "together", &function_);
    llvm::BasicBlock* const before = builder_.GetInsertBlock();
    builder_.CreateCondBr(row->condition, together, lanes,
                          llvm::MDBuilder(function_.getContext()).createLikelyBranchWeights());
    builder_.SetInsertPoint(lanes);
    const PlaceCheck check = check_lanes(access, address, mask);
    whole_row_ = {builder_.GetInsertBlock(), together};
    builder_.SetInsertPoint(together);
    llvm::PHINode* const first = builder_.CreatePHI(check.first->getType(), 2);
    first->addIncoming(row->first, before);
    first->addIncoming(check.first, whole_row_.lanes);
    return {check.condition, first};
}

LaneCode::PlaceCheck LaneCode::check_lanes(const LaneAccess& access, llvm::Value* address, llvm::Value* mask) {
    llvm::Value* all_active = mask && !access.takes_mask ? builder_.CreateAndReduce(mask) : nullptr;
    if (access.is_certain)
        return {all_active, scalar(address)};
    if (const auto likely = likely_step(address, mask);
        likely && likely->stride == access.stride && (likely->condition || likely->of_lanes)) {
        llvm::Value* lanes = likely->of_lanes;
        // What a lane that is not active computes may be poison, and a branch on poison is undefined behaviour.
        if (lanes)
            lanes = builder_.CreateAndReduce(mask ? builder_.CreateSelect(mask, lanes, all_lanes()) : lanes);
        return {both_conditions(all_active, both_conditions(likely->condition, lanes)), likely->first};
    }
    llvm::Value* addresses = vector(address);
    if (mask != nullptr)
        addresses = builder_.CreateFreeze(addresses);
    llvm::Value* first = builder_.CreateExtractElement(addresses, uint64_t{0});
    llvm::Value* expected = builder_.CreateGEP(builder_.getInt8Ty(), builder_.CreateVectorSplat(width_, first),
                                               lane_offsets(builder_.getInt64Ty(), access.stride));
    llvm::Value* follows = builder_.CreateAndReduce(builder_.CreateICmpEQ(addresses, expected));
    return {both_conditions(all_active, follows), first};
}

}  // namespace polder::compiler::workgroup
