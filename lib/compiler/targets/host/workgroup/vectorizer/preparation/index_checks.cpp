// The code before a loop of lanes that asks whether the indices of all work-items stay in their range: one comparison for the bases of one root, with the
// constants of all of them. Checks that are known to succeed in usual launches are left out.
#include "index_checks.h"

#include <algorithm>
#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {

namespace {

constexpr int64_t indices_end = int64_t{1} << 31;

// The range of a root from which no base plus an index leaves its range: at least `least`, and at most 2^31 - count - `above`.
struct Roots {
    int64_t least = -2 * indices_end;
    int64_t above = -2 * indices_end;
};

// The largest value, of a number without a sign, that known bits allow.
uint64_t greatest(const llvm::Value& value, const llvm::DataLayout& layout) {
    return llvm::computeKnownBits(&value, layout).getMaxValue().getLimitedValue();
}

// Whether the check of `small` always succeeds: in usual launches, whose ids and rows are known to be small (promise_whole_rows).
bool is_surely_small(const LaneShapes::SmallBase& small, uint64_t count_max, const llvm::DataLayout& layout) {
    const auto& [base, may_be_negative, stride] = small;
    const OffsetBase split = stride == 1 ? without_offset(*base) : OffsetBase{base, 0};
    if (stride <= 0 || (split.offset < 0 && !may_be_negative))
        return false;
    const uint64_t steps = llvm::SaturatingMultiply(count_max, static_cast<uint64_t>(stride));
    const uint64_t above = static_cast<uint64_t>(std::max<int64_t>(split.offset, 0));
    return llvm::SaturatingAdd(greatest(*split.root, layout), steps, above) <= uint64_t{indices_end};
}

llvm::Value* is_in_range(llvm::IRBuilder<>& at, llvm::Value& root, const Roots& roots, llvm::Value& limit) {
    llvm::Value* const number = at.CreateSExtOrTrunc(at.CreateFreeze(&root), at.getInt64Ty());
    llvm::Value* const most = at.CreateSub(&limit, llvm::ConstantInt::getSigned(at.getInt64Ty(), roots.above));
    if (root.getType()->isIntegerTy(32) && roots.least <= -indices_end)
        return at.CreateICmpSLE(number, most);
    if (roots.least == 0)
        return at.CreateICmpULE(number, most);
    llvm::Value* const least = llvm::ConstantInt::getSigned(at.getInt64Ty(), roots.least);
    return at.CreateICmpULE(at.CreateSub(number, least), at.CreateSub(most, least));
}

// Whether a base of 32 bits minus any index below `count` is at least `least`, and the base, as its root plus a constant, is below 2^31.
llvm::Value* stays_above(llvm::IRBuilder<>& at, llvm::Value& base, int64_t least, llvm::Value& count) {
    const OffsetBase split = without_offset(base);
    llvm::Value* const root = at.CreateSExtOrTrunc(at.CreateFreeze(split.root), at.getInt64Ty());
    llvm::Value* const number = at.CreateAdd(root, llvm::ConstantInt::getSigned(at.getInt64Ty(), split.offset));
    llvm::Value* const first = at.CreateAdd(&count, llvm::ConstantInt::getSigned(at.getInt64Ty(), least - 1));
    return at.CreateAnd(at.CreateICmpSGE(number, first),
                        at.CreateICmpSLT(number, llvm::ConstantInt::getSigned(at.getInt64Ty(), indices_end)));
}

// The distance between neighbouring lanes' values, where one product of the lane's number and another has it; nothing in other forms. `bytes`: how much an
// address grows with the value.
std::optional<RowDistance> distance_of(const llvm::Value& value, int64_t bytes, const LanePlan& plan,
                                       const LaneShapes& shapes, unsigned depth = 0) {
    constexpr unsigned depth_max = 8;
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || depth > depth_max || shapes.of(&value).is_strided())
        return std::nullopt;
    const auto of = [&](unsigned operand, int64_t its_bytes) {
        return distance_of(*instruction->getOperand(operand), its_bytes, plan, shapes, depth + 1);
    };
    switch (instruction->getOpcode()) {
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Freeze: return of(0, bytes);
    case llvm::Instruction::Add: {
        const std::optional<RowDistance> left = of(0, bytes);
        return left ? left : of(1, bytes);
    }
    case llvm::Instruction::GetElementPtr: {
        const auto& address = llvm::cast<llvm::GetElementPtrInst>(*instruction);
        if (address.getNumIndices() != 1)
            return std::nullopt;
        const llvm::TypeSize element = address.getDataLayout().getTypeAllocSize(address.getSourceElementType());
        const std::optional<RowDistance> index = of(1, static_cast<int64_t>(element.getFixedValue()));
        return index ? index : of(0, bytes);
    }
    case llvm::Instruction::Mul:
        for (const unsigned side : {0U, 1U}) {
            const LaneShape lane = shapes.of(instruction->getOperand(side));
            llvm::Value* const number = instruction->getOperand(1 - side);
            if (lane.is_strided() && !lane.is_uniform() && !llvm::isa<llvm::Constant>(number) &&
                plan.loop->isLoopInvariant(number))
                return RowDistance{number, lane.stride * bytes};
        }
        return std::nullopt;
    default: return std::nullopt;
    }
}

}  // namespace

