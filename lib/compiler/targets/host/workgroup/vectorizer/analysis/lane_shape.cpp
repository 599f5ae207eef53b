// A fixed-point iteration over the loop's blocks in reverse post-order. `compute` has one rule for each kind of instruction. A rule must be
// true for each lane that executes the instruction:
// - sum, scaled: strides add and multiply modulo 2^bits. The result is exact when the operands are and nsw or nuw excludes wrap-around.
// - extended: only a value that is exact in the same sense keeps its stride.
// - sum of 32 bits, truncated, low_bits, shifted_back (lane_shape_extensions.cpp): base plus index must be below 2^31 (assume_small).
// - phi: all incoming values have one stride. Edges from masked code bring some lanes each, so they must bring one value.
// The iteration ends: kind and stride only move down the lattice. A phi passes on the stride alone, so exactness and base follow chains of
// operands without a cycle.
#include "lane_shape.h"

#include "differing_bits.h"
#include "lane_shape_extensions.h"
#include "lane_shape_values.h"
#include "targets/host/workgroup/work_items/uniform_division.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"
#include "unsigned_extensions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

// What is left of a base of 64 bits of which one summand is subtracted again, as the offset of the launch is in `(int)(id - offset)`; else null.
// Other differences have no base: it could be negative, and the scalar loop would run.
llvm::Value* base_without(llvm::Value* base, llvm::Value* summand) {
    using namespace llvm::PatternMatch;
    llvm::Value* rest = nullptr;
    if (base && match(base, m_Add(m_Zero(), m_Value(rest))))
        base = rest;  // the index itself has the base 0
    const bool is_summand =
        base && base->getType()->isIntegerTy(64) && match(base, m_c_Add(m_Value(rest), m_Specific(summand)));
    return is_summand ? rest : nullptr;
}

}  // namespace

bool all_uniform(const LaneShapes& shapes, const llvm::Instruction& instruction) {
    return llvm::all_of(instruction.operands(), [&](const llvm::Use& operand) {
        const LaneShape shape = shapes.of(operand.get());
        return shape.kind == LaneShape::Kind::unknown || shape.is_uniform();
    });
}

LaneShapes::LaneShapes(const llvm::Loop& loop, const llvm::LoopInfo& loops, llvm::PHINode& index,
                       llvm::ArrayRef<llvm::BasicBlock*> blocks, const llvm::SmallPtrSetImpl<llvm::BasicBlock*>& masked,
                       const llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& divergent,
                       const PrivateVariables& privates, Certainty certainty, unsigned lanes, Increments increments)
    : certainty_(certainty), lanes_(lanes), increments_(increments), loop_(loop), loops_(loops), masked_(masked),
      divergent_(divergent), privates_(privates) {
    shapes_[&index] = {LaneShape::Kind::strided, 1, true, true, llvm::ConstantInt::get(index.getType(), 0),
                       bits_of_index(loop)};
    for (bool changed = true; changed;) {
        changed = false;
        for (llvm::BasicBlock* block : blocks)
            for (llvm::Instruction& instruction : *block) {
                if (&instruction == &index)
                    continue;
                LaneShape& current = shapes_[&instruction];
                if (current.kind == LaneShape::Kind::varying)
                    continue;
                const LaneShape next = compute(instruction);
                LaneShape& again = shapes_[&instruction];  // the map may have moved
                if (again == next || next.kind == LaneShape::Kind::unknown)
                    continue;
                // Values only move down: one whose stride has changed is varying.
                again = again.kind == LaneShape::Kind::unknown ||
                                (again.is_strided() && next.is_strided() && again.stride == next.stride)
                            ? next
                            : varying;
                changed = true;
            }
    }
}

LaneShape LaneShapes::of(const llvm::Value* value) const {
    if (const uint64_t stride = privates_.stride(value); stride != 0)
        return LaneShape::strided(static_cast<int64_t>(stride));
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (!instruction || !loop_.contains(instruction))
        return uniform;
    return shapes_.lookup(value);
}

bool LaneShapes::is_masked_edge(const llvm::BasicBlock* from) const {
    return masked_.contains(from) || divergent_.contains(from);
}

