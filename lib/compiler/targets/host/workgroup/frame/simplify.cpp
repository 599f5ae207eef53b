// A short pipeline of LLVM's passes instead of O1 or O3: passes that move code across barriers, or reorder sums so that the step
// between neighbouring work-items is no longer visible, are left out.
#include "simplify.h"

#include "accumulators.h"
#include "analyses.h"
#include "byte_copies.h"
#include "counter_widths.h"
#include "folded_iterations.h"
#include "invariant_places.h"
#include "narrow_counters.h"
#include "natural_loops.h"
#include "private_arrays.h"
#include "private_indices.h"
#include "search_loops.h"
#include "single_iterations.h"
#include "warp_loops.h"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/JumpThreading.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/MemCpyOptimizer.h>
#include <llvm/Transforms/Scalar/MergedLoadStoreMotion.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

namespace polder::compiler::workgroup {

namespace {

// For a `break` out of a block with variables, Clang joins all paths at the end of the block and uses a number and a switch to choose where
// each path continues. This reports whether the function has such a switch.
bool has_switch_on_path(const llvm::Function& function) {
    return llvm::any_of(function, [](const llvm::BasicBlock& block) {
        const auto* choice = llvm::dyn_cast<llvm::SwitchInst>(block.getTerminator());
        const auto* path = choice ? llvm::dyn_cast<llvm::PHINode>(choice->getCondition()) : nullptr;
        return path != nullptr && path->getParent() == &block &&
               llvm::any_of(path->incoming_values(),
                            [](const llvm::Use& use) { return llvm::isa<llvm::ConstantInt>(use); });
    });
}

bool has_convergent_call(const llvm::Function& function) {
    return llvm::any_of(llvm::instructions(function), [](const llvm::Instruction& instruction) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        return call != nullptr && call->isConvergent();
    });
}

// Makes each path branch directly to its target of the switch. Not in functions with barriers, where all work-items must still meet.
struct ThreadPaths : llvm::PassInfoMixin<ThreadPaths> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        return has_switch_on_path(function) && !has_convergent_call(function)
                   ? llvm::JumpThreadingPass().run(function, analyses)
                   : llvm::PreservedAnalyses::all();
    }
};

// Whether a loop has a branch both of whose sides store, and then meet.
bool has_stores_on_both_sides(const llvm::Function& function, const llvm::LoopInfo& loops) {
    const auto stores = [](const llvm::Instruction& one) { return llvm::isa<llvm::StoreInst>(one); };
    return llvm::any_of(function, [&](const llvm::BasicBlock& block) {
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
        if (!branch || !branch->isConditional() || !loops.getLoopFor(&block))
            return false;
        const llvm::BasicBlock *const one = branch->getSuccessor(0), *const other = branch->getSuccessor(1);
        return one->getSinglePredecessor() && other->getSinglePredecessor() && one->getSingleSuccessor() &&
               one->getSingleSuccessor() == other->getSingleSuccessor() && llvm::any_of(*one, stores) &&
               llvm::any_of(*other, stores);
    });
}

// Both sides of a branch that store to one place, as a merge does, become one store of a chosen value. Later, moved instructions would hide it. The address
// must be one instruction, so what both sides begin with is hoisted.
struct JoinStores : llvm::PassInfoMixin<JoinStores> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        if (!has_stores_on_both_sides(function, analyses.getResult<llvm::LoopAnalysis>(function)))
            return llvm::PreservedAnalyses::all();
        llvm::FunctionPassManager passes;
        passes.addPass(llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().hoistCommonInsts(true)));
        passes.addPass(llvm::MergedLoadStoreMotionPass());
        passes.run(function, analyses);
        return llvm::PreservedAnalyses::none();
    }
};

