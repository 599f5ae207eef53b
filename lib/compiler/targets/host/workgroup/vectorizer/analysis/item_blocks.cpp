// Blocks of neighbouring work-items, as kernels for GPUs form them: `id / 32` is the number of a warp and `id % 32` the place in it.
//
// A vector of lanes lies within one block when the block is at least as large and the first lane's number is a multiple of the lanes. All vectors
// of a loop begin at multiples of their lanes, so this must hold for the base of the number alone. Bases that come from the launch, such as the
// group's first id, are checked before the loop (LaneShapes::assumed_aligned): groups of 32, 64 or 256 work-items pass. Other bases are not taken,
// because the scalar loop would run for most of their values, unless they are known to be such multiples, as `y * get_local_size(0)` is in usual launches
// (frame/usual_launches.h). Within a block all quotients are the same, and remainders have the number's step.
#include "item_blocks.h"

#include "differing_bits.h"
#include "index_bases.h"
#include "lane_shape.h"
#include "lane_shape_values.h"
#include "targets/host/workgroup/frame/abi.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Support/MathExtras.h>
#include <utility>

namespace polder::compiler::workgroup {

namespace {

// A division of a number into blocks of a power of two.
struct Division {
    llvm::Value* number = nullptr;
    uint64_t block = 0;
    bool gives_remainder = false;
    bool rounds_to_zero = false;  // quotients and remainders of negative numbers are other ones
};

constexpr unsigned block_bits_max = 30;

std::optional<Division> shift_as_division(const llvm::BinaryOperator& op) {
    using namespace llvm::PatternMatch;
    uint64_t back = 0, up = 0;
    llvm::Value* number = nullptr;
    if (!match(op.getOperand(1), m_ConstantInt(back)))
        return std::nullopt;
    // (x << 32) >> 37 is the quotient of the lower half by 32, extended with its sign.
    if (!match(op.getOperand(0), m_Shl(m_Value(number), m_ConstantInt(up))))
        number = op.getOperand(0);
    if (back <= up || back - up > block_bits_max || back >= op.getType()->getIntegerBitWidth())
        return std::nullopt;
    return Division{.number = number, .block = uint64_t{1} << (back - up)};
}

std::optional<Division> as_division(const llvm::BinaryOperator& op) {
    using How = llvm::Instruction;
    const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(op.getOperand(1));
    if (constant == nullptr || constant->getBitWidth() > 64)
        return std::nullopt;
    llvm::Value* const number = op.getOperand(0);
    const llvm::APInt& value = constant->getValue();
    const auto block = [&](const llvm::APInt& size) { return size.getZExtValue(); };
    const bool is_block = value.isPowerOf2() && !value.isNegative() && value.logBase2() <= block_bits_max;
    switch (op.getOpcode()) {
    case How::LShr:
    case How::AShr: return shift_as_division(op);
    case How::UDiv: return is_block ? std::optional(Division{number, block(value)}) : std::nullopt;
    case How::SDiv: return is_block ? std::optional(Division{number, block(value), false, true}) : std::nullopt;
    case How::URem: return is_block ? std::optional(Division{number, block(value), true}) : std::nullopt;
    case How::SRem: return is_block ? std::optional(Division{number, block(value), true, true}) : std::nullopt;
    case How::And:
        if (value.isMask() && value.countr_one() <= block_bits_max)
            return Division{number, block(value) + 1, true};
        // Whatever bits of the block's number the mask keeps: of `(uint)id / 32 * 32` those of 32 bits.
        if (value.countr_zero() > 0 && value.countr_zero() <= block_bits_max)
            return Division{number, uint64_t{1} << value.countr_zero()};
        return std::nullopt;
    default: return std::nullopt;
    }
}

// Whether the launch alone decides about `value`, and no argument of the kernel. Multiplications and their results are hidden from LLVM behind empty
// assembly (frame/opaque_sizes.h).
bool is_of_launch(const llvm::Value& value) {
    if (llvm::isa<llvm::ConstantInt>(value))
        return true;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&value)) {
        const auto* from = llvm::dyn_cast<llvm::Argument>(llvm::getUnderlyingObject(load->getPointerOperand()));
        return from != nullptr && (from->getArgNo() == abi::context || from->getArgNo() == abi::group_id);
    }
    if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&value))
        return call->isInlineAsm() && call->arg_size() == 1 && is_of_launch(*call->getArgOperand(0));
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    return instruction != nullptr &&
           (llvm::isa<llvm::BinaryOperator>(instruction) || llvm::isa<llvm::CastInst>(instruction)) &&
           llvm::all_of(instruction->operands(), [](const llvm::Use& operand) { return is_of_launch(*operand); });
}

// A number that was shifted up begins a block where the number before it begins a smaller one, as in `id << 4 & -65536`: LLVM makes this of
// `(id / 4096) * 65536`. Bits that leave at the top are above all blocks.
struct Unshifted {
    llvm::Value* value = nullptr;
    int64_t stride = 0;
};