LaneShape LaneShapes::compute(llvm::Instruction& instruction) {
    if (is_guess() && instruction.hasMetadata(neighbours_quotient))
        return quotient(instruction);
    if (auto* node = llvm::dyn_cast<llvm::PHINode>(&instruction))
        return phi(*node);
    if (instruction.isAtomic() || instruction.isVolatile())
        return varying;
    if (auto* address_of = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction))
        return address(*address_of);
    if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
        if (const auto operation = sub_group_operation(instruction))
            return of_sub_group(*call, *operation);
        if (is_any_work_item(*call))
            return uniform;
        if (!call->doesNotAccessMemory())
            return varying;
    }
    if (auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
        const LaneShape shape = computed(*operation);
        return shape.kind == LaneShape::Kind::varying ? in_block(*operation).value_or(shape) : shape;
    }
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Trunc: return truncated(llvm::cast<llvm::TruncInst>(instruction));
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt: return extended(llvm::cast<llvm::CastInst>(instruction));
    case llvm::Instruction::AddrSpaceCast: return of(instruction.getOperand(0));
    case llvm::Instruction::Freeze: {
        // LLVM freezes ids that decide about a branch which it moves out of a loop. Poison becomes some number: no flag says that it is exact.
        LaneShape shape = of(instruction.getOperand(0));
        if (!shape.is_uniform())
            shape.is_exact_signed = shape.is_exact_unsigned = false;
        return shape;
    }
    default: return all_uniform(*this, instruction) ? uniform : is_guess() ? guessed(instruction) : varying;
    }
}

LaneShape LaneShapes::computed(llvm::BinaryOperator& operation) {
    switch (operation.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Or: return sum(operation);
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl: return scaled(operation);
    case llvm::Instruction::AShr:
    case llvm::Instruction::LShr: return shifted_back(operation);
    case llvm::Instruction::UDiv:
    case llvm::Instruction::SDiv:
    case llvm::Instruction::URem:
    case llvm::Instruction::SRem: return divided(operation);
    case llvm::Instruction::And: return low_bits(operation);
    case llvm::Instruction::Xor:
        if (is_complement(operation))
            return complement(operation);
        [[fallthrough]];
    default: return all_uniform(*this, operation) ? uniform : is_guess() ? guessed(operation) : varying;
    }
}

// The shape of the result of a sub-group function, in a loop whose lanes are one sub-group.
LaneShape LaneShapes::of_sub_group(llvm::CallBase& call, const SubGroupOperation& operation) const {
    if (operation.is_same_for_all())
        return uniform;
    if (operation.kind != SubGroupOperation::Kind::shuffle)
        return varying;
    const LaneShape value = of(call.getArgOperand(0));
    const LaneShape from = of(call.getArgOperand(1));
    if (value.is_uniform() || from.is_uniform())
        return uniform;
    const bool is_known = value.kind != LaneShape::Kind::unknown && from.kind != LaneShape::Kind::unknown;
    return is_known ? varying : LaneShape{};
}

// `value & mask`, where the mask keeps the lower 31 or more bits: LLVM writes a conversion to int and back like this. The preheader checks that
// the value fits.
LaneShape LaneShapes::low_bits(llvm::BinaryOperator& op) {
    if (all_uniform(*this, op))
        return uniform;
    const LaneShape value = of(op.getOperand(0));
    const auto* mask = llvm::dyn_cast<llvm::ConstantInt>(op.getOperand(1));
    if (is_guess())
        return in_block(op).value_or(step_under_mask(value, of(op.getOperand(1)), mask));
    if (value.kind == LaneShape::Kind::unknown)
        return {};
    if (!value.is_strided() || !mask)
        return varying;
    if (value.differing_bits != 0 && mask->getValue().countr_one() >= value.differing_bits)
        return with_base(in_low_bits(LaneShape::strided(value.stride), value.differing_bits, mask->getBitWidth()), op,
                         value);
    if (!value.base || !op.getType()->isIntegerTy(64) || !mask->getValue().isMask() ||
        mask->getValue().countr_one() < 31)
        return varying;
    if (const auto asked = asked_half(op, value))
        return *asked;
    LaneShape result = value;
    if (adds_negative_half(*value.base)) {
        llvm::Value*& made = bases_[&op];
        if (!made)
            made = llvm::IRBuilder<>(loop_.getLoopPreheader()->getTerminator()).CreateAnd(value.base, op.getOperand(1));
        result.base = made;
    }
    if (!assume_small(result.base, false, value.stride))
        return varying;
    result.is_exact_signed = result.is_exact_unsigned = true;
    return result;
}

llvm::Value* LaneShapes::sum_of(llvm::Value& base, llvm::Value& other) {
    return index_bases_.sum(base, other, *loop_.getLoopPreheader()->getTerminator());
}

