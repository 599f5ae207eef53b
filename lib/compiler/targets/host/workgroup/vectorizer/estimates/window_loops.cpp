// See window_loops.h. Only loops count that begin at a maximum and end at a minimum: a loop over a work-item's own part of an array, which may be long,
// ends at a minimum only.
#include "window_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler::workgroup {

namespace {

struct Items {
    const llvm::Loop& loop;
    llvm::function_ref<bool(const llvm::Instruction&)> is_uniform;
};

bool is_of_kind(const llvm::IntrinsicInst& limit, bool greatest) {
    const llvm::Intrinsic::ID id = limit.getIntrinsicID();
    return greatest ? id == llvm::Intrinsic::smax || id == llvm::Intrinsic::umax
                    : id == llvm::Intrinsic::smin || id == llvm::Intrinsic::umin;
}

// Whether the number is a maximum (or a minimum), or one and another number that is the same for all lanes, such as the beginning of an array.
bool is_limited(const llvm::Value& value, bool greatest, const Items& items, unsigned depth = 0) {
    constexpr unsigned depth_max = 6;
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (!instruction || depth > depth_max || !items.loop.contains(instruction) || items.is_uniform(*instruction))
        return false;
    const auto follows = [&](unsigned operand) {
        return is_limited(*instruction->getOperand(operand), greatest, items, depth + 1);
    };
    if (const auto* const limit = llvm::dyn_cast<llvm::MinMaxIntrinsic>(instruction))
        return is_of_kind(*limit, greatest) || follows(0) || follows(1);
    switch (instruction->getOpcode()) {
    case llvm::Instruction::Add: return follows(0) || follows(1);
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Freeze: return follows(0);
    default: return false;
    }
}

// The counter of the loop, or the counter's next number, where the value is one.
const llvm::PHINode* counter_of(const llvm::Value& value, const llvm::Loop& loop) {
    const auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(&value);
    const bool is_step =
        sum && sum->getOpcode() == llvm::Instruction::Add && llvm::isa<llvm::ConstantInt>(sum->getOperand(1));
    const auto* const counter = llvm::dyn_cast<llvm::PHINode>(is_step ? sum->getOperand(0) : &value);
    return counter && counter->getParent() == loop.getHeader() ? counter : nullptr;
}

bool is_window(const llvm::Loop& loop, const Items& items) {
    const llvm::BasicBlock* const before = loop.getLoopPredecessor();
    if (before == nullptr)
        return false;
    const auto is_from_to = [&](const llvm::Value& from, const llvm::Value& to) {
        const llvm::PHINode* const counter = counter_of(from, loop);
        return counter && loop.isLoopInvariant(&to) && is_limited(to, false, items) &&
               is_limited(*counter->getIncomingValueForBlock(before), true, items);
    };
    llvm::SmallVector<llvm::BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    return llvm::any_of(exiting, [&](const llvm::BasicBlock* block) {
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        const auto* const comparison =
            branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
        return comparison && (is_from_to(*comparison->getOperand(0), *comparison->getOperand(1)) ||
                              is_from_to(*comparison->getOperand(1), *comparison->getOperand(0)));
    });
}

}  // namespace

double part_of_windows(const llvm::BasicBlock& block, const llvm::LoopInfo& loops, const llvm::Loop& item_loop,
                       llvm::function_ref<bool(const llvm::Instruction&)> is_uniform) {
    constexpr double part = 0.5;  // four iterations
    double all = 1;
    for (const llvm::Loop* loop = loops.getLoopFor(&block); loop != &item_loop; loop = loop->getParentLoop())
        if (is_window(*loop, {item_loop, is_uniform}))
            all *= part;
    return all;
}

double part_of_windows(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes) {
    return part_of_windows(block, *plan.loops, *plan.loop,
                           [&](const llvm::Instruction& instruction) { return shapes.of(&instruction).is_uniform(); });
}

}  // namespace polder::compiler::workgroup
