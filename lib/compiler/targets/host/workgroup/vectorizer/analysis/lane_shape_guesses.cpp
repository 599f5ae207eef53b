// Guesses: shapes that are likely and not certain (LaneShapes::Certainty::likely). Code checks each use (likely_steps.cpp), so a wrong guess costs time,
// not results.
// - Bounds, conversions between integers and floating-point numbers, sums and rounding change no lane's step in most cases:
//   (int)floor((float)x + 0.5f).
// - Of a number and its reflection, as at the edges of a picture, most lanes take the number, which grows: min(x, 2 * end - x).
// - A number that some lanes replace by what they find in a loop, such as a place beyond the edge that is reflected until it is inside, is mostly kept.
// - A condition that is added as a number is the same for all lanes, as in x + (x < end): most vectors do not reach an end.
// - A product with a number that all lanes have in common, or a quotient by one, has a step of a size that is not known; the next such product
//   undoes it, as for normalized coordinates: x / width * width. Products with constants are no such pair: they only scale.
// - Neighbours are in one row of a picture whose elements are counted by ids of one dimension.
// - Rounding a scaled number gives the same number for all lanes: that of the copy in a repeated image where the row is.
#include "lane_shape.h"
#include "lane_shape_values.h"
#include "targets/host/workgroup/work_items/uniform_division.h"

#include <cstdlib>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {

namespace {

constexpr int64_t neighbours = 16;
constexpr int64_t step_max = int64_t{1} << 30;  // that a mask of bits is compared with

llvm::Intrinsic::ID intrinsic_of(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
}

bool is_rounding(llvm::Intrinsic::ID operation) {
    switch (operation) {
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::trunc:
    case llvm::Intrinsic::rint:
    case llvm::Intrinsic::round:
    case llvm::Intrinsic::roundeven: return true;
    default: return false;
    }
}

bool is_bound(llvm::Intrinsic::ID operation) {
    switch (operation) {
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::minimumnum:
    case llvm::Intrinsic::maximumnum:
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::smax:
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::umax:
    case llvm::Intrinsic::uadd_sat:
    case llvm::Intrinsic::sadd_sat: return true;
    default: return false;
    }
}

// Without exactness and base, which no guess has.
LaneShape same_step(const LaneShape& value) { return value.is_strided() ? LaneShape::strided(value.stride) : value; }

LaneShape rounded(const LaneShape& value) { return value.kind == LaneShape::Kind::scaled ? uniform : same_step(value); }

// Of what lanes choose from: bounds are written as comparisons and choices, too.
LaneShape chosen(const LaneShape& one, const LaneShape& other) {
    if (one.is_strided() && other.is_strided() && one.stride == other.stride)
        return same_step(one);
    return LaneShape::of_one_that_varies(one, other);
}

// Of two numbers of which one bounds the other.
LaneShape bounded(const LaneShape& one, const LaneShape& other) {
    const bool are_reflected = one.is_strided() && other.is_strided() && one.stride != 0 && one.stride == -other.stride;
    return are_reflected ? LaneShape::strided(std::abs(one.stride)) : LaneShape::of_one_that_varies(one, other);
}

// A product with a factor, or a quotient by it.
LaneShape scaled_by(const LaneShape& value, const LaneShape& factor, const llvm::Value& factor_value) {
    if (value.kind == LaneShape::Kind::unknown || factor.kind == LaneShape::Kind::unknown)
        return {};
    if (value.kind == LaneShape::Kind::varying || !factor.is_uniform())
        return varying;
    if (value.is_uniform())
        return value;
    const bool is_undone = value.kind == LaneShape::Kind::scaled && !llvm::isa<llvm::Constant>(factor_value);
    return is_undone ? LaneShape::strided(value.stride) : LaneShape::scaled(value.stride);
}

LaneShape product(const LaneShapes& shapes, const llvm::Value& left, const llvm::Value& right) {
    const LaneShape shape = shapes.of(&left), other = shapes.of(&right);
    return other.is_uniform() ? scaled_by(shape, other, right) : scaled_by(other, shape, left);
}

// Whether `value` is the sign of a quotient or remainder (uniform_division.h): 0 or -1.
bool is_sign(const llvm::Value* value) {
    const auto* sign = llvm::dyn_cast<llvm::BinaryOperator>(value);
    return sign && sign->getOpcode() == llvm::Instruction::AShr && sign->hasMetadata(neighbours_quotient);
}

// Whether the instruction chooses between a quotient and the negative dividend, which is the quotient by -1.
bool is_division_guarded(const llvm::Instruction& instruction) {
    using namespace llvm::PatternMatch;
    return match(&instruction, m_Select(m_Value(), m_Neg(m_Value()), m_Value()));
}

}  // namespace

