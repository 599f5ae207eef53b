// The numbers are F(i) and an error, where F is affine: the operations are sums, products and quotients with numbers that all work-items have in
// common, and bounds that are not reached.
//
// - Sums of integers up to 2^15 and at most eight constants that are multiples of 2^-8 have no error (Error::none): the numbers are a row if they are not negative.
// - Each rounding adds at most 2^-24 of the number (Error::relative), because factors are neither so small nor so large that a product leaves the
//   range of normal numbers. A sum behind this makes the error one of its largest operand, which is at most 2^15 (Error::absolute); a product
//   behind that is not known. With at most eight roundings, and a last number of at most 2^14, each error is below 2^-6.
// - The first number's fraction is from 1/8 to 7/8, and the last one is the right distance away, but for 1/32. F is then nearer than 1/32 + 2^-5 to
//   the row that begins with the first number, and each number nearer than 1/32 + 3 * 2^-6 < 1/8: its integer is that of the row.
//
// Whole numbers (`floor`, `rint`) are subtracted where both ends have the same one, at most 2. A bound is required to hold at both ends. Numbers between them can be NaN only where both ends are infinite or NaN, and then some requirement fails.
#include "row_ends.h"

#include <cmath>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

constexpr int64_t integer_max = int64_t{1} << 14;  // of the first work-item; the last one's is at most that much larger
constexpr int64_t integer_min = -(int64_t{1} << 13);
constexpr float constant_max = 0x1p10f;
constexpr float part_of_constant = 0x1p-8f;
constexpr unsigned roundings_max = 8;
constexpr float number_max = 0x1p14f;
// Eight products with such factors of a number that is no less than 2^-8.
constexpr float factor_min = 0x1p-12f, factor_max = 0x1p15f;

// Whether LLVM may compute it in another way for a vector of lanes than for the two ends.
bool is_inexact_by_flags(const llvm::Instruction& instruction) {
    const auto* operation = llvm::dyn_cast<llvm::FPMathOperator>(&instruction);
    return operation && (operation->hasAllowReassoc() || operation->hasAllowReciprocal() ||
                         operation->hasAllowContract() || operation->hasApproxFunc());
}

bool is_exact_summand(const llvm::Value* value) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantFP>(value);
    if (constant == nullptr)
        return false;
    const float number = constant->getValueAPF().convertToFloat();
    return std::fabs(number) <= constant_max && number / part_of_constant == std::floor(number / part_of_constant);
}

bool is_order(llvm::CmpInst::Predicate how) {
    return how == llvm::CmpInst::FCMP_OGE || how == llvm::CmpInst::FCMP_OGT || how == llvm::CmpInst::FCMP_OLE ||
           how == llvm::CmpInst::FCMP_OLT;
}

}  // namespace

llvm::Value* RowEnds::common(llvm::Value* value) {
    constexpr unsigned operations_max = 64;
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr || !loop_.contains(instruction))
        return value;
    if (const auto found = common_.find(value); found != common_.end())
        return found->second;
    common_[value] = nullptr;
    if (!shapes_.of(value).is_uniform() || llvm::isa<llvm::PHINode>(instruction) || common_.size() > operations_max ||
        instruction->mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(instruction))
        return nullptr;
    llvm::SmallVector<llvm::Value*> operands;
    for (llvm::Value* operand : instruction->operands()) {
        operands.push_back(common(operand));
        if (operands.back() == nullptr)
            return nullptr;
    }
    llvm::Instruction* const copy = instruction->clone();
    for (const auto [use, operand] : llvm::zip(copy->operands(), operands))
        use.set(operand);
    return common_[value] = builder_.Insert(copy);
}

void RowEnds::require_magnitude(llvm::Value* factor, float least, float most) {
    const auto limit = [&](float value) {
        return llvm::ConstantFP::get(builder_.getFloatTy(), static_cast<double>(value));
    };
    llvm::Value* const magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, factor);
    require(builder_.CreateFCmpOGE(magnitude, limit(least)));
    require(builder_.CreateFCmpOLE(magnitude, limit(most)));
}

