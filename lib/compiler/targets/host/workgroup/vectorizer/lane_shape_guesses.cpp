// The rules for shapes that are likely and not certain (LaneShapes::Certainty::likely). The code asks at run time whether they hold, so a rule may be
// wrong; it costs time where it often is.
#include "lane_shape.h"
#include "lane_shape_values.h"
#include "targets/host/workgroup/work_items/uniform_division.h"

#include <cstdlib>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

llvm::Intrinsic::ID intrinsic_of(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
}

// Whether numbers that are a whole step apart most often stay so.
bool keeps_step(const llvm::Instruction& instruction) {
    switch (intrinsic_of(instruction)) {
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::trunc:
    case llvm::Intrinsic::rint:
    case llvm::Intrinsic::round:
    case llvm::Intrinsic::roundeven:
    case llvm::Intrinsic::abs: return true;
    default:
        return llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst, llvm::FPToSIInst, llvm::FPToUIInst, llvm::FPExtInst,
                         llvm::FPTruncInst>(instruction);
    }
}

// The same where one of two operands is the same for all lanes.
bool keeps_step_of_one(const llvm::Instruction& instruction) {
    switch (intrinsic_of(instruction)) {
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::maximum: return true;
    default:
        return llvm::isa<llvm::MinMaxIntrinsic>(instruction) || instruction.getOpcode() == llvm::Instruction::FAdd ||
               instruction.getOpcode() == llvm::Instruction::FSub;
    }
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

// min and max with a bound, written as compares and selects or as intrinsics, change no lane in most cases. So the guess is the shape of the
// operand that is not uniform. Nor do conversions to floating-point numbers and back, with a constant added and rounded, as in coordinates of
// images: (int)floor((float)x + 0.5f).
LaneShape LaneShapes::clamped(llvm::Instruction& instruction) {
    if (!is_guess())
        return varying;
    if (is_division_guarded(instruction))
        return of(instruction.getOperand(2));
    if (llvm::isa<llvm::SelectInst>(instruction))
        return of_one_that_varies(of(instruction.getOperand(1)), of(instruction.getOperand(2)));
    if (instruction.getOpcode() == llvm::Instruction::Xor && is_sign(instruction.getOperand(1)))
        return of(instruction.getOperand(0));
    if (keeps_step(instruction)) {
        const LaneShape value = of(instruction.getOperand(0));
        return value.is_strided() ? strided(value.stride) : value;
    }
    const bool is_difference = instruction.getOpcode() == llvm::Instruction::FSub;
    if (!keeps_step_of_one(instruction) || (is_difference && of(instruction.getOperand(0)).is_uniform()))
        return varying;
    return of_one_that_varies(of(instruction.getOperand(0)), of(instruction.getOperand(1)));
}

// Where ids of one dimension count the elements of a picture, rows are quotients by its width and columns remainders. As a guess, neighbours
// are in one row.
LaneShape LaneShapes::divided(llvm::BinaryOperator& op) {
    constexpr int64_t neighbours = 16;
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
    return is_quotient ? uniform : strided(value.stride);
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
