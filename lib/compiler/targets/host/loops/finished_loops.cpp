#include "finished_loops.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler {
namespace {

bool has_vectors(const llvm::Loop& loop) {
    return llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](const llvm::Instruction& each) {
            const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&each);
            return (store != nullptr ? store->getValueOperand()->getType() : each.getType())->isVectorTy();
        });
    });
}

struct FinishedLoops : llvm::PassInfoMixin<FinishedLoops> {
    explicit FinishedLoops(unsigned loops_min) : loops_min_(loops_min) {}

    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) const {
        const auto loops = analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder();
        if (loops.size() <= loops_min_)
            return llvm::PreservedAnalyses::all();
        for (llvm::Loop* const loop : loops)
            if (loop->isInnermost() && llvm::hasVectorizeTransformation(loop) == llvm::TM_Unspecified &&
                has_vectors(*loop))
                llvm::addStringMetadataToLoop(loop, "llvm.loop.isvectorized", 1);
        return llvm::PreservedAnalyses::all();
    }
    // LLVM runs this pass also where it leaves out optional passes (optnone).
    static bool isRequired() { return true; }

private:
    unsigned loops_min_;
};

}  // namespace

void add_finished_loops_pass(llvm::PassBuilder& builder, unsigned loops_min) {
    builder.registerVectorizerStartEPCallback([loops_min](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) {
        passes.addPass(FinishedLoops(loops_min));
    });
}

}  // namespace polder::compiler
