// For each loop of a nest, from the innermost one outwards, the terms of its guards are examined:
// - A term that does not vary in the loop is tested before the loop instead of inside.
// - A term that compares a bound with a sum of the loop's counter is also tested before the loop, for the least or the greatest sum,
//   whichever fulfils it first. If this one does not, no other does. The term stays in the guard.
// - A term that holds for exactly one work-item, as in `if (get_local_id(0) == 0)`, makes the body run once, without a loop.
// The tests before the loop become a branch around it, which is then a guard of the next outer loop.
//
// A copy of a condition before the loop also runs where the original would not. So copies lose the flags that promise something about
// their operands, and a result that may still be poison is frozen. If it was poison, no work-item with a side effect reached the original.
#include "idle_loops.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/vectorizer/preparation/guarded_loop.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

namespace patterns = llvm::PatternMatch;

constexpr unsigned term_depth_max = 4;  // of terms joined by and and or

using Term = GuardedLoop::Term;

class IdleLoop {
public:
    IdleLoop(llvm::Loop& loop, llvm::LoopInfo& loops) : guarded_(loop), loops_(loops) {}

    void run() {
        if (!guarded_.has_guards())
            return;
        FoldingBuilder before(guarded_.preheader(), guarded_.preheader()->getTerminator()->getIterator(),
                              llvm::InstSimplifyFolder(guarded_.header().getDataLayout()));
        llvm::Value* needed = before.getTrue();
        llvm::Value* only = nullptr;  // the one work-item's counter
        for (llvm::BranchInst* guard : guarded_.guards()) {
            llvm::SmallVector<Term, 4> terms = guarded_.terms_of(*guard);
            const size_t all = terms.size();
            llvm::erase_if(terms, [&](const Term& term) {
                llvm::Value* test = only ? nullptr : only_counter(before, term, only);
                const bool is_decided = test != nullptr || guarded_.is_invariant(*term.condition);
                if (test == nullptr)
                    test = possible(before, *term.condition, term.is_wanted);
                if (test != nullptr)
                    needed = before.CreateAnd(needed, frozen(before, *test));
                return is_decided;
            });
            if (terms.size() < all)
                guarded_.reduce(*guard, terms);
        }
        if (only != nullptr)
            run_once(*only);
        if (!patterns::match(needed, patterns::m_One()))
            enter_if(*needed);
    }

private:
    // Whether `condition`, or its opposite, may hold for some work-item of the loop: false only if it holds for none. Null when this is
    // not known.
    llvm::Value* possible(FoldingBuilder& before, llvm::Value& condition, bool is_wanted, unsigned depth = 0) const {
        if (guarded_.is_invariant(condition)) {
            llvm::Value* here = guarded_.at_counter(before, condition, nullptr);
            return is_wanted ? here : before.CreateNot(here);
        }
        if (depth == term_depth_max)
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

    llvm::Value* possible_compare(FoldingBuilder& before, llvm::ICmpInst& compare, bool is_wanted) const {
        llvm::Value *sum = compare.getOperand(0), *bound = compare.getOperand(1);
        llvm::CmpInst::Predicate predicate = is_wanted ? compare.getPredicate() : compare.getInversePredicate();
        if (guarded_.is_invariant(*sum)) {
            std::swap(sum, bound);
            predicate = llvm::CmpInst::getSwappedPredicate(predicate);
        }
        const std::optional<int64_t> step = guarded_.is_invariant(*bound) ? guarded_.step_of(*sum) : std::nullopt;
        const bool is_wide_enough = sum->getType()->isIntegerTy(32) || sum->getType()->isIntegerTy(64);
        if (!step || *step == 0 || !is_wide_enough || predicate == llvm::CmpInst::ICMP_NE)
            return nullptr;
        llvm::Value* last_counter =
            before.CreateSub(guarded_.count(), llvm::ConstantInt::get(guarded_.count()->getType(), 1));
        llvm::Value* first =
            guarded_.at_counter(before, *sum, llvm::ConstantInt::get(guarded_.counter()->getType(), 0));
        llvm::Value* last = guarded_.at_counter(before, *sum, last_counter);
        llvm::Value* limit = guarded_.at_counter(before, *bound, nullptr);
        llvm::Value *least = *step > 0 ? first : last, *greatest = *step > 0 ? last : first;
        // If the sums span less than half of their type's range, a wrap-around shows: the least sum is then above the greatest.
        const uint64_t half = uint64_t{1} << (sum->getType()->getIntegerBitWidth() - 1);
        llvm::Value* spans_half = before.CreateICmpUGT(
            guarded_.count(),
            llvm::ConstantInt::get(guarded_.count()->getType(), half / static_cast<uint64_t>(std::abs(*step))));
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
    llvm::Value* only_counter(FoldingBuilder& before, const Term& term, llvm::Value*& counter) const {
        auto* compare = llvm::dyn_cast<llvm::ICmpInst>(term.condition);
        const auto equality = term.is_wanted ? llvm::CmpInst::ICMP_EQ : llvm::CmpInst::ICMP_NE;
        if (!compare || compare->getPredicate() != equality)
            return nullptr;
        llvm::Value *sum = compare->getOperand(0), *wanted = compare->getOperand(1);
        if (guarded_.is_invariant(*sum))
            std::swap(sum, wanted);
        const bool is_wide_enough = sum->getType()->isIntegerTy(32) || sum->getType()->isIntegerTy(64);
        if (!is_wide_enough || !guarded_.is_invariant(*wanted) || guarded_.step_of(*sum) != 1)
            return nullptr;
        llvm::Value* first =
            guarded_.at_counter(before, *sum, llvm::ConstantInt::get(guarded_.counter()->getType(), 0));
        llvm::Value* distance = before.CreateSub(guarded_.at_counter(before, *wanted, nullptr), first);
        counter = frozen(before, *before.CreateZExtOrTrunc(distance, guarded_.counter()->getType()));
        return before.CreateICmpULT(counter, guarded_.count());
    }

    static bool is_less(llvm::CmpInst::Predicate predicate) {
        return predicate == llvm::CmpInst::ICMP_SLT || predicate == llvm::CmpInst::ICMP_SLE ||
               predicate == llvm::CmpInst::ICMP_ULT || predicate == llvm::CmpInst::ICMP_ULE;
    }

    // The body runs once, with this value of the counter.
    void run_once(llvm::Value& counter) {
        guarded_.counter()->replaceAllUsesWith(&counter);
        guarded_.counter()->eraseFromParent();
        llvm::Instruction* branch = guarded_.latch()->getTerminator();
        llvm::BranchInst::Create(guarded_.exit(), branch->getIterator());
        branch->eraseFromParent();
    }

    void enter_if(llvm::Value& needed) {
        auto* enter = llvm::SplitEdge(guarded_.preheader(), &guarded_.header(), nullptr, &loops_);
        enter->setName("items.some");
        llvm::Instruction* branch = guarded_.preheader()->getTerminator();
        llvm::BranchInst::Create(enter, guarded_.exit(), &needed, branch->getIterator());
        branch->eraseFromParent();
    }

    GuardedLoop guarded_;
    llvm::LoopInfo& loops_;
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
