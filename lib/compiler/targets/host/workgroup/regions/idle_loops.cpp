// For each loop of a nest, from the innermost one outwards: `find_guards` follows the start of the body as long as it has no side effect. It
// collects the guards: branches of which one side leads to the next work-item without a side effect. A guard's condition is split into
// terms that must all hold:
// - A term that does not vary in the loop is tested before the loop instead of inside.
// - A term that compares a bound with a sum of the loop's counter is also tested before the loop, for the least or the greatest sum,
//   whichever fulfils it first. If this one does not, no other does. The term stays in the guard.
// - A term that holds for exactly one work-item, as in `if (get_local_id(0) == 0)`, makes the body run once, without a loop.
// The tests before the loop become a branch around it, which is then a guard of the next outer loop.
//
// A copy of a condition before the loop also runs where the original would not. So copies lose the flags that promise something about
// their operands, and a result that may still be poison is frozen. If it was poison, no work-item with a side effect reached the original.
#include "idle_loops.h"

#include "targets/host/workgroup/vectorizer/vectorizer.h"

#include <llvm/Analysis/InstSimplifyFolder.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

namespace patterns = llvm::PatternMatch;

constexpr unsigned condition_instructions_max = 16;  // of a copied condition
constexpr unsigned depth_max = 4;  // of terms joined by and and or
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

bool has_effect(const llvm::BasicBlock& block) {
    return llvm::any_of(block, [](const llvm::Instruction& instruction) { return instruction.mayHaveSideEffects(); });
}

using Builder = llvm::IRBuilder<llvm::InstSimplifyFolder>;

class IdleLoop {
public:
    IdleLoop(llvm::Loop& loop, llvm::LoopInfo& loops)
        : loop_(loop), loops_(loops), header_(*loop.getHeader()), latch_(loop.getLoopLatch()),
          preheader_(loop.getLoopPreheader()), exit_(loop.getExitBlock()) {}

    void run() {
        if (!find_counter())
            return;
        find_guards();
        if (guards_.empty())
            return;
        Builder before(preheader_, preheader_->getTerminator()->getIterator(),
                       llvm::InstSimplifyFolder(header_.getDataLayout()));
        llvm::Value* needed = before.getTrue();
        llvm::Value* only = nullptr;  // the one work-item's counter
        for (llvm::BranchInst* guard : guards_) {
            const bool enters_if_true = !is_empty_way(guard->getSuccessor(0));
            llvm::SmallVector<Term, 4> terms = terms_of(*guard->getCondition(), enters_if_true);
            const size_t all = terms.size();
            llvm::erase_if(terms, [&](const Term& term) {
                llvm::Value* test = only ? nullptr : only_counter(before, term, only);
                const bool is_decided = test != nullptr || is_invariant(*term.condition);
                if (test == nullptr)
                    test = possible(before, *term.condition, term.is_wanted);
                if (test != nullptr)
                    needed = before.CreateAnd(needed, frozen(before, *test));
                return is_decided;
            });
            if (terms.size() < all)
                leave(*guard, terms, enters_if_true);
        }
        if (only != nullptr)
            run_once(*only);
        if (!patterns::match(needed, patterns::m_One()))
            enter_if(*needed);
    }

private:
    // One of the terms that must all hold: `condition`, or its opposite.
    struct Term {
        llvm::Value* condition = nullptr;
        bool is_wanted = true;
    };

    bool find_counter() {
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
        if (!first || !first->isZero() || !compare ||
            compare->getOperand(0) != counter_->getIncomingValueForBlock(latch_))
            return false;
        count_ = compare->getOperand(1);
        return loop_.isLoopInvariant(count_);
    }

    // Whether the way from `block` to the next work-item has no side effect.
    bool is_empty_way(llvm::BasicBlock* block) const {
        for (unsigned length = 0; block != nullptr && length < condition_instructions_max; ++length) {
            if (block == latch_)
                return true;
            if (!loop_.contains(block) || has_effect(*block))
                return false;
            block = block->getSingleSuccessor();
        }
        return false;
    }

