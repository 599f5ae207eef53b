// The instructions of a block are counted; a branch costs about as much as a few of them, and more where it is predicted badly.
#include "skipped_code.h"

#include "targets/host/workgroup/vectorizer/analysis/masked_order.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

// Whether the condition is uniform, or an order comparison (such as an id's) with a constant or a value that is computed before the loops
// over work-items.
bool is_bound_of_launch(const llvm::Value& condition, const LaneShapes& shapes) {
    using namespace llvm::PatternMatch;
    const llvm::Value *left = nullptr, *right = nullptr;
    if (match(&condition, m_LogicalOp(m_Value(left), m_Value(right))))
        return is_bound_of_launch(*left, shapes) && is_bound_of_launch(*right, shapes);
    if (const auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(&condition))
        return is_bound_of_launch(*frozen->getOperand(0), shapes);
    const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&condition);
    const auto is_known_before = [](const llvm::Value* value) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        return !instruction || instruction->getParent()->isEntryBlock();
    };
    return shapes.of(&condition).is_uniform() ||
           (compare && !compare->isEquality() && llvm::any_of(compare->operands(), is_known_before));
}

constexpr unsigned long_body = 24;

// Divisions and square roots of floating-point numbers take as long as many other instructions. What uses the result of a cold function is
// as rare as its call, which has a branch around it anyway.
unsigned length_of(const llvm::Instruction& instruction) {
    constexpr unsigned divided = 8;
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const llvm::Function* const callee = call ? call->getCalledFunction() : nullptr;
    if (callee && callee->hasFnAttribute(llvm::Attribute::Cold))
        return long_body;
    const bool is_slow = instruction.getOpcode() == llvm::Instruction::FDiv ||
                         (callee && callee->getIntrinsicID() == llvm::Intrinsic::sqrt);
    return is_slow ? divided : 1;
}

// Accesses without a step count once for each lane.
unsigned length_of(const llvm::BasicBlock& block, const LaneShapes& shapes, unsigned lanes) {
    unsigned length = 0;
    for (const llvm::Instruction& instruction : block) {
        const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
        length += address && !shapes.of(address).is_strided() ? lanes : length_of(instruction);
    }
    return length;
}

bool is_long(const llvm::BasicBlock& block, const LaneShapes& shapes, unsigned lanes) {
    return length_of(block, shapes, lanes) >= long_body;
}

// The number that a comparison with a constant looks at; null for other conditions. LowerSwitch subtracts the beginning of a range of numbers.
const llvm::Value* compared_number(const llvm::Value& condition) {
    const auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(&condition);
    if (comparison == nullptr || !llvm::isa<llvm::ConstantInt>(comparison->getOperand(1)))
        return nullptr;
    const auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(comparison->getOperand(0));
    const bool is_moved =
        sum && sum->getOpcode() == llvm::Instruction::Add && llvm::isa<llvm::ConstantInt>(sum->getOperand(1));
    return is_moved ? sum->getOperand(0) : comparison->getOperand(0);
}

// The number of each lane over which there is a switch, where the branch is one of it: three branches or more compare it with constants. Else null.
const llvm::Value* number_of_switch(const llvm::BranchInst& branch, const LaneShapes& shapes) {
    constexpr unsigned comparisons_min = 3;
    const llvm::Value* const number =
        shapes.of(branch.getCondition()).is_uniform() ? nullptr : compared_number(*branch.getCondition());
    if (number == nullptr)
        return nullptr;
    unsigned comparisons = 0;
    const auto count = [&](const llvm::Value& value) {
        for (const llvm::User* user : value.users())
            if (llvm::isa<llvm::ICmpInst>(user) && compared_number(*user) == number &&
                llvm::any_of(user->users(), [](const llvm::User* its) { return llvm::isa<llvm::BranchInst>(its); }))
                ++comparisons;
    };
    count(*number);
    for (const llvm::User* user : number->users())
        if (llvm::isa<llvm::BinaryOperator>(user))
            count(*user);
    return comparisons >= comparisons_min ? number : nullptr;
}

// Whether a side of the branch, of this length, is long enough. Where lanes choose among the arms of a switch, no processor predicts which arms no lane takes: the
// question costs about 20 cycles whenever it guesses wrong, and a side with several arms is hardly ever empty.
bool is_long_side(const llvm::BranchInst& branch, const BlockSet& blocks, unsigned length, const LaneShapes& shapes) {
    constexpr unsigned long_arm = 96;
    const llvm::Value* const number = length >= long_body ? number_of_switch(branch, shapes) : nullptr;
    if (number == nullptr)
        return length >= long_body;
    const auto has_arms = [&](const llvm::BasicBlock* block) {
        const auto* const its = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        return its && its->isConditional() && compared_number(*its->getCondition()) == number;
    };
    return length >= long_arm && llvm::none_of(blocks, has_arms);
}