std::optional<Unshifted> before_shift(const llvm::Value& number, int64_t stride) {
    using namespace llvm::PatternMatch;
    Unshifted before;
    uint64_t bits = 0;
    if (!match(&number, m_Shl(m_Value(before.value), m_ConstantInt(bits))) || bits > block_bits_max)
        return std::nullopt;
    before.stride = stride >> bits;
    const bool is_whole = before.stride > 0 && before.stride << bits == stride;
    return is_whole ? std::optional(before) : std::nullopt;
}

}  // namespace

bool have_divisions_into_blocks(llvm::ArrayRef<llvm::BasicBlock*> code) {
    return llvm::any_of(code, [](const llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](const llvm::Instruction& instruction) {
            const auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(&instruction);
            return operation != nullptr && as_division(*operation).has_value();
        });
    });
}

// The number's base. A number that was cut to 32 bits has the lower bits of the longer one.
llvm::Value* LaneShapes::base_of_low_bits(const llvm::Value* number) const {
    if (llvm::Value* const base = of(number).base)
        return base;
    const auto* cast = llvm::dyn_cast<llvm::TruncInst>(number);
    return cast ? of(cast->getOperand(0)).base : nullptr;
}

// The shape of a quotient or remainder when each vector of lanes lies within one block; else nothing.
std::optional<LaneShape> LaneShapes::in_block(llvm::BinaryOperator& op) {
    const auto division = lanes_ > 0 ? as_division(op) : std::nullopt;
    if (!division)
        return std::nullopt;
    const LaneShape number = of(division->number);
    if (!number.is_strided() || number.stride <= 0 || !llvm::isPowerOf2_64(static_cast<uint64_t>(number.stride)))
        return std::nullopt;
    const uint64_t lanes_in_block = division->block / static_cast<uint64_t>(number.stride);
    if (lanes_in_block < lanes_)
        return std::nullopt;
    if (!is_guess() && !assume_aligned(*division->number, number.stride, lanes_in_block, division->rounds_to_zero))
        return std::nullopt;
    if (!division->gives_remainder)
        return uniform;
    return in_low_bits(LaneShape::strided(number.stride), static_cast<unsigned>(llvm::Log2_64(division->block)),
                       op.getType()->getIntegerBitWidth());
}

// Of a sum that is computed within the loop, and so has no base: what is the same for all lanes, and the rest.
std::optional<std::pair<const llvm::Value*, const llvm::Value*>>
LaneShapes::summands_of(const llvm::Value& number) const {
    const auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(&number);
    if (sum == nullptr || sum->getOpcode() != llvm::Instruction::Add)
        return std::nullopt;
    const unsigned shared = of(sum->getOperand(0)).is_uniform() ? 0 : 1;
    if (!of(sum->getOperand(shared)).is_uniform())
        return std::nullopt;
    return std::pair{sum->getOperand(shared), sum->getOperand(1 - shared)};
}

// How many lanes a number is known to be a multiple of, when `stride` of it belong to each; no limit for 0.
uint64_t LaneShapes::lanes_of_zeros(const llvm::Value& number, uint64_t stride) const {
    const llvm::KnownBits bits = llvm::computeKnownBits(&number, loop_.getHeader()->getDataLayout());
    return bits.countMinTrailingZeros() <= block_bits_max ? (uint64_t{1} << bits.countMinTrailingZeros()) / stride
                                                          : any_lanes;
}

bool LaneShapes::assume_aligned(const llvm::Value& number, int64_t stride, uint64_t lanes_in_block,
                                bool must_be_positive) {
    llvm::Value* const base = base_of_low_bits(&number);
    if (base == nullptr && !must_be_positive)
        if (const auto summands = summands_of(number)) {
            const auto& [shared, changing] = *summands;
            const uint64_t lanes_of_shared = lanes_of_zeros(*shared, static_cast<uint64_t>(stride));
            if (lanes_of_shared < lanes_ || !of(changing).is_strided() || of(changing).stride != stride ||
                !assume_aligned(*changing, stride, lanes_in_block, false))
                return false;
            lanes_max_ = std::min(lanes_max_, lanes_of_shared);
            return true;
        }
    if (base == nullptr) {
        const auto before = must_be_positive ? std::nullopt : before_shift(number, stride);
        return before && of(before->value).is_strided() && of(before->value).stride == before->stride &&
               assume_aligned(*before->value, before->stride, lanes_in_block, false);
    }
    const OffsetBase split = without_offset(*base);
    const uint64_t offset = static_cast<uint64_t>(split.offset), step = static_cast<uint64_t>(stride);
    if (offset % (step * lanes_) != 0)
        return false;
    const uint64_t lanes_of_root = lanes_of_zeros(*split.root, step);
    const bool is_aligned = lanes_of_root >= lanes_;
    if (!is_aligned && (certainty_ == Certainty::proven || !is_of_launch(*split.root)))
        return false;
    if (must_be_positive && !assume_small(base, false, stride))
        return false;
    const AlignedBase aligned{split.root, step};
    if (!is_aligned && !llvm::is_contained(assumed_aligned_, aligned))
        assumed_aligned_.push_back(aligned);
    lanes_max_ = std::min(lanes_max_, is_aligned ? std::min(lanes_in_block, lanes_of_root) : lanes_in_block);
    if (offset != 0)
        lanes_max_ = std::min(lanes_max_, (offset & -offset) / step);
    return true;
}

}  // namespace polder::compiler::workgroup