    void find_guards() {
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

    static llvm::SmallVector<Term, 4> terms_of(llvm::Value& condition, bool is_wanted) {
        llvm::SmallVector<Term, 4> terms, todo{{&condition, is_wanted}};
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

    bool is_invariant(const llvm::Value& value) const {
        unsigned budget = condition_instructions_max;
        return is_invariant(value, budget);
    }
    bool is_invariant(const llvm::Value& value, unsigned& budget) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (!instruction || !loop_.contains(instruction))
            return true;
        if (budget == 0 || !is_arithmetic(*instruction))
            return false;
        --budget;
        return llvm::all_of(instruction->operands(),
                            [&](const llvm::Use& operand) { return is_invariant(*operand.get(), budget); });
    }

    // The change of an integer from one work-item to the next, modulo 2^bits; nothing when it is not known to be constant.
    std::optional<int64_t> step_of(const llvm::Value& value) const {
        unsigned budget = condition_instructions_max;
        return step_of(value, budget);
    }
    std::optional<int64_t> step_of(const llvm::Value& value, unsigned& budget) const {
        if (&value == counter_)
            return 1;
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

    static std::optional<int64_t> sum(std::optional<int64_t> left, std::optional<int64_t> right, int64_t sign) {
        return left && right ? small(*left + sign * *right) : std::nullopt;
    }
    static std::optional<int64_t> scaled(const llvm::Instruction& product, std::optional<int64_t> step) {
        const auto* factor = llvm::dyn_cast<llvm::ConstantInt>(product.getOperand(1));
        if (!step || !factor || factor->getValue().getSignificantBits() > 32)
            return std::nullopt;
        if (product.getOpcode() == llvm::Instruction::Mul)
            return small(*step * factor->getSExtValue());
        return factor->getValue().ult(31) ? small(*step * (int64_t{1} << factor->getZExtValue())) : std::nullopt;
    }
    static std::optional<int64_t> small(int64_t step) {
        return std::abs(step) <= step_max ? std::optional(step) : std::nullopt;
    }

    // Computes, before the loop, the result that `value` has when the loop's counter is `counter`.
    llvm::Value* at_counter(Builder& before, llvm::Value& value, llvm::Value* counter) const {
        if (&value == counter_)
            return counter;
        auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (!instruction || !loop_.contains(instruction))
            return &value;
        llvm::Instruction* copy = nullptr;
        if (const auto* either = llvm::dyn_cast<llvm::PossiblyDisjointInst>(instruction);
            either && either->isDisjoint())
            copy = llvm::BinaryOperator::CreateAdd(either->getOperand(0), either->getOperand(1));
        else
            copy = instruction->clone();
        copy->dropPoisonGeneratingAnnotations();
        for (llvm::Use& operand : copy->operands())
            operand.set(at_counter(before, *operand.get(), counter));
        return before.Insert(copy);
    }

    // Whether `condition`, or its opposite, may hold for some work-item of the loop: false only if it holds for none. Null when this is
    // not known.
    llvm::Value* possible(Builder& before, llvm::Value& condition, bool is_wanted, unsigned depth = 0) const {
        if (is_invariant(condition)) {
            llvm::Value* here = at_counter(before, condition, nullptr);
            return is_wanted ? here : before.CreateNot(here);
        }
        if (depth == depth_max)
            return nullptr;
        llvm::Value *left = nullptr, *right = nullptr;
        if (patterns::match(&condition, patterns::m_Freeze(patterns::m_Value(left))))
            return possible(before, *left, is_wanted, depth + 1);
        const bool is_and =
            patterns::match(&condition, patterns::m_LogicalAnd(patterns::m_Value(left), patterns::m_Value(right)));
        if (is_and ||
            patterns::match(&condition, patterns::m_LogicalOr(patterns::m_Value(left), patterns::m_Value(right)))) {
            llvm::Value* first = possible(before, *left, is_wanted, depth + 1);
            llvm::Value* second = possible(before, *right, is_wanted, depth + 1);
            if (is_and != is_wanted)
                return first && second ? before.CreateOr(first, second) : nullptr;
            return first && second ? before.CreateAnd(first, second) : first ? first : second;
        }
        if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&condition))
            return possible_compare(before, *compare, is_wanted);
        return nullptr;
    }

    llvm::Value* possible_compare(Builder& before, llvm::ICmpInst& compare, bool is_wanted) const {
        llvm::Value *sum = compare.getOperand(0), *bound = compare.getOperand(1);
        llvm::CmpInst::Predicate predicate = is_wanted ? compare.getPredicate() : compare.getInversePredicate();
        if (is_invariant(*sum)) {
            std::swap(sum, bound);
            predicate = llvm::CmpInst::getSwappedPredicate(predicate);
        }
        const std::optional<int64_t> step = is_invariant(*bound) ? step_of(*sum) : std::nullopt;
        const bool is_wide_enough = sum->getType()->isIntegerTy(32) || sum->getType()->isIntegerTy(64);
        if (!step || *step == 0 || !is_wide_enough || predicate == llvm::CmpInst::ICMP_NE)
            return nullptr;
        llvm::Value* last_counter = before.CreateSub(count_, llvm::ConstantInt::get(count_->getType(), 1));
        llvm::Value* first = at_counter(before, *sum, llvm::ConstantInt::get(counter_->getType(), 0));
        llvm::Value* last = at_counter(before, *sum, last_counter);
        llvm::Value* limit = at_counter(before, *bound, nullptr);
        llvm::Value *least = *step > 0 ? first : last, *greatest = *step > 0 ? last : first;
        // If the sums span less than half of their type's range, a wrap-around shows: the least sum is then above the greatest.
        const uint64_t half = uint64_t{1} << (sum->getType()->getIntegerBitWidth() - 1);
        llvm::Value* spans_half = before.CreateICmpUGT(
            count_, llvm::ConstantInt::get(count_->getType(), half / static_cast<uint64_t>(std::abs(*step))));
        const auto above = llvm::CmpInst::isSigned(predicate) ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_UGT;
        llvm::Value* wraps = before.CreateOr(before.CreateICmp(above, least, greatest), spans_half);
        llvm::Value* holds = nullptr;
        if (predicate == llvm::CmpInst::ICMP_EQ)
            holds = before.CreateAnd(before.CreateICmpULE(least, limit), before.CreateICmpULE(limit, greatest));
        else
            holds = before.CreateICmp(predicate, is_less(predicate) ? least : greatest, limit);
        return before.CreateOr(holds, wraps);
    }