// The base of a product with a constant factor; null when `value` has none, or the factor is so large that products are no indices of structures:
// seeds of random numbers may well wrap around.
llvm::Value* LaneShapes::times_constant(llvm::Instruction& product, const LaneShape& value, int64_t factor) {
    constexpr int64_t structure_max = 64;
    if (!value.base || is_guess() || !value.base->getType()->isIntegerTy(64) || factor <= 0 ||
        value.stride * factor > structure_max)
        return nullptr;
    if (factor == 1)
        return value.base;
    llvm::Value*& made = bases_[&product];
    if (!made) {
        llvm::IRBuilder<> at(loop_.getLoopPreheader()->getTerminator());
        made = at.CreateMul(value.base, at.getInt64(static_cast<uint64_t>(factor)));
    }
    return made;
}

// False when it is known that `base` plus an index is not below 2^31; else the loop's preheader checks it.
bool LaneShapes::assume_small(llvm::Value* base, bool may_be_negative, int64_t stride) {
    constexpr int64_t end = int64_t{1} << 31;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(base);
    if (constant && stride == 1 && (constant->isZero() || constant->isNegative()))
        return constant->isZero() || may_be_negative;
    // As 2^32 - 1 is, which LLVM adds in 64 bits to subtract 1 in 32.
    if (constant && (constant->isNegative() || constant->getSExtValue() >= end))
        return false;
    if (certainty_ == Certainty::proven)
        return false;
    if (const SmallBase assumed{base, may_be_negative, stride}; !llvm::is_contained(assumed_small_, assumed))
        assumed_small_.push_back(assumed);
    return true;
}

// Whether the value, which `node` takes, or what it was chosen from is what each lane had when it left a masked loop: lanes leave it in different
// iterations. As a guess, not if all active lanes leave it at once.
bool LaneShapes::is_left_in_turns(const llvm::Value& value, const llvm::PHINode& node, unsigned depth) const {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr)
        return false;
    const llvm::Loop* const inside = loops_.getLoopFor(instruction->getParent());
    if (inside && masked_.contains(inside->getHeader()) && !inside->contains(&node)) {
        llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
        inside->getExitingBlocks(exiting);
        return !is_guess() ||
               llvm::any_of(exiting, [&](const llvm::BasicBlock* block) { return divergent_.contains(block); });
    }
    const auto* const choice = llvm::dyn_cast<llvm::PHINode>(instruction);
    const bool is_header = inside != nullptr && inside->getHeader() == instruction->getParent();
    return is_guess() && depth > 0 && choice != nullptr && !is_header &&
           llvm::any_of(choice->incoming_values(),
                        [&](const llvm::Use& use) { return is_left_in_turns(*use, *choice, depth - 1); });
}

LaneShape LaneShapes::phi(llvm::PHINode& node) {
    const llvm::Loop* around = loops_.getLoopFor(node.getParent());
    const bool is_header = around && around->getHeader() == node.getParent();
    LaneShape result;
    llvm::Value* only = nullptr;
    bool several = false, is_unknown = false;
    // Lanes that differ in one round of a loop differ more in each of the next, such as the heights of stacks.
    const bool is_in_divergent_loop = around != nullptr && around != &loop_ && masked_.contains(around->getHeader());
    const auto is_left = [&](unsigned i) {
        return !is_header && is_masked_edge(node.getIncomingBlock(i)) &&
               is_left_in_turns(*node.getIncomingValue(i), node);
    };
    const bool is_rarely_other =
        is_guess() && !is_in_divergent_loop && llvm::any_of(llvm::seq(node.getNumIncomingValues()), is_left);
    for (unsigned i = 0; i < node.getNumIncomingValues(); ++i) {
        llvm::Value* value = node.getIncomingValue(i);
        if (is_masked_edge(node.getIncomingBlock(i)) && !is_header) {
            if (is_left(i)) {
                if (!is_rarely_other)
                    return varying;
                continue;
            }
            if (only && only != value)
                several = true;
            only = value;
        }
        const LaneShape shape = of(value);
        if (shape.kind == LaneShape::Kind::unknown) {
            is_unknown = true;
            continue;
        }
        if (!shape.is_strided())
            return varying;
        if (is_rarely_other && shape.is_uniform())
            continue;
        if (result.kind == LaneShape::Kind::unknown)
            result = LaneShape::strided(shape.stride);
        if (result.stride != shape.stride)
            return varying;
    }
    if (is_rarely_other && !result.is_strided())
        return is_unknown ? LaneShape{} : varying;
    return several && (!is_guess() || is_in_divergent_loop) ? varying : result;
}

