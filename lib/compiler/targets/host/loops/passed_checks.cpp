// Each comparison of such a number is asked at the end of its range where it could fail: `x >= 0` where x is least, `x < bound` where it is greatest. Both
// ends must be at least 0, and their distance must fit into a signed number. So all numbers between them have one order, with and without a sign.
//
// What is asked may be undefined where the loop would not have compared it, so each answer is frozen.
#include "passed_checks.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <optional>

namespace polder::compiler {
namespace {

using llvm::CmpInst;

constexpr size_t checked_instructions_max = 150;  // of a loop
constexpr unsigned copies_max = 4;  // of a function
constexpr size_t numbers_max = 3;  // of a loop, each with its own questions
constexpr uint64_t constant_bound_min = 16;  // below, a number is compared to find the first few

bool is_relation(const llvm::Instruction& instruction) {
    const auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
    return comparison != nullptr && comparison->isRelational() && comparison->getOperand(0)->getType()->isIntegerTy();
}

// Whether an iteration uses what the one before has computed, as a sum. LLVM makes vectors of other loops,
// or one copy of memory, which takes longer than a few elements one by one.
bool is_chain(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    return llvm::any_of(loop.getHeader()->phis(), [&](llvm::PHINode& phi) {
        return !evolution.isSCEVable(phi.getType()) || !llvm::isa<llvm::SCEVAddRecExpr>(evolution.getSCEV(&phi));
    });
}

// Whether the loop has one exit, behind its last block.
bool is_simple(const llvm::Loop& loop) {
    return loop.isLoopSimplifyForm() && loop.getExitBlock() != nullptr && loop.getExitingBlock() == loop.getLoopLatch();
}

// `number`, which grows by a constant step, is compared with `bound`, which does not change. `predicate` is what holds within the range; the comparison is
// then `result`.
struct Check {
    llvm::ICmpInst* comparison = nullptr;
    const llvm::SCEVAddRecExpr* number = nullptr;
    llvm::Value* bound = nullptr;
    CmpInst::Predicate predicate = CmpInst::BAD_ICMP_PREDICATE;
    bool result = true;
    llvm::SmallVector<const llvm::SCEVPredicate*, 2> growth;  // which counters must not wrap around
    [[nodiscard]] bool is_lower() const { return llvm::ICmpInst::isGT(predicate) || llvm::ICmpInst::isGE(predicate); }
};

class PassedChecks {
public:
    PassedChecks(llvm::Loop& loop, llvm::ScalarEvolution& evolution)
        : loop_(loop), evolution_(evolution), count_(evolution.getBackedgeTakenCount(&loop)) {
        if (llvm::isa<llvm::SCEVCouldNotCompute>(count_))
            return;
        for (llvm::BasicBlock* block : loop.blocks())
            for (llvm::Instruction& instruction : *block)
                if (is_relation(instruction))
                    if (const auto check = check_of(llvm::cast<llvm::ICmpInst>(instruction)))
                        checks_[check->number].push_back(*check);
        checks_.remove_if([](const auto& number) { return !is_range(number.second); });
    }

    // Whether there is something to copy for.
    [[nodiscard]] bool is_worth_a_copy() const {
        return !checks_.empty() && checks_.size() <= numbers_max && can_ask(*loop_.getLoopPreheader()->getTerminator());
    }

    [[nodiscard]] llvm::SmallVector<PassedCheck, 4> all() const {
        llvm::SmallVector<PassedCheck, 4> found;
        for (const auto& [number, checks] : checks_)
            for (const Check& check : checks)
                found.push_back({check.comparison, check.result});
        return found;
    }