bool has_access_in(const llvm::BasicBlock& block) {
    return llvm::any_of(block, [](const llvm::Instruction& instruction) {
        return llvm::getLoadStorePointerOperand(&instruction) != nullptr;
    });
}

// The blocks between `before` and `join` that are reached through `begin`; empty when control enters or leaves them elsewhere.
BlockSet blocks_between(llvm::BasicBlock& before, llvm::BasicBlock& begin, const llvm::BasicBlock& join,
                        const BlockSet& among) {
    BlockSet found;
    llvm::SmallVector<llvm::BasicBlock*> todo{&begin};
    while (!todo.empty()) {
        llvm::BasicBlock* const block = todo.pop_back_val();
        if (block == &join)
            continue;
        if (block == &before || !among.contains(block))
            return {};
        if (found.insert(block).second)
            todo.append(llvm::succ_begin(block), llvm::succ_end(block));
    }
    const auto is_inside = [&](const llvm::BasicBlock* from) { return found.contains(from); };
    for (const llvm::BasicBlock* block : found)
        if (!llvm::all_of(llvm::predecessors(block), [&](const llvm::BasicBlock* from) {
                return is_inside(from) || (block == &begin && from == &before);
            }))
            return {};
    return found;
}

// The blocks of the first units that are reached only through the first of them.
BlockSet blocks_entered_by(llvm::ArrayRef<llvm::BasicBlock*> units, const llvm::Loop* level, const LanePlan& plan) {
    BlockSet found;
    for (llvm::BasicBlock* unit : units) {
        const llvm::Loop* const inner = child_loop(*plan.loops, level, *unit);
        const auto is_inside = [&](const llvm::BasicBlock* from) {
            return found.contains(from) || (inner && inner->contains(from));
        };
        if (unit != units.front() && !llvm::all_of(llvm::predecessors(unit), is_inside))
            break;
        if (inner)
            found.insert(inner->block_begin(), inner->block_end());
        else
            found.insert(unit);
    }
    return found;
}

// Where control leaves the blocks; null when there are several such places or none.
llvm::BasicBlock* only_exit_of(const BlockSet& blocks) {
    llvm::BasicBlock* exit = nullptr;
    for (llvm::BasicBlock* block : blocks)
        for (llvm::BasicBlock* next : llvm::successors(block)) {
            if (blocks.contains(next) || next == exit)
                continue;
            if (exit != nullptr)
                return nullptr;
            exit = next;
        }
    return exit;
}

}  // namespace

bool is_worth_skipping(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes, unsigned lanes) {
    const llvm::BasicBlock* const before = block.getSinglePredecessor();
    const llvm::BasicBlock* const after = block.getSingleSuccessor();
    const auto* branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
    if (plan.kind == LoopKind::sub_group || !branch || !branch->isConditional() || !after || after->hasNPredecessors(1))
        return false;
    return is_long(block, shapes, lanes) ||
           (has_access_in(block) && !is_bound_of_launch(*branch->getCondition(), shapes));
}

bool is_worth_skipping(const llvm::Loop& loop, const llvm::Value& entering, const LanePlan& plan,
                       const LaneShapes& shapes, unsigned lanes) {
    return plan.kind != LoopKind::sub_group && !llvm::isa<llvm::Constant>(entering) &&
           llvm::any_of(loop.blocks(), [&](const llvm::BasicBlock* block) { return is_long(*block, shapes, lanes); });
}

unsigned length_of(const BlockSet& blocks, const LaneShapes& shapes, unsigned lanes) {
    unsigned length = 0;
    for (const llvm::BasicBlock* block : blocks)
        length += length_of(*block, shapes, lanes);
    return length;
}

