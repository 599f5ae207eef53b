#include "divergent_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler {
namespace {

struct KeepLoops : llvm::PassInfoMixin<KeepLoops> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
            if (loop->getExitingBlock() == nullptr &&
                !llvm::findStringMetadataForLoop(loop, "llvm.loop.unroll.enable") &&
                !llvm::findStringMetadataForLoop(loop, "llvm.loop.unroll.count"))
                loop->setLoopAlreadyUnrolled();
        return llvm::PreservedAnalyses::all();
    }
};

}  // namespace

void keep_loops_of_many_exits(llvm::PassBuilder& builder) {
    builder.registerVectorizerStartEPCallback(
        [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) { passes.addPass(KeepLoops()); });
}

}  // namespace polder::compiler