LaneShape LaneShapes::sum(llvm::BinaryOperator& op) {
    const LaneShape left = of(op.getOperand(0));
    const LaneShape right = of(op.getOperand(1));
    if (left.kind == LaneShape::Kind::unknown || right.kind == LaneShape::Kind::unknown)
        return {};
    if (!left.is_strided() || !right.is_strided())
        return varying;
    if (left.is_uniform() && right.is_uniform())
        return uniform;
    if (const LaneShape known =
            left.is_uniform() ? sum_above(op, right, op.getOperand(0)) : sum_above(op, left, op.getOperand(1));
        known.is_strided())
        return known;
    const bool is_or = op.getOpcode() == llvm::Instruction::Or;
    if (is_or && !llvm::cast<llvm::PossiblyDisjointInst>(op).isDisjoint())
        return varying;
    const bool is_sub = op.getOpcode() == llvm::Instruction::Sub;
    LaneShape result = LaneShape::strided(is_sub ? left.stride - right.stride : left.stride + right.stride);
    if (result.stride == 0)
        return varying;  // strides rarely cancel, so there is no rule for the exactness of the result
    const bool no_signed_wrap = !is_or && op.hasNoSignedWrap();
    const bool no_unsigned_wrap = is_or || op.hasNoUnsignedWrap();
    result.is_exact_signed = no_signed_wrap && left.is_exact_signed && right.is_exact_signed;
    result.is_exact_unsigned = no_unsigned_wrap && left.is_exact_unsigned && right.is_exact_unsigned;
    const bool counts_down = is_sub && left.is_uniform();
    if (is_sub && !counts_down && !is_guess())
        result.base = base_without(left.base, op.getOperand(1));
    if (is_or || (is_sub && !counts_down) || is_guess())
        return result;

    // base + index, or a number minus both: the loop's preheader can check that no lane wraps around.
    const bool left_is_index = left.base != nullptr;
    llvm::Value* other = op.getOperand(left_is_index ? 1 : 0);
    llvm::Value* base = left_is_index ? left.base : right.base;
    if (!base || !loop_.isLoopInvariant(other))
        return result;
    if (counts_down) {
        result.base = difference(op, *other, *base);
        if (!result.base)
            return result;
    } else {
        result.base = sum_of(*base, *other);
    }
    if (!op.getType()->isIntegerTy(32) || !is_read_as_number(op))
        return result;
    const bool may_be_negative = !is_extended_as_unsigned(op) || assume_asked(op, *result.base);
    if (!assume_small(result.base, may_be_negative, result.stride < 0 ? -1 : 1)) {
        result.base = nullptr;
        return result;
    }
    result.is_exact_signed = true;
    result.is_exact_unsigned |= !may_be_negative;
    return result;
}

// The base of `minuend` minus an index with `base`, of 32 bits.
llvm::Value* LaneShapes::difference(llvm::Instruction& op, llvm::Value& minuend, llvm::Value& base) {
    if (!op.getType()->isIntegerTy(32) || base.getType() != op.getType())
        return nullptr;
    llvm::Value*& made = bases_[&op];
    if (!made) {
        llvm::IRBuilder<> at(loop_.getLoopPreheader()->getTerminator());
        const OffsetBase split = without_offset(base);
        llvm::Value* const root = at.CreateSub(&minuend, split.root);
        made = split.offset == 0 ? root : at.CreateAdd(root, llvm::ConstantInt::getSigned(op.getType(), -split.offset));
    }
    return made;
}

LaneShape LaneShapes::scaled(llvm::BinaryOperator& op) {
    if (const auto shape = incremented(op))
        return *shape;
    LaneShape value = of(op.getOperand(0));
    LaneShape factor = of(op.getOperand(1));
    llvm::Value* constant_operand = op.getOperand(1);
    if (op.getOpcode() == llvm::Instruction::Mul && llvm::isa<llvm::ConstantInt>(op.getOperand(0))) {
        std::swap(value, factor);
        constant_operand = op.getOperand(0);
    }
    if (value.kind == LaneShape::Kind::unknown || factor.kind == LaneShape::Kind::unknown)
        return {};
    if (value.is_uniform() && factor.is_uniform())
        return uniform;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(constant_operand);
    if (!value.is_strided() || !constant || constant->getBitWidth() > 64)
        return varying;
    const bool is_shift = op.getOpcode() == llvm::Instruction::Shl;
    const unsigned bits = op.getType()->getIntegerBitWidth();
    const unsigned differing = is_shift && value.differing_bits != 0
                                   ? value.differing_bits + static_cast<unsigned>(constant->getLimitedValue(bits))
                                   : 0;
    constexpr int64_t stride_max = 1 << 20;
    const bool is_product = value.differing_bits != 0 || value.base != nullptr;
    const bool is_small = value.stride == 1 || (is_product && std::abs(value.stride) <= stride_max);
    if (const auto half = half_of_extension(op);
        half && is_small && half->factor <= stride_max / std::abs(value.stride))
        return in_low_bits(LaneShape::strided(value.stride * half->factor * (int64_t{1} << 32)), differing, bits);
    if (is_shift && constant->getZExtValue() > 20)
        return varying;
    const int64_t times = is_shift ? int64_t{1} << constant->getZExtValue() : constant->getSExtValue();
    if (times == 0 || std::abs(times) > stride_max || std::abs(value.stride) > stride_max)
        return varying;
    LaneShape result = LaneShape::strided(value.stride * times);
    result.is_exact_signed = value.is_exact_signed && op.hasNoSignedWrap();
    result.is_exact_unsigned = value.is_exact_unsigned && times > 0 && op.hasNoUnsignedWrap();
    result.base = times_constant(op, value, times);
    return in_low_bits(result, differing, bits);
}