LaneShape LaneShapes::guessed(llvm::Instruction& instruction) const {
    const auto operand = [&](unsigned number) { return of(instruction.getOperand(number)); };
    if (is_division_guarded(instruction))
        return operand(2);
    const llvm::Intrinsic::ID intrinsic = intrinsic_of(instruction);
    if (is_rounding(intrinsic))
        return rounded(operand(0));
    if (is_bound(intrinsic))
        return bounded(operand(0), operand(1));
    if (intrinsic == llvm::Intrinsic::usub_sat || intrinsic == llvm::Intrinsic::ssub_sat)
        return operand(0).is_uniform() ? varying : LaneShape::of_one_that_varies(operand(0), operand(1));
    if (intrinsic == llvm::Intrinsic::fabs || intrinsic == llvm::Intrinsic::abs)
        return same_step(operand(0));
    if (intrinsic == llvm::Intrinsic::fmuladd || intrinsic == llvm::Intrinsic::fma)
        return LaneShape::of_one_that_varies(product(*this, *instruction.getOperand(0), *instruction.getOperand(1)),
                                             operand(2));
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Xor: return is_sign(instruction.getOperand(1)) ? operand(0) : varying;
    case llvm::Instruction::Select: return chosen(operand(1), operand(2));
    case llvm::Instruction::SIToFP:
    case llvm::Instruction::UIToFP:
    case llvm::Instruction::FPExt:
    case llvm::Instruction::FPTrunc: return same_step(operand(0));
    case llvm::Instruction::FPToSI:
    case llvm::Instruction::FPToUI: {
        const LaneShape value = operand(0);
        return value.kind == LaneShape::Kind::scaled ? varying : same_step(value);
    }
    case llvm::Instruction::FSub:
        return operand(0).is_uniform() ? varying : LaneShape::of_one_that_varies(operand(0), operand(1));
    case llvm::Instruction::FAdd: return LaneShape::of_one_that_varies(operand(0), operand(1));
    case llvm::Instruction::FMul: return product(*this, *instruction.getOperand(0), *instruction.getOperand(1));
    case llvm::Instruction::FDiv: return scaled_by(operand(0), operand(1), *instruction.getOperand(1));
    default: return varying;
    }
}

// Of the bits in which neighbours differ, a constant mask keeps all, and so the step, or none, or it keeps parts of them, as in
// `(id & 28) | (id + 3 & 3)`, where neighbours take turns. Other masks change no step, as in `2 * id - (id & (n - 1))` of sorting networks.
LaneShape step_under_mask(const LaneShape& value, const LaneShape& mask, const llvm::ConstantInt* constant) {
    if (constant == nullptr || !value.is_strided() || value.is_uniform() || std::abs(value.stride) > step_max)
        return LaneShape::of_one_that_varies(value, mask);
    const auto step = static_cast<uint64_t>(std::abs(value.stride));
    const unsigned lowest = llvm::countr_zero(step), bits = llvm::Log2_64_Ceil(neighbours * step) - lowest;
    if (lowest + bits > constant->getBitWidth())
        return same_step(value);
    const llvm::APInt kept = constant->getValue().extractBits(bits, lowest);
    return kept.isAllOnes() ? same_step(value) : kept.isZero() ? uniform : varying;
}

// Where ids of one dimension count the elements of a picture, rows are quotients by its width and columns remainders. As a guess, neighbours
// are in one row.
LaneShape LaneShapes::divided(llvm::BinaryOperator& op) {
    const LaneShape value = of(op.getOperand(0)), divisor = of(op.getOperand(1));
    if (value.kind == LaneShape::Kind::unknown || divisor.kind == LaneShape::Kind::unknown)
        return {};
    if (value.is_uniform() && divisor.is_uniform())
        return uniform;
    if (!is_guess() || !value.is_strided() || !divisor.is_uniform())
        return varying;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(op.getOperand(1));
    if (constant && constant->getValue().abs().ult(static_cast<uint64_t>(neighbours * std::abs(value.stride))))
        return varying;
    const bool is_quotient = op.getOpcode() == llvm::Instruction::UDiv || op.getOpcode() == llvm::Instruction::SDiv;
    return is_quotient ? uniform : LaneShape::strided(value.stride);
}

// A quotient, or its sign, which instructions compute from a dividend and a divisor without a division (uniform_division.h).
LaneShape LaneShapes::quotient(llvm::Instruction& instruction) {
    constexpr size_t values_max = 24;
    llvm::SmallPtrSet<const llvm::Value*, 16> seen{&instruction};
    llvm::SmallVector<const llvm::Instruction*> todo{&instruction};
    while (!todo.empty())
        for (const llvm::Use& operand : todo.pop_back_val()->operands()) {
            const LaneShape shape = of(operand.get());
            if (shape.kind == LaneShape::Kind::unknown)
                return shape;
            if (shape.is_strided() || !seen.insert(operand.get()).second)
                continue;
            const auto* from = llvm::cast<llvm::Instruction>(operand.get());
            if (llvm::isa<llvm::PHINode>(from) || from->mayReadOrWriteMemory() || seen.size() > values_max)
                return varying;
            todo.push_back(from);
        }
    return uniform;
}

}  // namespace polder::compiler::workgroup