void add_passes_after_unrolling(llvm::FunctionPassManager& passes) {
    passes.addPass(ShowNarrowComparisons());
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    // Without PRE (partial redundancy elimination). LLVM would compute a value on each of the two sides of a branch that varies between
    // work-items, and join both values in a phi. Uniformity could not see that all work-items have the same value.
    passes.addPass(llvm::GVNPass(llvm::GVNOptions().setPRE(false)));
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::DSEPass());
    passes.addPass(llvm::ADCEPass());
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
    // InstCombine takes each address of a row apart and computes its base again. The accesses are neighbours when they share the base.
    passes.addPass(llvm::EarlyCSEPass());
}

llvm::FunctionPassManager scalar_pipeline() {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::EarlyCSEPass(true));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(JoinStores());
    passes.addPass(llvm::MemCpyOptPass());
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(ThreadPaths());
    llvm::LoopPassManager canonical;
    canonical.addPass(llvm::LoopRotatePass());
    canonical.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(canonical), /*UseMemorySSA=*/true));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
    llvm::LoopPassManager small;
    small.addPass(EndAfterFirstIteration());
    small.addPass(ComputeExitValues());
    small.addPass(SimplifyCounters());
    small.addPass(llvm::LoopDeletionPass());
    small.addPass(CopyByWords());
    small.addPass(IndexPrivateArrays());
    small.addPass(KeepWarpLoops());
    small.addPass(MoveInvariantPlaces());
    small.addPass(UnrollForPrivateArrays());
    small.addPass(FoldIterations());
    small.addPass(KeepSearchLoops());
    small.addPass(llvm::LoopFullUnrollPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(small)));
    add_passes_after_unrolling(passes);
    return passes;
}

// What `restrict` says about two accesses of one work-item does not hold for those of two lanes.
void forget_scopes(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        if (llvm::isa<llvm::NoAliasScopeDeclInst>(instruction)) {
            instruction.eraseFromParent();
            continue;
        }
        instruction.setMetadata(llvm::LLVMContext::MD_alias_scope, nullptr);
        instruction.setMetadata(llvm::LLVMContext::MD_noalias, nullptr);
    }
}

// For loops whose numbers of iterations depend on a loop around them. The round before has unrolled or removed loops there.
llvm::FunctionPassManager private_array_pipeline() {
    llvm::FunctionPassManager passes;
    llvm::LoopPassManager loops;
    loops.addPass(ComputeExitValues());
    loops.addPass(SimplifyCounters());
    loops.addPass(UnrollForPrivateArrays());
    loops.addPass(llvm::LoopFullUnrollPass(/*OptLevel=*/2, /*OnlyWhenForced=*/true));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops)));
    add_passes_after_unrolling(passes);
    return passes;
}

// Each round may make counters of a loop known, of which the next one unrolls the loops inside.
void unroll_for_private_arrays(llvm::Function& function, llvm::FunctionAnalysisManager& functions) {
    constexpr unsigned rounds_max = 4;
    for (unsigned round = 0; round < rounds_max && has_indexed_private_array(function) &&
                             !functions.getResult<llvm::LoopAnalysis>(function).empty();
         ++round) {
        const unsigned before = function.getInstructionCount();
        private_array_pipeline().run(function, functions);
        if (function.getInstructionCount() == before)
            return;
    }
}

llvm::FunctionPassManager accumulator_pipeline() {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(SeparateAccumulators()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    return passes;
}

}  // namespace

void with_analyses(llvm::TargetMachine* target, llvm::function_ref<void(llvm::FunctionAnalysisManager&)> use) {
    llvm::PassBuilder builder(target);
    Analyses analyses;
    analyses.register_all(builder);
    use(analyses.functions);
}

void simplify_body(llvm::Function& function, llvm::TargetMachine* target) {
    with_analyses(target, [&](llvm::FunctionAnalysisManager& functions) {
        scalar_pipeline().run(function, functions);
        unroll_for_private_arrays(function, functions);
        forget_scopes(function);
        if (has_accumulators(functions.getResult<llvm::LoopAnalysis>(function)))
            accumulator_pipeline().run(function, functions);
        if (narrow_counters(function) > 0)
            functions.invalidate(function, llvm::PreservedAnalyses::none());
    });
    make_loops_natural(function, target);
}

}  // namespace polder::compiler::workgroup
