// `find_guards` follows the start of the body as long as it has no side effect.
//
// A copy of a condition before the loop also runs where the original would not. So copies lose the flags that promise something about
// their operands, and may be poison.
#include "guarded_loop.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

namespace patterns = llvm::PatternMatch;

constexpr unsigned condition_instructions_max = 16;  // of a copied condition
constexpr size_t terms_max = 8;  // of the guards of one loop, joined by and
constexpr int64_t step_max = 1 << 12;  // of a sum, from one work-item to the next

// Whether this is an integer operation without flags that is defined for all operands.
bool is_arithmetic(const llvm::Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::SExt:
    case llvm::Instruction::ICmp:
    case llvm::Instruction::Select:
    case llvm::Instruction::Freeze: return !instruction.getType()->isVectorTy();
    case llvm::Instruction::Shl:
    case llvm::Instruction::LShr:
    case llvm::Instruction::AShr: return llvm::isa<llvm::ConstantInt>(instruction.getOperand(1));
    default: return false;
    }
}

// The lifetime of a private structure or array most often begins before the guard: it is declared there.
bool has_effect(const llvm::BasicBlock& block) {
    return llvm::any_of(block, [](const llvm::Instruction& instruction) {
        return instruction.mayHaveSideEffects() && !instruction.isLifetimeStartOrEnd();
    });
}

std::optional<int64_t> small(int64_t step) { return std::abs(step) <= step_max ? std::optional(step) : std::nullopt; }
std::optional<int64_t> sum(std::optional<int64_t> left, std::optional<int64_t> right, int64_t sign) {
    return left && right ? small(*left + sign * *right) : std::nullopt;
}
std::optional<int64_t> scaled(const llvm::Instruction& product, std::optional<int64_t> step) {
    const auto* factor = llvm::dyn_cast<llvm::ConstantInt>(product.getOperand(1));
    if (!step || !factor || factor->getValue().getSignificantBits() > 32)
        return std::nullopt;
    if (product.getOpcode() == llvm::Instruction::Mul)
        return small(*step * factor->getSExtValue());
    return factor->getValue().ult(31) ? small(*step * (int64_t{1} << factor->getZExtValue())) : std::nullopt;
}

}  // namespace

GuardedLoop::GuardedLoop(llvm::Loop& loop)
    : loop_(loop), header_(*loop.getHeader()), latch_(loop.getLoopLatch()), preheader_(loop.getLoopPreheader()),
      exit_(loop.getExitBlock()) {
    is_counted_ = find_counter();
    if (is_counted_)
        find_guards();
}

bool GuardedLoop::enters_if_true(const llvm::BranchInst& guard) const { return !is_empty_way(guard.getSuccessor(0)); }

bool GuardedLoop::find_counter() {
    if (!latch_ || !preheader_ || !exit_ || loop_.getExitingBlock() != latch_ || !exit_->phis().empty())
        return false;
    auto phis = header_.phis();
    if (std::distance(phis.begin(), phis.end()) != 1)
        return false;
    counter_ = &*phis.begin();
    const auto* first = llvm::dyn_cast<llvm::ConstantInt>(counter_->getIncomingValueForBlock(preheader_));
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(latch_->getTerminator());
    auto* compare =
        branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
    if (!first || !first->isZero() || !compare || compare->getOperand(0) != counter_->getIncomingValueForBlock(latch_))
        return false;
    count_ = compare->getOperand(1);
    return loop_.isLoopInvariant(count_);
}

// Whether the way from `block` to the next work-item has no side effect.
bool GuardedLoop::is_empty_way(llvm::BasicBlock* block) const {
    for (unsigned length = 0; block != nullptr && length < condition_instructions_max; ++length) {
        if (block == latch_)
            return true;
        if (!loop_.contains(block) || has_effect(*block))
            return false;
        block = block->getSingleSuccessor();
    }
    return false;
}

void GuardedLoop::find_guards() {
    for (llvm::BasicBlock* block = &header_; block != latch_ && !has_effect(*block);) {
        auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        llvm::BasicBlock* next = nullptr;
        if (branch && branch->isUnconditional()) {
            next = branch->getSuccessor(0);
        } else if (branch && is_empty_way(branch->getSuccessor(0)) != is_empty_way(branch->getSuccessor(1))) {
            next = branch->getSuccessor(is_empty_way(branch->getSuccessor(0)) ? 1 : 0);
            guards_.push_back(branch);
        }
        if (next == nullptr || next->getSinglePredecessor() != block)
            return;
        block = next;
    }
}