llvm::Value* RowEnds::required() {
    llvm::Value *of_both = nullptr, *result = nullptr;
    const auto with = [&](llvm::Value* one, llvm::Value* other) {
        return one ? builder_.CreateAnd(one, other) : other;
    };
    for (llvm::Value* condition : conditions_)
        (condition->getType()->isVectorTy() ? of_both : result) =
            with(condition->getType()->isVectorTy() ? of_both : result, condition);
    return of_both ? with(result, builder_.CreateAndReduce(of_both)) : result;
}

std::optional<RowEnds::Ends> RowEnds::ends_of(llvm::Value* value) {
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr || shapes_.of(value).is_uniform() || is_inexact_by_flags(*instruction))
        return std::nullopt;
    if (const auto found = known_.find(value); found != known_.end())
        return found->second;
    return known_[value] = compute(*instruction);
}

std::optional<RowEnds::Ends> RowEnds::compute(llvm::Instruction& instruction) {
    using How = llvm::Instruction;
    if (auto* const choice = llvm::dyn_cast<llvm::SelectInst>(&instruction))
        return chosen(*choice);
    if (auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
        return operated(*call);
    if (!instruction.getType()->isFloatTy())
        return std::nullopt;
    switch (instruction.getOpcode()) {
    case How::SIToFP:
    case How::UIToFP: return converted(llvm::cast<llvm::CastInst>(instruction));
    case How::FSub:
        if (llvm::Value* const summand = common(instruction.getOperand(1)))
            return sum(ends_of(instruction.getOperand(0)), How::FSub, summand);
        return fraction(llvm::cast<llvm::BinaryOperator>(instruction));
    case How::FAdd:
        return with_common(instruction, [&](auto ends, auto* other) { return sum(ends, How::FAdd, other); });
    case How::FMul:
        return with_common(instruction, [&](auto ends, auto* other) { return product(ends, How::FMul, other); });
    case How::FDiv:
        if (llvm::Value* const divisor = common(instruction.getOperand(1)))
            return product(ends_of(instruction.getOperand(0)), How::FDiv, divisor);
        return std::nullopt;
    default: return std::nullopt;
    }
}

std::optional<RowEnds::Ends>
RowEnds::with_common(llvm::Instruction& instruction,
                     llvm::function_ref<std::optional<Ends>(std::optional<Ends>, llvm::Value*)> form) {
    for (const unsigned which : {1U, 0U})
        if (llvm::Value* const other = common(instruction.getOperand(which)))
            return form(ends_of(instruction.getOperand(1 - which)), other);
    return std::nullopt;
}

std::optional<RowEnds::Ends> RowEnds::converted(llvm::CastInst& cast) {
    llvm::Value* const integer = cast.getOperand(0);
    const LaneShape shape = shapes_.of(integer);
    const unsigned bits = integer->getType()->getScalarSizeInBits();
    // `base` and the index, modulo 2^bits.
    if (!shape.is_strided() || shape.stride != 1 || shape.base == nullptr ||
        shape.base->getType() != integer->getType() || (bits != 32 && bits != 64))
        return std::nullopt;
    const int64_t least = cast.getOpcode() == llvm::Instruction::SIToFP ? integer_min : 0;
    const auto number = [&](int64_t value) { return llvm::ConstantInt::getSigned(integer->getType(), value); };
    llvm::Value* const first =
        builder_.CreateFreeze(builder_.CreateAdd(shape.base, builder_.CreateTrunc(row_.begin, integer->getType())));
    require(builder_.CreateICmpULE(builder_.CreateSub(first, number(least)), number(integer_max - least)));
    require(builder_.CreateICmpULE(distance(), builder_.getInt64(static_cast<uint64_t>(integer_max))));
    // One by one: expect_places looks for the first.
    llvm::Type* const type = builder_.getInt32Ty();
    llvm::Value* integers = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, 2));
    llvm::Value* const begin = builder_.CreateTrunc(first, type);
    integers = builder_.CreateInsertElement(integers, begin, uint64_t{0});
    integers = builder_.CreateInsertElement(integers, builder_.CreateAdd(begin, builder_.CreateTrunc(distance(), type)),
                                            uint64_t{1});
    return Ends{.values = builder_.CreateSIToFP(integers, llvm::FixedVectorType::get(builder_.getFloatTy(), 2))};
}