llvm::SmallVector<RowDistance, 2> distances_of_written_rows(const LanePlan& plan, const LaneShapes& shapes,
                                                            LaneAccesses& accesses, double part) {
    constexpr double part_min = 0.4;
    llvm::SmallVector<RowDistance, 2> rows;
    if (part < part_min)
        return rows;
    const auto reads_along_rows = [&](const llvm::Loop& loop) {
        bool reads = false;
        for (llvm::BasicBlock* block : loop.blocks())
            for (llvm::Instruction& one : *block) {
                if (!llvm::isa<llvm::LoadInst>(one) || shapes.of(one.getOperand(0)).is_uniform())
                    continue;
                if (accesses.of(one))
                    return false;
                reads = true;
            }
        return reads;
    };
    for (llvm::BasicBlock* block : plan.blocks)
        for (llvm::Instruction& one : *block) {
            auto* const store = llvm::dyn_cast<llvm::StoreInst>(&one);
            const llvm::Loop* const loop = plan.loops->getLoopFor(block);
            if (store == nullptr || loop == plan.loop || !loop->isInnermost() ||
                loop->isLoopInvariant(store->getPointerOperand()) || !accesses.is_stored_apart(*store))
                continue;
            const auto row = distance_of(*store->getPointerOperand(), 1, plan, shapes);
            const auto is_known = [&](const RowDistance& other) { return other.number == row->number; };
            if (row && llvm::none_of(rows, is_known) && reads_along_rows(*loop))
                rows.push_back(*row);
        }
    return rows;
}

llvm::Value* rows_are_not_alike(llvm::IRBuilder<>& at, llvm::ArrayRef<RowDistance> rows) {
    constexpr uint64_t page = 4096;
    llvm::Value* differ = at.getTrue();
    for (const auto& [number, bytes] : rows) {
        llvm::Value* const wide = at.CreateSExtOrTrunc(at.CreateFreeze(number), at.getInt64Ty());
        llvm::Value* const within =
            at.CreateAnd(at.CreateMul(wide, at.getInt64(static_cast<uint64_t>(bytes))), at.getInt64(page - 1));
        differ = at.CreateAnd(differ, at.CreateIsNotNull(within));
    }
    return differ;
}

llvm::Value* indices_do_not_wrap(llvm::IRBuilder<>& at, llvm::ArrayRef<LaneShapes::SmallBase> bases,
                                 llvm::Value& count) {
    llvm::Value* small = at.getTrue();
    llvm::MapVector<llvm::Value*, Roots> groups;
    const llvm::DataLayout& layout = at.GetInsertBlock()->getDataLayout();
    const uint64_t count_max = greatest(count, layout);
    for (const LaneShapes::SmallBase& base_and_shape : bases) {
        const auto& [base, may_be_negative, stride] = base_and_shape;
        if (is_surely_small(base_and_shape, count_max, layout))
            continue;
        if (stride == -1) {
            small = at.CreateAnd(small, stays_above(at, *base, may_be_negative ? -indices_end : 0, count));
            continue;
        }
        if (stride != 1) {  // so many steps may not fit at all
            llvm::Value* const steps = at.CreateMul(&count, at.getInt64(static_cast<uint64_t>(stride)));
            llvm::Value* const behind =
                at.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, at.getInt64(indices_end + 1), steps);
            small = at.CreateAnd(small, at.CreateICmpULT(at.CreateFreeze(base), behind));
            continue;
        }
        const OffsetBase split = without_offset(*base);
        Roots& roots = groups[split.root];
        roots.least = std::max(roots.least, (may_be_negative ? -indices_end : 0) - split.offset);
        roots.above = std::max(roots.above, split.offset);
    }
    llvm::Value* const limit = at.CreateSub(at.getInt64(indices_end), &count);
    for (const auto& [root, roots] : groups)
        small = at.CreateAnd(small, is_in_range(at, *root, roots, *limit));
    return small;
}

llvm::Value* bounds_are_small(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> bounds) {
    llvm::Value* small = at.getTrue();
    for (llvm::Value* bound : bounds) {
        llvm::Value* const end = llvm::ConstantInt::get(bound->getType(), static_cast<uint64_t>(indices_end));
        small = at.CreateAnd(small, at.CreateICmpULT(at.CreateFreeze(bound), end));
    }
    return small;
}

llvm::Value* bases_are_multiples(llvm::IRBuilder<>& at, llvm::ArrayRef<LaneShapes::AlignedBase> bases,
                                 llvm::Value& start, unsigned lanes) {
    llvm::Value* bits = at.CreateAnd(&start, at.getInt64(lanes - 1));
    for (const auto& [base, stride] : bases) {
        llvm::Value* const number = at.CreateZExtOrTrunc(at.CreateFreeze(base), at.getInt64Ty());
        bits = at.CreateOr(bits, at.CreateAnd(number, at.getInt64(stride * lanes - 1)));
    }
    return at.CreateICmpEQ(bits, at.getInt64(0));
}

}  // namespace polder::compiler::workgroup