    // Emits the copy, with a branch to it; false when there is nothing to copy for.
    bool emit(llvm::LoopInfo& loops, llvm::DominatorTree& dominators) {
        llvm::BasicBlock* const before = loop_.getLoopPreheader();
        if (!is_worth_a_copy())
            return false;
        llvm::Value* const condition = ask(*before->getTerminator());
        llvm::BasicBlock* const preheader =
            llvm::SplitBlock(before, before->getTerminator()->getIterator(), &dominators, &loops, nullptr, "checks");
        llvm::ValueToValueMapTy copies;
        llvm::SmallVector<llvm::BasicBlock*, 8> blocks;
        llvm::Loop* const copy =
            llvm::cloneLoopWithPreheader(preheader, before, &loop_, copies, ".passed", &loops, &dominators, blocks);
        llvm::remapInstructionsInBlocks(blocks, copies);
        if (llvm::MDNode* const id = loop_.getLoopID())
            copy->setLoopID(llvm::makePostTransformationMetadata(before->getContext(), id, {}, {}));
        for (const auto& [number, checks] : checks_)
            for (const Check& check : checks) {
                auto* const copied = llvm::cast<llvm::Instruction>(copies[check.comparison]);
                copied->replaceAllUsesWith(llvm::ConstantInt::getBool(copied->getType(), check.result));
                copied->eraseFromParent();
            }
        for (llvm::PHINode& phi : loop_.getExitBlock()->phis()) {
            llvm::Value* const value = phi.getIncomingValueForBlock(loop_.getExitingBlock());
            const auto copied = copies.find(value);
            phi.addIncoming(copied == copies.end() ? value : static_cast<llvm::Value*>(copied->second),
                            copy->getExitingBlock());
        }
        auto* const branch = llvm::BranchInst::Create(copy->getLoopPreheader(), preheader, condition);
        llvm::ReplaceInstWithInst(before->getTerminator(), branch);
        branch->setMetadata(llvm::LLVMContext::MD_prof,
                            llvm::MDBuilder(before->getContext()).createLikelyBranchWeights());
        return true;
    }

private:
    [[nodiscard]] std::optional<Check> check_of(llvm::ICmpInst& comparison) {
        llvm::Value *left = comparison.getOperand(0), *right = comparison.getOperand(1);
        CmpInst::Predicate predicate = comparison.getPredicate();
        if (loop_.isLoopInvariant(left)) {
            std::swap(left, right);
            predicate = CmpInst::getSwappedPredicate(predicate);
        }
        if (!loop_.isLoopInvariant(right) || loop_.isLoopInvariant(left))
            return std::nullopt;
        // PredicatedScalarEvolution would leave out questions about narrow counters (narrow_wraps.h).
        llvm::SmallVector<const llvm::SCEVPredicate*, 2> growth;
        const auto* number = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(left));
        if (number == nullptr)
            number = evolution_.convertSCEVToAddRecWithPredicates(evolution_.getSCEV(left), &loop_, growth);
        if (number == nullptr || number->getLoop() != &loop_ || !number->isAffine() ||
            !llvm::isa<llvm::SCEVConstant>(number->getStepRecurrence(evolution_)))
            return std::nullopt;
        const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(right);
        const bool is_lower = constant != nullptr && !constant->getValue().isStrictlyPositive();
        if (constant != nullptr &&
            (is_lower ? CmpInst::isUnsigned(predicate) : constant->getValue().ult(constant_bound_min)))
            return std::nullopt;
        const bool result = is_lower == (llvm::ICmpInst::isGT(predicate) || llvm::ICmpInst::isGE(predicate));
        return Check{&comparison, number,           right, result ? predicate : CmpInst::getInversePredicate(predicate),
                     result,      std::move(growth)};
    }

    // Whether the checks of one number are of both ends of a range.
    static bool is_range(llvm::ArrayRef<Check> checks) {
        const auto is_lower = [](const Check& check) {
            return check.is_lower() || CmpInst::isUnsigned(check.predicate);
        };
        return llvm::any_of(checks, is_lower) &&
               llvm::any_of(checks, [](const Check& check) { return !check.is_lower(); });
    }

    [[nodiscard]] bool can_ask(const llvm::Instruction& end) const {
        const llvm::SCEVExpander expander(evolution_, "passed");
        const auto is_safe = [&](const llvm::SCEV* number) { return expander.isSafeToExpandAt(number, &end); };
        return is_safe(count_) &&
               llvm::all_of(checks_, [&](const auto& number) { return is_safe(number.first->getStart()); }) &&
               llvm::all_of(growth(),
                            [&](const llvm::SCEVPredicate* predicate) { return can_ask(*predicate, is_safe); });
    }

    // The loop may compare with zero first what a counter begins with a quotient by.
    static bool can_ask(const llvm::SCEVPredicate& predicate, llvm::function_ref<bool(const llvm::SCEV*)> is_safe) {
        if (const auto* const wrap = llvm::dyn_cast<llvm::SCEVWrapPredicate>(&predicate))
            return llvm::all_of(wrap->getExpr()->operands(), is_safe);
        const auto* const comparison = llvm::dyn_cast<llvm::SCEVComparePredicate>(&predicate);
        return comparison != nullptr && is_safe(comparison->getLHS()) && is_safe(comparison->getRHS());
    }

    // Of all checks, each once.
    [[nodiscard]] llvm::SmallSetVector<const llvm::SCEVPredicate*, 4> growth() const {
        llvm::SmallSetVector<const llvm::SCEVPredicate*, 4> all;
        for (const auto& [number, checks] : checks_)
            for (const Check& check : checks)
                all.insert(check.growth.begin(), check.growth.end());
        return all;
    }