    // For a comparison that holds for one value of the counter: sets `counter` to this value, and returns the test whether the loop reaches it.
    // Null for other terms.
    llvm::Value* only_counter(Builder& before, const Term& term, llvm::Value*& counter) const {
        auto* compare = llvm::dyn_cast<llvm::ICmpInst>(term.condition);
        const auto equality = term.is_wanted ? llvm::CmpInst::ICMP_EQ : llvm::CmpInst::ICMP_NE;
        if (!compare || compare->getPredicate() != equality)
            return nullptr;
        llvm::Value *sum = compare->getOperand(0), *wanted = compare->getOperand(1);
        if (is_invariant(*sum))
            std::swap(sum, wanted);
        const bool is_wide_enough = sum->getType()->isIntegerTy(32) || sum->getType()->isIntegerTy(64);
        if (!is_wide_enough || !is_invariant(*wanted) || step_of(*sum) != 1)
            return nullptr;
        llvm::Value* first = at_counter(before, *sum, llvm::ConstantInt::get(counter_->getType(), 0));
        llvm::Value* distance = before.CreateSub(at_counter(before, *wanted, nullptr), first);
        counter = frozen(before, *before.CreateZExtOrTrunc(distance, counter_->getType()));
        return before.CreateICmpULT(counter, count_);
    }

    static bool is_less(llvm::CmpInst::Predicate predicate) {
        return predicate == llvm::CmpInst::ICMP_SLT || predicate == llvm::CmpInst::ICMP_SLE ||
               predicate == llvm::CmpInst::ICMP_ULT || predicate == llvm::CmpInst::ICMP_ULE;
    }

    static llvm::Value* frozen(Builder& before, llvm::Value& value) {
        return llvm::isa<llvm::ConstantInt>(value) ? &value : before.CreateFreeze(&value);
    }

    // Reduces the guard's condition to the terms that vary in the loop.
    static void leave(llvm::BranchInst& guard, llvm::ArrayRef<Term> varying, bool enters_if_true) {
        llvm::IRBuilder<> at(&guard);
        llvm::Value* condition = at.getTrue();
        for (const Term& term : varying) {
            llvm::Value* holds = term.is_wanted ? term.condition : at.CreateNot(term.condition);
            condition = condition == at.getTrue() ? holds : at.CreateLogicalAnd(condition, holds);
        }
        guard.setCondition(enters_if_true ? condition : at.CreateNot(condition));
    }

    // The body runs once, with this value of the counter.
    void run_once(llvm::Value& counter) {
        counter_->replaceAllUsesWith(&counter);
        counter_->eraseFromParent();
        llvm::Instruction* branch = latch_->getTerminator();
        llvm::BranchInst::Create(exit_, branch->getIterator());
        branch->eraseFromParent();
    }

    void enter_if(llvm::Value& needed) {
        auto* enter = llvm::SplitEdge(preheader_, &header_, nullptr, &loops_);
        enter->setName("items.some");
        llvm::Instruction* branch = preheader_->getTerminator();
        llvm::BranchInst::Create(enter, exit_, &needed, branch->getIterator());
        branch->eraseFromParent();
    }

    llvm::Loop& loop_;
    llvm::LoopInfo& loops_;
    llvm::BasicBlock& header_;
    llvm::BasicBlock* const latch_;
    llvm::BasicBlock* const preheader_;
    llvm::BasicBlock* const exit_;
    llvm::PHINode* counter_ = nullptr;
    llvm::Value* count_ = nullptr;
    llvm::SmallVector<llvm::BranchInst*, 4> guards_;
};

}  // namespace

void skip_idle_loops(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    constexpr unsigned dimensions = 3;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (llvm::findOptionMDForLoop(loop, work_item_loop_tag) == nullptr)
            continue;
        for (unsigned d = 0; d < dimensions && loop != nullptr; ++d, loop = loop->getParentLoop())
            IdleLoop(*loop, loops).run();
    }
}

}  // namespace polder::compiler::workgroup
