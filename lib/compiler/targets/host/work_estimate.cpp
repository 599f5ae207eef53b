// A loop whose number of iterations follows from the launch is assumed to have 32, and one whose number is found in data has 4, such as a row of a
// sparse matrix. They are counted before LLVM unrolled or vectorized the loop: a counter that goes up by 8 has an eighth of them, and half of 8
// are left over for the rest. The rest of a loop over work-items counts nothing. LLVM's probabilities of branches are used for blocks inside of
// one loop, and not for the question whether the loop runs.
#include "work_estimate.h"

#include "targets/host/workgroup/vectorizer/hoisted_loads.h"
#include "targets/host/workgroup/vectorizer/vectorizer.h"

#include <algorithm>
#include <cmath>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <optional>

namespace polder::compiler {
namespace {

class Estimate {
public:
    Estimate(llvm::Function& function, const llvm::TargetTransformInfo& target)
        : function_(function), target_(target), dominators_(function), loops_(dominators_),
          library_description_(function.getParent()->getTargetTriple()), library_(library_description_, &function),
          assumptions_(function), evolution_(function, library_, assumptions_, dominators_, loops_),
          probabilities_(function, loops_) {
        set_rare_branches();
        frequencies_.calculate(function, probabilities_, loops_);
        for (const llvm::Loop* loop : loops_.getLoopsInPreorder())
            find_main_loop(*loop);
    }

    double work() {
        double sum = 0;
        for (llvm::BasicBlock& block : function_) {
            double cost = 0;
            for (llvm::Instruction& instruction : block)
                cost += cost_of(instruction);
            sum += std::max(cost, cost_of_chain(block)) * runs_of(block);
        }
        return sum;
    }

private:
    double cost_of(const llvm::Instruction& instruction) const {
        // A branch inside of a loop is assumed to be mispredicted once in five times.
        constexpr double unknown = 10, branch = 8, division = 20;
        if (instruction.isDebugOrPseudoInst() || instruction.isLifetimeStartOrEnd())
            return 0;
        if (is_choice(instruction))
            return branch;
        if (instruction.isIntDivRem() && !llvm::isa<llvm::Constant>(instruction.getOperand(1)))
            return division * elements_of(*instruction.getType());
        const llvm::InstructionCost cost =
            target_.getInstructionCost(&instruction, llvm::TargetTransformInfo::TCK_RecipThroughput);
        return cost.isValid() ? static_cast<double>(cost.getValue()) : unknown;
    }

    // In a loop of one block: the time that an iteration needs at least, because it waits for the results of the one before.
    double cost_of_chain(llvm::BasicBlock& block) const {
        constexpr double in_one_cycle = 2;  // of the unit of cost_of
        const llvm::Loop* const loop = loops_.getLoopFor(&block);
        if (loop == nullptr || loop->getNumBlocks() > 1)
            return 0;
        double longest = 0;
        for (const llvm::PHINode& phi : block.phis())
            longest = std::max(longest, latency_to_next(phi, block));
        return in_one_cycle * longest;
    }

    double latency_to_next(const llvm::PHINode& phi, llvm::BasicBlock& block) const {
        llvm::DenseMap<const llvm::Value*, double> reached{{&phi, 0}};
        for (const llvm::Instruction& instruction : block) {
            if (llvm::isa<llvm::PHINode>(instruction))
                continue;
            std::optional<double> latest;
            for (const llvm::Use& operand : instruction.operands())
                if (const auto found = reached.find(operand.get()); found != reached.end())
                    latest = std::max(latest.value_or(0), found->second);
            if (!latest)
                continue;
            const llvm::InstructionCost own =
                target_.getInstructionCost(&instruction, llvm::TargetTransformInfo::TCK_Latency);
            reached[&instruction] = *latest + (own.isValid() ? static_cast<double>(own.getValue()) : 1);
        }
        return reached.lookup(phi.getIncomingValueForBlock(&block));
    }

    static double elements_of(const llvm::Type& type) {
        const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
        return vector == nullptr ? 1 : vector->getNumElements();
    }

    // Whether the instruction is a branch that depends on data: neither one of a loop's exits nor one of ours (set_rare_branches).
    bool is_choice(const llvm::Instruction& instruction) const {
        const llvm::Loop* const loop = loops_.getLoopFor(instruction.getParent());
        return loop != nullptr && instruction.isTerminator() && instruction.getNumSuccessors() > 1 &&
               llvm::all_of(llvm::successors(&instruction), [&](const llvm::BasicBlock* next) {
                   return loop->contains(next) && !is_rarely_entered(*next);
               });
    }

