// An operand is hidden by a freeze with a tag, which LLVM neither widens nor looks through.
#include "counter_widths.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <array>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

namespace polder::compiler::workgroup {

namespace {

constexpr const char* hidden = "polder.hidden";

bool has_counter(const llvm::SCEV& value) {
    return llvm::SCEVExprContains(&value, [](const llvm::SCEV* part) { return llvm::isa<llvm::SCEVAddRecExpr>(part); });
}

// Whether the value follows from an id, as far as can be seen: from private memory, atomic operations or long computations it may.
bool may_vary(const llvm::Value& value) {
    constexpr size_t values_max = 64;
    llvm::SmallPtrSet<const llvm::Value*, 16> seen;
    llvm::SmallVector<const llvm::Value*> todo{&value};
    while (!todo.empty()) {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(todo.pop_back_val());
        if (!instruction || !seen.insert(instruction).second)
            continue;
        if (llvm::isa<llvm::AllocaInst>(instruction) || instruction->mayWriteToMemory() ||
            local_id_dimension(*instruction) || seen.size() > values_max)
            return true;
        todo.append(instruction->op_begin(), instruction->op_end());
    }
    return false;
}

bool may_vary(const llvm::SCEV& value) {
    return llvm::SCEVExprContains(&value, [](const llvm::SCEV* part) {
        const auto* const unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part);
        return unknown && may_vary(*unknown->getValue());
    });
}

// Whether a loop may be left where the condition, or one made of it, holds or does not.
bool decides_about_exit(const llvm::Value& condition, const llvm::LoopInfo& loops, unsigned depth = 0) {
    constexpr unsigned depth_max = 4;
    return llvm::any_of(condition.users(), [&](const llvm::User* user) {
        if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(user)) {
            const llvm::Loop* const loop = loops.getLoopFor(branch->getParent());
            return loop && loop->isLoopExiting(branch->getParent());
        }
        return user->getType()->isIntegerTy(1) && (depth == depth_max || decides_about_exit(*user, loops, depth + 1));
    });
}

// Whether a number is a multiple of the first id, as the start of a work-item's own row is.
bool has_multiple_of_id(const llvm::SCEV& value) {
    const auto is_id = [](const llvm::SCEV* part) {
        const auto* const unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part);
        const auto* const call = unknown ? llvm::dyn_cast<llvm::Instruction>(unknown->getValue()) : nullptr;
        return call && local_id_dimension(*call) == 0U;
    };
    return llvm::SCEVExprContains(&value, [&](const llvm::SCEV* part) {
        return llvm::isa<llvm::SCEVMulExpr>(part) && llvm::SCEVExprContains(part, is_id);
    });
}

// Whether a loop without branches loads the elements of a row, one after the other, and each work-item those of another row.
bool walks_along_rows(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    return loop.getNumBlocks() == 1 && llvm::any_of(*loop.getHeader(), [&](llvm::Instruction& one) {
               const auto* const extension = llvm::dyn_cast<llvm::CastInst>(&one);
               if (!extension || !llvm::isa<llvm::SExtInst, llvm::ZExtInst>(extension))
                   return false;
               const auto* const index =
                   llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(extension->getOperand(0)));
               if (!index || index->getLoop() != &loop)
                   return false;
               const auto* const step = llvm::dyn_cast<llvm::SCEVConstant>(index->getStepRecurrence(evolution));
               return step && step->getAPInt().abs().isOne() && has_multiple_of_id(*index->getStart());
           });
}

// Whether a counter of the loop, or of a loop around it, starts at different numbers.
bool starts_differ(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    if (loop.getParentLoop() && starts_differ(*loop.getParentLoop(), evolution))
        return true;
    return llvm::any_of(loop.getHeader()->phis(), [&](llvm::PHINode& phi) {
        if (!evolution.isSCEVable(phi.getType()))
            return false;
        const auto* const counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(&phi));
        return counter && counter->getLoop() == &loop && may_vary(*counter->getStart());
    });
}

bool has_wide_counters(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    constexpr unsigned few = 1024;
    const unsigned iterations_max = evolution.getSmallConstantMaxTripCount(&loop);
    return (iterations_max != 0 && iterations_max <= few) || starts_differ(loop, evolution) ||
           walks_along_rows(loop, evolution);
}

bool hide_narrow_comparisons(const llvm::Loop& loop, llvm::LoopStandardAnalysisResults& results) {
    constexpr unsigned narrow_bits = 32;
    llvm::ScalarEvolution& evolution = results.SE;
    bool changed = false;
    for (llvm::BasicBlock* block : loop.blocks()) {
        if (results.LI.getLoopFor(block) != &loop)
            continue;
        for (llvm::Instruction& instruction : *block) {
            auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
            if (!compare || !compare->getOperand(0)->getType()->isIntegerTy(narrow_bits))
                continue;
            const std::array sides{evolution.getSCEV(compare->getOperand(0)),
                                   evolution.getSCEV(compare->getOperand(1))};
            if (llvm::none_of(sides, [](const llvm::SCEV* side) { return may_vary(*side); }) ||
                decides_about_exit(*compare, results.LI))
                continue;
            for (unsigned side = 0; side < 2; ++side)
                if (has_counter(*sides[side])) {
                    auto* const freeze = new llvm::FreezeInst(compare->getOperand(side), "", compare->getIterator());
                    freeze->setMetadata(hidden, llvm::MDNode::get(freeze->getContext(), {}));
                    compare->setOperand(side, freeze);
                    changed = true;
                }
            evolution.forgetValue(compare);
        }
    }
    return changed;
}

}  // namespace

llvm::PreservedAnalyses SimplifyCounters::run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    const bool is_wide = has_wide_counters(loop, results.SE);
    const bool has_hidden = is_wide && hide_narrow_comparisons(loop, results);
    const llvm::PreservedAnalyses preserved = llvm::IndVarSimplifyPass(is_wide).run(loop, analyses, results, updater);
    return has_hidden ? llvm::getLoopPassPreservedAnalyses() : preserved;
}

llvm::PreservedAnalyses ShowNarrowComparisons::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    bool changed = false;
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function)))
        if (instruction.hasMetadata(hidden)) {
            instruction.replaceAllUsesWith(instruction.getOperand(0));
            instruction.eraseFromParent();
            changed = true;
        }
    if (!changed)
        return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
}

}  // namespace polder::compiler::workgroup