std::optional<RowEnds::Ends> RowEnds::sum(std::optional<Ends> ends, llvm::Instruction::BinaryOps how,
                                          llvm::Value* summand) {
    if (!ends || ends->is_floor || ends->error == Error::of_fraction)
        return std::nullopt;
    if (ends->error == Error::none && !is_exact_summand(summand))
        ends->error = Error::relative;
    else if (ends->error != Error::none) {
        require_magnitude(summand, 0, number_max);
        ends->error = Error::absolute;
    }
    ++ends->roundings;
    ends->values = builder_.CreateBinOp(how, ends->values, both(summand));
    return ends;
}

std::optional<RowEnds::Ends> RowEnds::product(std::optional<Ends> ends, llvm::Instruction::BinaryOps how,
                                              llvm::Value* factor) {
    if (!ends || ends->is_floor || ends->error == Error::absolute)
        return std::nullopt;
    require_magnitude(factor, factor_min, ends->error == Error::of_fraction ? number_max : factor_max);
    ends->error = ends->error == Error::of_fraction ? Error::absolute : Error::relative;
    ++ends->roundings;
    ends->values = builder_.CreateBinOp(how, ends->values, both(factor));
    return ends;
}

// s - floor(s), which repeats an image, or s - rint(s), whose magnitude mirrors it where s is half of the coordinate. All work-items have the whole
// number in common.
std::optional<RowEnds::Ends> RowEnds::fraction(llvm::BinaryOperator& difference) {
    auto* const rounding = llvm::dyn_cast<llvm::IntrinsicInst>(difference.getOperand(1));
    const auto how = rounding ? rounding->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
    if ((how != llvm::Intrinsic::floor && how != llvm::Intrinsic::rint) ||
        rounding->getArgOperand(0) != difference.getOperand(0))
        return std::nullopt;
    auto ends = ends_of(difference.getOperand(0));
    if (!ends || ends->is_floor || (ends->error != Error::none && ends->error != Error::relative))
        return std::nullopt;
    llvm::Value* const wholes = builder_.CreateUnaryIntrinsic(how, ends->values);
    llvm::Value* const first = builder_.CreateExtractElement(wholes, uint64_t{0});
    require(builder_.CreateFCmpOEQ(first, builder_.CreateExtractElement(wholes, uint64_t{1})));
    llvm::Value* const size = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, first);
    require(builder_.CreateFCmpOLE(size, llvm::ConstantFP::get(builder_.getFloatTy(), 2)));
    ends->values = builder_.CreateFSub(ends->values, wholes);
    ends->error = Error::of_fraction;
    ++ends->roundings;
    return ends;
}

// The copies of a mirrored image in which elements follow in their order are where the numbers are not negative.
std::optional<RowEnds::Ends> RowEnds::magnitude(llvm::Value* number) {
    const auto ends = ends_of(number);
    if (ends)
        require(builder_.CreateFCmpOGE(ends->values, llvm::ConstantAggregateZero::get(ends->values->getType())));
    return ends;
}

// `how`: what holds where the bound changes nothing.
std::optional<RowEnds::Ends> RowEnds::bounded(std::optional<Ends> ends, llvm::CmpInst::Predicate how,
                                              llvm::Value* bound) {
    if (ends)
        require(builder_.CreateFCmp(how, ends->values, both(bound)));
    return ends;
}

// x < bound ? x : other
std::optional<RowEnds::Ends> RowEnds::chosen(llvm::SelectInst& choice) {
    const auto* const comparison = llvm::dyn_cast<llvm::FCmpInst>(choice.getCondition());
    if (comparison == nullptr || !choice.getType()->isFloatTy() || !is_order(comparison->getPredicate()) ||
        comparison->getOperand(0) != choice.getTrueValue())
        return std::nullopt;
    if (llvm::Value* const bound = common(comparison->getOperand(1)))
        return bounded(ends_of(choice.getTrueValue()), comparison->getPredicate(), bound);
    return std::nullopt;
}

