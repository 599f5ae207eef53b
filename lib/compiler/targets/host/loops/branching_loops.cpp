#include "branching_loops.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler {
namespace {

constexpr const char* not_at_run_time = "llvm.loop.unroll.runtime.disable";

// Of shorter loops, unrolling saves a good part: a decoder of bytes with 20 instructions takes 1.3 times as long without. A loop within another one of the
// kernel has fewer iterations most often, such as the taps of a filter.
constexpr size_t alone_min = 40, within_min = 24;

size_t instruction_count(const llvm::Loop& loop) {
    size_t count = 0;
    for (const llvm::BasicBlock* block : loop.blocks())
        count += block->size();
    return count;
}

bool is_within_another(const llvm::Loop& loop) {
    const llvm::Loop* const around = loop.getParentLoop();
    return around != nullptr && llvm::findOptionMDForLoop(around, workgroup::items_tag) == nullptr;
}

bool is_long(const llvm::Loop& loop) {
    return instruction_count(loop) >= (is_within_another(loop) ? within_min : alone_min);
}

struct BranchingLoops : llvm::PassInfoMixin<BranchingLoops> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        for (llvm::Loop* loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
            if (loop->isInnermost() && loop->getNumBlocks() > 1 && is_long(*loop))
                llvm::addStringMetadataToLoop(loop, not_at_run_time, 1);
        return llvm::PreservedAnalyses::all();
    }
    // LLVM runs this pass also where it leaves out optional passes (optnone).
    static bool isRequired() { return true; }
};

}  // namespace

void add_branching_loops_pass(llvm::PassBuilder& builder) {
    builder.registerVectorizerStartEPCallback(
        [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) { passes.addPass(BranchingLoops()); });
}

}  // namespace polder::compiler