LaneShape LaneShapes::truncated(llvm::TruncInst& cast) {
    const LaneShape value = of(cast.getOperand(0));
    if (!value.is_strided() || value.is_uniform())
        return value;
    if (!cast.getType()->isIntegerTy(32))
        return varying;
    LaneShape result =
        in_low_bits(LaneShape::strided(value.stride), value.differing_bits, cast.getType()->getIntegerBitWidth());
    if (is_guess() || !value.base || value.stride != 1 || !cast.getOperand(0)->getType()->isIntegerTy(64))
        return result;
    const bool is_checked = result.differing_bits == 0;
    if (is_checked && !is_read_as_number(cast))
        return result;
    llvm::Value*& made = bases_[&cast];
    if (!made) {
        llvm::IRBuilder<> at(loop_.getLoopPreheader()->getTerminator());
        made = at.CreateTrunc(value.base, cast.getType());
    }
    const bool is_half = adds_negative_half(*value.base);  // its 64 bits are never small
    const bool may_be_negative = is_checked && is_half && !is_extended_as_unsigned(cast);
    if (is_checked && !assume_small(is_half ? made : value.base, may_be_negative))
        return result;
    result.base = made;
    result.is_exact_signed = true;
    result.is_exact_unsigned = !may_be_negative;
    return result;
}

LaneShape LaneShapes::extended(llvm::CastInst& cast) {
    const LaneShape value = of(cast.getOperand(0));
    if (is_guess() && value.kind == LaneShape::Kind::varying && cast.getOperand(0)->getType()->isIntegerTy(1))
        return uniform;
    if (!value.is_strided() || value.is_uniform())
        return value;
    const bool is_signed = llvm::isa<llvm::SExtInst>(cast);
    const bool exact =
        is_signed ? value.is_exact_signed
                  : value.is_exact_unsigned || (value.is_exact_signed && (cast.hasNonNeg() || asked_.contains(&cast)));
    if (!exact && !is_guess())
        return varying;
    LaneShape result = LaneShape::strided(value.stride);
    result.is_exact_signed = true;
    result.is_exact_unsigned = !is_signed && (value.is_exact_unsigned || is_guess());
    return in_low_bits(result, value.differing_bits, cast.getType()->getIntegerBitWidth());
}

LaneShape LaneShapes::address(llvm::GetElementPtrInst& gep) {
    if (gep.getType()->isVectorTy())
        return varying;
    const llvm::DataLayout& layout = gep.getModule()->getDataLayout();
    int64_t stride = 0;
    const LaneShape base = of(gep.getPointerOperand());
    if (base.kind == LaneShape::Kind::unknown)
        return {};
    if (!base.is_strided())
        return varying;
    stride = base.stride;
    for (auto at = llvm::gep_type_begin(gep); at != llvm::gep_type_end(gep); ++at) {
        const LaneShape index = of(at.getOperand());
        if (index.kind == LaneShape::Kind::unknown)
            return {};
        if (!index.is_strided())
            return varying;
        if (index.is_uniform())
            continue;
        // A part of a word is not as far from the next one as a word.
        if (privates_.is_in_words(&gep))
            return varying;
        // InstCombine has extended indices to 64 bits. A narrower one would be extended here, without a proof that it is exact.
        if (at.getOperand()->getType()->getIntegerBitWidth() < 64)
            return varying;
        stride += index.stride * static_cast<int64_t>(at.getSequentialElementStride(layout).getFixedValue()) *
                  static_cast<int64_t>(privates_.scale(&gep));
    }
    return LaneShape::strided(stride);
}

}  // namespace polder::compiler::workgroup