    // Accesses of lanes whose addresses are not what is likely (lane_memory.cpp).
    static bool is_rarely_entered(const llvm::BasicBlock& block) { return block.getName().starts_with("apart"); }

    void set_rare_branches() {
        const llvm::BranchProbability rarely(1, 32), mostly(31, 32);
        for (llvm::BasicBlock& block : function_) {
            const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
            if (branch == nullptr || !branch->isConditional())
                continue;
            const bool is_first_rare = is_rarely_entered(*branch->getSuccessor(0));
            if (is_first_rare != is_rarely_entered(*branch->getSuccessor(1)))
                probabilities_.setEdgeProbability(
                    &block, llvm::SmallVector<llvm::BranchProbability>{is_first_rare ? rarely : mostly,
                                                                       is_first_rare ? mostly : rarely});
        }
    }

    double frequency(const llvm::BasicBlock& block) const {
        return static_cast<double>(std::max<uint64_t>(frequencies_.getBlockFreq(&block).getFrequency(), 1));
    }

    // How often `block` runs. In a loop: compared to the loop's header.
    double runs_of(const llvm::BasicBlock& block) {
        const llvm::Loop* const loop = loops_.getLoopFor(&block);
        if (loop == nullptr)
            return frequency(block) / frequency(function_.getEntryBlock());
        return runs_of(*loop) * frequency(block) / frequency(*loop->getHeader());
    }

    // How often the header of `loop` runs.
    double runs_of(const llvm::Loop& loop) {
        if (const auto known = runs_.find(&loop); known != runs_.end())
            return known->second;
        const double runs = times_entered(loop) * iterations_of(loop);
        return runs_[&loop] = runs;
    }

    double times_entered(const llvm::Loop& loop) {
        if (is_rest_of_work_items(loop))
            return 0;
        if (const auto question = questions_.find(&loop); question != questions_.end())
            return runs_of(*question->second);
        double times = 0;
        for (const llvm::BasicBlock* before : llvm::predecessors(loop.getHeader()))
            if (!loop.contains(before)) {
                const llvm::BranchProbability part = probabilities_.getEdgeProbability(before, loop.getHeader());
                times += runs_of(*before) * part.getNumerator() / llvm::BranchProbability::getDenominator();
            }
        return times;
    }

    double iterations_of(const llvm::Loop& loop) {
        if (const unsigned known = evolution_.getSmallConstantTripCount(&loop))
            return known;
        if (const auto main = main_loops_.find(&loop); main != main_loops_.end())
            return std::min(written_iterations_of(*main->second), static_cast<double>(step_of(*main->second)) / 2);
        return is_rest(loop) ? 1 : written_iterations_of(loop) / static_cast<double>(step_of(loop));
    }

    bool is_over_items(const llvm::Loop& loop) const {
        return llvm::findOptionMDForLoop(&loop, workgroup::items_tag) != nullptr || item_loops_.contains(&loop);
    }

    // How often a loop with an unknown number of iterations runs, as it was written.
    double written_iterations_of(const llvm::Loop& loop) {
        constexpr double many = 32, few = 4;
        return is_over_items(loop) || ends_at_known_number(loop) ? many : few;
    }

    // Whether the counter ends at a number that is computed before all loops, so at one that follows from the launch.
    bool ends_at_known_number(const llvm::Loop& loop) {
        const llvm::BasicBlock* const latch = loop.getLoopLatch();
        const auto* branch = latch ? llvm::dyn_cast<llvm::BranchInst>(latch->getTerminator()) : nullptr;
        const auto* compare =
            branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
        if (compare == nullptr || loop.getExitingBlock() != latch || !compare->getOperand(0)->getType()->isIntegerTy())
            return false;
        const auto is_counter = [&](llvm::Value* value) {
            const auto* counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(value));
            return counter != nullptr && counter->getLoop() == &loop;
        };
        const auto is_known = [&](llvm::Value* value) {
            return evolution_.isLoopInvariant(evolution_.getSCEV(value), loop.getOutermostLoop());
        };
        llvm::Value *const left = compare->getOperand(0), *const right = compare->getOperand(1);
        return (is_counter(left) && is_known(right)) || (is_counter(right) && is_known(left));
    }