llvm::SmallVector<GuardedLoop::Term, 4> GuardedLoop::terms_of(const llvm::BranchInst& guard) const {
    llvm::SmallVector<Term, 4> terms, todo{{guard.getCondition(), enters_if_true(guard)}};
    while (!todo.empty()) {
        const Term term = todo.pop_back_val();
        llvm::Value *left = nullptr, *right = nullptr;
        const auto operands = [&](auto pair) { return patterns::match(term.condition, pair); };
        if (terms.size() + todo.size() >= terms_max) {
            terms.push_back(term);
        } else if (term.is_wanted
                       ? operands(patterns::m_LogicalAnd(patterns::m_Value(left), patterns::m_Value(right)))
                       : operands(patterns::m_LogicalOr(patterns::m_Value(left), patterns::m_Value(right)))) {
            todo.push_back({right, term.is_wanted});
            todo.push_back({left, term.is_wanted});
        } else if (operands(patterns::m_Not(patterns::m_Value(left)))) {
            todo.push_back({left, !term.is_wanted});
        } else {
            terms.push_back(term);
        }
    }
    return terms;
}

bool GuardedLoop::is_invariant(const llvm::Value& value) const {
    unsigned budget = condition_instructions_max;
    return is_invariant(value, budget);
}
bool GuardedLoop::is_invariant(const llvm::Value& value, unsigned& budget) const {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (!instruction || !loop_.contains(instruction))
        return true;
    if (budget == 0 || !is_arithmetic(*instruction))
        return false;
    --budget;
    return llvm::all_of(instruction->operands(),
                        [&](const llvm::Use& operand) { return is_invariant(*operand.get(), budget); });
}

std::optional<int64_t> GuardedLoop::step_of(const llvm::Value& value) const {
    unsigned budget = condition_instructions_max;
    return step_of(value, budget);
}
std::optional<int64_t> GuardedLoop::step_of(const llvm::Value& value, unsigned& budget) const {
    if (&value == counter_)
        return 1;
    if (const auto taken = taken_.find(&value); taken != taken_.end())
        return step_of(*taken->second, budget);
    if (is_invariant(value))
        return 0;
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (!instruction || budget == 0)
        return std::nullopt;
    --budget;
    const auto of = [&](unsigned operand) { return step_of(*instruction->getOperand(operand), budget); };
    switch (instruction->getOpcode()) {
    case llvm::Instruction::Trunc: return of(0);
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl: return scaled(*instruction, of(0));
    case llvm::Instruction::Or:
        if (!llvm::cast<llvm::PossiblyDisjointInst>(instruction)->isDisjoint())
            return std::nullopt;
        [[fallthrough]];
    case llvm::Instruction::Add: return sum(of(0), of(1), 1);
    case llvm::Instruction::Sub: return sum(of(0), of(1), -1);
    default: return std::nullopt;
    }
}

llvm::Value* GuardedLoop::at_counter(FoldingBuilder& before, llvm::Value& value, llvm::Value* counter) const {
    if (&value == counter_)
        return counter;
    if (const auto taken = taken_.find(&value); taken != taken_.end())
        return at_counter(before, *taken->second, counter);
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (!instruction || !loop_.contains(instruction))
        return &value;
    llvm::Instruction* copy = nullptr;
    if (const auto* either = llvm::dyn_cast<llvm::PossiblyDisjointInst>(instruction); either && either->isDisjoint())
        copy = llvm::BinaryOperator::CreateAdd(either->getOperand(0), either->getOperand(1));
    else
        copy = instruction->clone();
    copy->dropPoisonGeneratingAnnotations();
    for (llvm::Use& operand : copy->operands())
        operand.set(at_counter(before, *operand.get(), counter));
    return before.Insert(copy);
}

void GuardedLoop::reduce(llvm::BranchInst& guard, llvm::ArrayRef<Term> terms) const {
    llvm::IRBuilder<> at(&guard);
    llvm::Value* condition = at.getTrue();
    for (const Term& term : terms) {
        llvm::Value* holds = term.is_wanted ? term.condition : at.CreateNot(term.condition);
        condition = condition == at.getTrue() ? holds : at.CreateLogicalAnd(condition, holds);
    }
    guard.setCondition(enters_if_true(guard) ? condition : at.CreateNot(condition));
}

llvm::Value* frozen(FoldingBuilder& before, llvm::Value& value) {
    return llvm::isa<llvm::ConstantInt>(value) ? &value : before.CreateFreeze(&value);
}

}  // namespace polder::compiler::workgroup