    // Whether all checks of all iterations are passed, computed before `end`.
    llvm::Value* ask(llvm::Instruction& end) const {
        llvm::SCEVExpander expander(evolution_, "passed");
        llvm::Value* const iterations = expander.expandCodeFor(count_, count_->getType(), &end);
        llvm::IRBuilder<> at(&end);
        llvm::Value* passed = at.getTrue();
        const auto require = [&](CmpInst::Predicate predicate, llvm::Value* left, llvm::Value* right) {
            passed = at.CreateAnd(passed, at.CreateFreeze(at.CreateICmp(predicate, left, right)));
        };
        for (const llvm::SCEVPredicate* const predicate : growth()) {
            llvm::Value* const fails = expander.expandCodeForPredicate(predicate, &end);
            passed = at.CreateAnd(passed, at.CreateFreeze(at.CreateNot(fails)));
        }
        for (const auto& [number, checks] : checks_) {
            auto* const type = llvm::cast<llvm::IntegerType>(number->getType());
            const llvm::APInt& step = llvm::cast<llvm::SCEVConstant>(number->getStepRecurrence(evolution_))->getAPInt();
            const unsigned bits = std::max(type->getBitWidth(), iterations->getType()->getIntegerBitWidth());
            const llvm::APInt most = llvm::APInt::getSignedMaxValue(type->getBitWidth()).udiv(step.abs()).zext(bits);
            if (evolution_.getUnsignedRangeMax(count_).zext(bits).ugt(most))
                require(CmpInst::ICMP_ULE, at.CreateZExt(iterations, at.getIntNTy(bits)), at.getInt(most));
            llvm::Value* const first = expander.expandCodeFor(number->getStart(), type, &end);
            llvm::Value* const last = at.CreateAdd(
                first, at.CreateMul(at.CreateZExtOrTrunc(iterations, type), llvm::ConstantInt::get(type, step)));
            llvm::Value* const least = step.isNegative() ? last : first;
            llvm::Value* const greatest = step.isNegative() ? first : last;
            for (llvm::Value* one : {least, greatest})
                require(CmpInst::ICMP_SGE, one, llvm::ConstantInt::get(type, 0));
            for (const Check& check : checks)
                require(check.predicate, check.is_lower() ? least : greatest, check.bound);
        }
        return passed;
    }

    llvm::Loop& loop_;
    llvm::ScalarEvolution& evolution_;
    const llvm::SCEV* count_;
    llvm::MapVector<const llvm::SCEVAddRecExpr*, llvm::SmallVector<Check, 4>> checks_;
};

// Copies one loop that is not among those that were `seen`; false when there is no further one.
bool copy_one(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
              llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& seen) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!may_have_passed_checks(*loop) || !is_simple(*loop) || !seen.insert(loop->getHeader()).second)
            continue;
        auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
        auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
        if (is_chain(*loop, evolution) && PassedChecks(*loop, evolution).emit(loops, dominators)) {
            analyses.invalidate(function, llvm::PreservedAnalyses::none());
            return true;
        }
    }
    return false;
}

}  // namespace

// Whether the loop has comparisons beside that of its end.
bool may_have_passed_checks(const llvm::Loop& loop) {
    if (!loop.isInnermost() || llvm::findOptionMDForLoop(&loop, workgroup::items_tag) != nullptr)
        return false;
    const llvm::BasicBlock* const latch = loop.getLoopLatch();
    size_t comparisons = 0, size = 0;
    for (const llvm::BasicBlock* block : loop.blocks()) {
        size += block->size();
        for (const llvm::Instruction& instruction : *block)
            comparisons += is_relation(instruction) && !(block == latch && instruction.hasOneUse() &&
                                                         instruction.user_back() == latch->getTerminator())
                               ? 1
                               : 0;
    }
    return comparisons > 0 && size <= checked_instructions_max;
}

llvm::SmallVector<PassedCheck, 4> passed_checks(llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    if (!may_have_passed_checks(loop) || !is_simple(loop) || !is_chain(loop, evolution))
        return {};
    const PassedChecks checks(loop, evolution);
    return checks.is_worth_a_copy() ? checks.all() : llvm::SmallVector<PassedCheck, 4>{};
}

unsigned copy_without_passed_checks(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    const auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    if (llvm::none_of(loops.getLoopsInPreorder(), [](const llvm::Loop* loop) { return may_have_passed_checks(*loop); }))
        return 0;
    llvm::FunctionPassManager before;
    before.addPass(llvm::LoopSimplifyPass());
    before.addPass(llvm::LCSSAPass());
    analyses.invalidate(function, before.run(function, analyses));
    llvm::SmallPtrSet<const llvm::BasicBlock*, 8> seen;
    unsigned copies = 0;
    while (copies < copies_max && copy_one(function, analyses, seen))
        ++copies;
    return copies;
}

}  // namespace polder::compiler