std::optional<SkippedRegion> region_worth_skipping(llvm::BasicBlock& before, const BlockSet& blocks,
                                                   const LanePlan& plan, const LaneShapes& shapes, unsigned lanes) {
    const auto* const branch = llvm::cast<llvm::BranchInst>(before.getTerminator());
    if (plan.kind == LoopKind::sub_group || !branch->isConditional() || shapes.of(branch->getCondition()).is_uniform())
        return std::nullopt;
    for (unsigned side : {0U, 1U}) {
        SkippedRegion region{&before, branch->getSuccessor(side), branch->getSuccessor(1 - side), {}};
        region.blocks = blocks_between(before, *region.begin, *region.join, blocks);
        if (region.blocks.size() < 2)
            continue;
        unsigned length = 0;
        bool has_access = false;
        for (const llvm::BasicBlock* block : region.blocks) {
            length += length_of(*block, shapes, lanes);
            has_access |= has_access_in(*block);
        }
        if (length >= long_body || (has_access && !is_bound_of_launch(*branch->getCondition(), shapes)))
            return region;
    }
    return std::nullopt;
}

std::optional<SkippedRegion> side_worth_skipping(llvm::ArrayRef<llvm::BasicBlock*> units, const BlockSet& blocks,
                                                 const llvm::Loop* level, const LanePlan& plan,
                                                 const LaneShapes& shapes, unsigned lanes) {
    llvm::BasicBlock* const begin = units.front();
    llvm::BasicBlock* const before = begin->getSinglePredecessor();
    const auto* const branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
    if (plan.kind == LoopKind::sub_group || !branch || !branch->isConditional())
        return std::nullopt;
    SkippedRegion region{before, begin, nullptr, blocks_entered_by(units, level, plan)};
    region.join = only_exit_of(region.blocks);
    const bool is_in_loop = level != nullptr && blocks.contains(level->getHeader());
    // A loop reads the conditions on which lanes leave it or go on with the next iteration.
    if (!region.join || (is_in_loop && (!blocks.contains(region.join) || region.join == level->getHeader())))
        return std::nullopt;
    const auto is_inside = [&](const llvm::BasicBlock* block) { return region.blocks.contains(block); };
    if (llvm::all_of(llvm::predecessors(region.join), is_inside))
        return std::nullopt;
    if (region.blocks.size() == 1 && is_worth_skipping(*begin, plan, shapes, lanes))
        return std::nullopt;  // it has a branch of its own
    const unsigned length = length_of(region.blocks, shapes, lanes);
    return is_long_side(*branch, region.blocks, length, shapes) ? std::optional(region) : std::nullopt;
}

SkippingBranch::SkippingBranch(llvm::IRBuilder<>& at, llvm::Value* any)
    : at_(at), before_(at.GetInsertBlock()),
      behind_(llvm::BasicBlock::Create(at.getContext(), "if.none", before_->getParent())) {
    llvm::BasicBlock* const some = llvm::BasicBlock::Create(at.getContext(), "if.some", before_->getParent(), behind_);
    at_.CreateCondBr(any, some, behind_);
    at_.SetInsertPoint(some);
}

void SkippingBranch::end() {
    last_ = at_.GetInsertBlock();
    at_.CreateBr(behind_);
    at_.SetInsertPoint(behind_);
}

llvm::Value* SkippingBranch::merged(llvm::Value* made, llvm::Value* otherwise) {
    llvm::PHINode* const either = at_.CreatePHI(made->getType(), 2);
    either->addIncoming(made, last_);
    either->addIncoming(otherwise, before_);
    return either;
}

llvm::Value* SkippingBranch::merged(llvm::Value* made) {
    llvm::Type* const type = made->getType();
    return merged(made, type->isVectorTy() ? llvm::PoisonValue::get(type) : llvm::Constant::getNullValue(type));
}

bool has_partial_mask(const llvm::BasicBlock& block, const LanePlan& plan, const LaneShapes& shapes) {
    const auto needs_equal_numbers = [&](const llvm::BranchInst& branch, const llvm::BasicBlock& taken) {
        const auto* const compare = llvm::dyn_cast<llvm::CmpInst>(branch.getCondition());
        if (compare == nullptr || !compare->isEquality() || shapes.of(compare).is_uniform())
            return false;
        const bool is_equal = compare->getPredicate() == llvm::CmpInst::ICMP_EQ ||
                              compare->getPredicate() == llvm::CmpInst::FCMP_OEQ ||
                              compare->getPredicate() == llvm::CmpInst::FCMP_UEQ;
        return is_equal == (branch.getSuccessor(0) == &taken);
    };
    const llvm::BasicBlock* inside = &block;
    while (plan.masked.contains(const_cast<llvm::BasicBlock*>(inside))) {
        const llvm::BasicBlock* const before = inside->getSinglePredecessor();
        const auto* branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
        if (branch == nullptr)
            return false;
        if (branch->isConditional() && needs_equal_numbers(*branch, *inside))
            return true;
        inside = before;
    }
    return false;
}

}  // namespace polder::compiler::workgroup
