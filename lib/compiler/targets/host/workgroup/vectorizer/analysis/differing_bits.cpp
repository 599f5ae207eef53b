#include "differing_bits.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/KnownBits.h>

namespace polder::compiler::workgroup {

unsigned bits_of_index(const llvm::Loop& loop) {
    const llvm::ICmpInst* const compare = loop.getLatchCmpInst();
    if (compare == nullptr)
        return 0;
    // At the end of the launch, a work-group may have fewer work-items than others.
    const llvm::ConstantRange count = llvm::computeConstantRange(compare->getOperand(1), /*ForSigned=*/false);
    const llvm::APInt most = count.getUnsignedMax();
    return most.isZero() || most.isMaxValue() ? 0 : (most - 1).getActiveBits();
}

LaneShape in_low_bits(LaneShape shape, unsigned differing, unsigned bits) {
    if (differing == 0 || differing >= bits || !shape.is_strided() || shape.is_uniform())
        return shape;
    shape.is_exact_signed = shape.is_exact_unsigned = true;
    shape.differing_bits = differing;
    return shape;
}

// The sum, or the `or`, of a value whose lanes differ in low bits and a number that is the same for all lanes and has zeros there.
LaneShape LaneShapes::sum_above(llvm::BinaryOperator& op, const LaneShape& value, llvm::Value* other) {
    if (op.getOpcode() == llvm::Instruction::Sub || value.differing_bits == 0 || !of(other).is_uniform())
        return {};
    const llvm::KnownBits bits = llvm::computeKnownBits(other, op.getDataLayout());
    if (bits.countMinTrailingZeros() < value.differing_bits)
        return {};
    return with_base({LaneShape::Kind::strided, value.stride, true, true, nullptr, value.differing_bits}, op, value);
}

// `shape`, that of the operation of `value` and another operand, whose base is the same operation of the base of `value`: the operation leaves the
// bits alone in which lanes differ.
LaneShape LaneShapes::with_base(LaneShape shape, llvm::BinaryOperator& operation, const LaneShape& value) {
    const unsigned other = of(operation.getOperand(0)).is_uniform() ? 0 : 1;
    if (value.base == nullptr || is_guess() || !loop_.isLoopInvariant(operation.getOperand(other)))
        return shape;
    llvm::Value*& made = bases_[&operation];
    if (!made) {
        llvm::IRBuilder<> at(loop_.getLoopPreheader()->getTerminator());
        made = at.CreateBinOp(operation.getOpcode(), value.base, operation.getOperand(other));
    }
    shape.base = made;
    return shape;
}

}  // namespace polder::compiler::workgroup
