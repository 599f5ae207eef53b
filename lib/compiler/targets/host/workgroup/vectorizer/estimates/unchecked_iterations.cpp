// The copy lacks the checks, what runs only when one fails, and what is computed only for these. The latter is found backwards, from instructions all of whose
// users are left out. Numbers that grow by the same step in each iteration are parts of addresses in the copy.
#include "unchecked_iterations.h"

#include "lane_cost.h"
#include "targets/host/loops/passed_checks.h"
#include "targets/host/workgroup/vectorizer/analysis/own_scalar_evolution.h"

#include <algorithm>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

class UncheckedCopy {
public:
    UncheckedCopy(const llvm::Loop& loop, llvm::ArrayRef<PassedCheck> checks) : loop_(loop) {
        for (const PassedCheck& check : checks)
            results_[check.comparison] = check.result;
        reach();
        for (bool changed = true; changed;) {
            changed = false;
            for (const llvm::BasicBlock* block : loop.blocks())
                for (const llvm::Instruction& instruction : *block)
                    changed |= is_unneeded(instruction) && unneeded_.insert(&instruction).second;
        }
    }

    [[nodiscard]] bool has(const llvm::Instruction& instruction) const {
        return reached_.contains(instruction.getParent()) && !unneeded_.contains(&instruction);
    }

private:
    // The truth of a condition in the copy, where the checks decide it.
    [[nodiscard]] std::optional<bool> truth_of(const llvm::Value& condition) const {
        using namespace llvm::PatternMatch;
        if (const auto found = results_.find(&condition); found != results_.end())
            return found->second;
        const llvm::Value *left = nullptr, *right = nullptr;
        if (match(&condition, m_Not(m_Value(left)))) {
            const auto truth = truth_of(*left);
            return truth ? std::optional(!*truth) : std::nullopt;
        }
        const bool is_and = match(&condition, m_LogicalAnd(m_Value(left), m_Value(right)));
        if (!is_and && !match(&condition, m_LogicalOr(m_Value(left), m_Value(right))))
            return std::nullopt;
        const auto first = truth_of(*left), second = truth_of(*right);
        if (first == std::optional(!is_and) || second == std::optional(!is_and))
            return !is_and;
        return first && second ? std::optional(is_and) : std::nullopt;
    }

    [[nodiscard]] std::optional<bool> taken_at(const llvm::BasicBlock& block) const {
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
        return branch && branch->isConditional() ? truth_of(*branch->getCondition()) : std::nullopt;
    }

    void reach() {
        llvm::SmallVector<const llvm::BasicBlock*> todo{loop_.getHeader()};
        while (!todo.empty()) {
            const llvm::BasicBlock* const block = todo.pop_back_val();
            if (!loop_.contains(block) || !reached_.insert(block).second)
                continue;
            if (const auto taken = taken_at(*block))
                todo.push_back(block->getTerminator()->getSuccessor(*taken ? 0 : 1));
            else
                todo.append(llvm::succ_begin(block), llvm::succ_end(block));
        }
    }

    [[nodiscard]] bool is_unneeded(const llvm::Instruction& instruction) const {
        if (instruction.isTerminator())
            return taken_at(*instruction.getParent()).has_value();
        if (llvm::isa<llvm::PHINode>(instruction) || instruction.mayHaveSideEffects())
            return false;
        return llvm::all_of(instruction.users(), [&](const llvm::User* user) {
            const auto* const its = llvm::cast<llvm::Instruction>(user);
            return loop_.contains(its) && !has(*its);
        });
    }

    const llvm::Loop& loop_;
    llvm::DenseMap<const llvm::Value*, bool> results_;
    llvm::SmallPtrSet<const llvm::BasicBlock*, 8> reached_;
    llvm::SmallPtrSet<const llvm::Instruction*, 32> unneeded_;
};

// What lane_cost counts for a work-item without lanes.
bool counts_alone(const llvm::Instruction& instruction, const LaneShapes& shapes) {
    if (llvm::isa<llvm::PHINode, llvm::GetElementPtrInst>(instruction) || instruction.isTerminator())
        return false;
    const LaneShape shape = shapes.of(&instruction);
    return llvm::isa<llvm::LoadInst>(instruction) || !shape.is_strided() || shape.is_uniform();
}

}  // namespace

double saved_by_passed_checks(const LanePlan& plan, const LaneShapes& shapes, llvm::DominatorTree& dominators,
                              unsigned width, double most) {
    llvm::SmallVector<llvm::Loop*> loops;
    for (llvm::Loop* const loop : plan.loop->getLoopsInPreorder())
        if (loop != plan.loop && may_have_passed_checks(*loop))
            loops.push_back(loop);
    if (loops.empty())
        return 0;
    OwnScalarEvolution own(*plan.header->getParent(), dominators, *plan.loops);
    double saved = 0;
    for (llvm::Loop* const loop : loops) {
        const llvm::SmallVector<PassedCheck, 4> checks = passed_checks(*loop, own.evolution);
        if (checks.empty())
            continue;
        const UncheckedCopy copy(*loop, checks);
        const auto grows = [&](llvm::Instruction& instruction) {
            return own.evolution.isSCEVable(instruction.getType()) &&
                   llvm::isa<llvm::SCEVAddRecExpr>(own.evolution.getSCEV(&instruction));
        };
        double instructions = 0;
        for (llvm::BasicBlock* block : loop->blocks())
            for (llvm::Instruction& instruction : *block)
                if (counts_alone(instruction, shapes) && (!copy.has(instruction) || grows(instruction)))
                    ++instructions;
        saved += weight_of_block(loop->getLoopDepth() - plan.loop->getLoopDepth()) * instructions;
    }
    return std::min(width * saved, most);
}

}  // namespace polder::compiler::workgroup