    // By how much the loop's counter goes up.
    int64_t step_of(const llvm::Loop& loop) {
        constexpr int64_t step_max = 64;
        int64_t step = 1;
        for (llvm::PHINode& phi : loop.getHeader()->phis()) {
            if (!phi.getType()->isIntegerTy())
                continue;
            const auto* counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(&phi));
            const auto* distance = counter && counter->getLoop() == &loop
                                       ? llvm::dyn_cast<llvm::SCEVConstant>(counter->getStepRecurrence(evolution_))
                                       : nullptr;
            if (distance != nullptr && distance->getAPInt().getSignificantBits() <= 32)
                if (const int64_t size = std::abs(distance->getAPInt().getSExtValue()); size <= step_max)
                    step = std::max(step, size);
        }
        return step;
    }

    static bool is_rest_of_work_items(const llvm::Loop& loop) {
        return llvm::findOptionMDForLoop(&loop, workgroup::rest_of_work_items_tag) != nullptr;
    }

    // Whether the loop has what is left over by one that LLVM unrolled or vectorized. LLVM does not mark these loops, but it names their values. A
    // loop that follows its rest has such values, too, and a larger step.
    bool is_rest(const llvm::Loop& loop) {
        const llvm::BasicBlock& header = *loop.getHeader();
        const auto has_name = [](const llvm::Value& value, std::initializer_list<const char*> parts) {
            return llvm::any_of(parts, [&](const char* part) { return value.getName().contains(part); });
        };
        if (has_name(header, {".epil", ".prol", "vec.epilog"}))
            return true;
        if (step_of(loop) > 1)
            return false;
        for (const llvm::PHINode& phi : header.phis())
            for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
                if (!loop.contains(phi.getIncomingBlock(i)) &&
                    has_name(*phi.getIncomingValue(i), {"bc.resume.val", ".unr", ".epil.init", "bc.merge.rdx"}))
                    return true;
        return false;
    }

    // For a loop with a rest: the block that asks whether the loop or only the rest runs. The loop is assumed to run.
    void find_main_loop(const llvm::Loop& rest) {
        if (!is_rest(rest) && !is_rest_of_work_items(rest))
            return;
        const llvm::Loop* const around = rest.getParentLoop();
        for (const llvm::Loop* loop : around ? around->getSubLoops() : loops_.getTopLevelLoops()) {
            if (loop == &rest || is_rest(*loop) || is_rest_of_work_items(*loop) || questions_.contains(loop) ||
                step_of(*loop) == 1 || !llvm::is_contained(rest_starts_of(*loop), rest.getHeader()))
                continue;
            if (const llvm::BasicBlock* question =
                    dominators_.findNearestCommonDominator(loop->getHeader(), rest.getHeader());
                question != nullptr && loops_.getLoopFor(question) == around)
                questions_[loop] = question;
            main_loops_[&rest] = loop;
            if (is_over_items(rest))
                item_loops_.insert(loop);
        }
    }

    // The headers of loops that follow `loop` on the same level, by the shortest paths.
    llvm::SmallVector<const llvm::BasicBlock*> rest_starts_of(const llvm::Loop& loop) const {
        llvm::SmallVector<llvm::BasicBlock*> todo;
        loop.getExitBlocks(todo);
        llvm::SmallPtrSet<const llvm::BasicBlock*, 16> seen;
        llvm::SmallVector<const llvm::BasicBlock*> headers;
        while (!todo.empty()) {
            llvm::BasicBlock* const block = todo.pop_back_val();
            const llvm::Loop* const its = loops_.getLoopFor(block);
            if (!seen.insert(block).second)
                continue;
            if (its != loop.getParentLoop()) {
                if (its != nullptr && its->getHeader() == block)
                    headers.push_back(block);
                continue;
            }
            if (its == nullptr || its->getHeader() != block)
                todo.append(llvm::succ_begin(block), llvm::succ_end(block));
        }
        return headers;
    }

    llvm::Function& function_;
    const llvm::TargetTransformInfo& target_;
    llvm::DominatorTree dominators_;
    llvm::LoopInfo loops_;
    llvm::TargetLibraryInfoImpl library_description_;
    llvm::TargetLibraryInfo library_;
    llvm::AssumptionCache assumptions_;
    llvm::ScalarEvolution evolution_;
    llvm::BranchProbabilityInfo probabilities_;
    llvm::BlockFrequencyInfo frequencies_;
    llvm::DenseMap<const llvm::Loop*, const llvm::BasicBlock*> questions_;
    llvm::SmallPtrSet<const llvm::Loop*, 4> item_loops_;  // those that lost their mark
    llvm::DenseMap<const llvm::Loop*, const llvm::Loop*> main_loops_;  // by their rests
    llvm::DenseMap<const llvm::Loop*, double> runs_;
};

}  // namespace

double estimated_work(llvm::Function& function, const llvm::TargetTransformInfo& target) {
    return Estimate(function, target).work();
}

}  // namespace polder::compiler