std::optional<RowEnds::Ends> RowEnds::operated(llvm::IntrinsicInst& call) {
    if (!call.getType()->isFloatTy())
        return std::nullopt;
    const auto within = [&](llvm::CmpInst::Predicate how) {
        return with_common(call, [&](auto ends, auto* bound) { return bounded(ends, how, bound); });
    };
    switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::minimumnum: return within(llvm::CmpInst::FCMP_OLE);
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::maximumnum: return within(llvm::CmpInst::FCMP_OGE);
    case llvm::Intrinsic::fabs: return magnitude(call.getArgOperand(0));
    case llvm::Intrinsic::fma:
    case llvm::Intrinsic::fmuladd:
        if (llvm::Value* const summand = common(call.getArgOperand(2)))
            return sum(with_common(call, [&](auto ends,
                                             auto* factor) { return product(ends, llvm::Instruction::FMul, factor); }),
                       llvm::Instruction::FAdd, summand);
        return std::nullopt;
    case llvm::Intrinsic::floor: {
        auto ends = ends_of(call.getArgOperand(0));
        if (ends)
            ends->is_floor = true;
        return ends;
    }
    default: return std::nullopt;
    }
}

std::optional<RowEnds::Row> RowEnds::row_of(llvm::Value* number, int64_t step) {
    auto* const cast = llvm::dyn_cast<llvm::CastInst>(number);
    if (cast == nullptr || !cast->getType()->isIntegerTy(32) ||
        (cast->getOpcode() != llvm::Instruction::FPToSI && cast->getOpcode() != llvm::Instruction::FPToUI))
        return std::nullopt;
    const auto ends = ends_of(cast->getOperand(0));
    if (!ends || ends->roundings > roundings_max || step < 1 || (ends->error == Error::none && step != 1))
        return std::nullopt;
    llvm::Value* const first = builder_.CreateExtractElement(ends->values, uint64_t{0});
    const Row row{builder_.CreateFreeze(builder_.CreateFPToSI(first, builder_.getInt32Ty())), nullptr};
    const auto number_of = [&](double value) { return llvm::ConstantFP::get(builder_.getFloatTy(), value); };
    if (ends->error == Error::none) {
        require(builder_.CreateFCmpOGE(first, number_of(0)));
        return Row{row.first, builder_.CreateFreeze(required())};
    }
    llvm::Value* const last = builder_.CreateExtractElement(ends->values, uint64_t{1});
    const auto near = [&](llvm::Value* value, llvm::Value* expected, double distance) {
        llvm::Value* const difference = builder_.CreateFSub(value, expected);
        require(builder_.CreateFCmpOLE(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, difference),
                                       number_of(distance)));
    };
    llvm::Value* const steps = builder_.CreateMul(distance(), builder_.getInt64(static_cast<uint64_t>(step)));
    near(builder_.CreateFSub(first, builder_.CreateSIToFP(row.first, builder_.getFloatTy())), number_of(0.5), 0.375);
    near(builder_.CreateFSub(last, first), builder_.CreateSIToFP(steps, builder_.getFloatTy()), 1.0 / 32);
    require(builder_.CreateFCmpOLE(last, number_of(static_cast<double>(number_max))));
    return Row{row.first, builder_.CreateFreeze(required())};
}

llvm::Value* RowEnds::all_true(llvm::Value* condition) {
    using namespace llvm::PatternMatch;
    if (llvm::Value* const same = common(condition))
        return builder_.CreateFreeze(same);
    llvm::Value *one = nullptr, *other = nullptr;
    if (match(condition, m_LogicalAnd(m_Value(one), m_Value(other)))) {
        llvm::Value* const first = all_true(one);
        llvm::Value* const second = first ? all_true(other) : nullptr;
        return second ? builder_.CreateAnd(first, second) : nullptr;
    }
    const auto* const comparison = llvm::dyn_cast<llvm::FCmpInst>(condition);
    if (comparison == nullptr || !is_order(comparison->getPredicate()))
        return nullptr;
    llvm::Value* const bound = common(comparison->getOperand(1));
    const auto ends = bound ? ends_of(comparison->getOperand(0)) : std::nullopt;
    if (!ends || ends->is_floor)
        return nullptr;
    require(builder_.CreateFCmp(comparison->getPredicate(), ends->values, both(bound)));
    return builder_.CreateFreeze(required());
}

}  // namespace polder::compiler::workgroup
