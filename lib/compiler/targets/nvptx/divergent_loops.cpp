#include "divergent_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler {
namespace {

// The limit of instructions that are computed in vain where the first of two joined conditions decides.
constexpr int vain_instructions_max = 8;

constexpr const char* not_unrolled = "llvm.loop.unroll.disable";
constexpr const char* kept_tag = "polder.loop.kept";

bool has_own_wish(const llvm::Loop& loop) {
    for (const char* wish :
         {"llvm.loop.unroll.enable", "llvm.loop.unroll.count", "llvm.loop.unroll.full", not_unrolled})
        if (llvm::findStringMetadataForLoop(&loop, wish))
            return true;
    return false;
}

struct KeepLoops : llvm::PassInfoMixin<KeepLoops> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
            if (loop->getExitingBlock() == nullptr && !has_own_wish(*loop)) {
                loop->setLoopAlreadyUnrolled();
                llvm::addStringMetadataToLoop(loop, kept_tag);
            }
        return llvm::PreservedAnalyses::all();
    }
};

// Removes the mark before code is generated. The back end would write it into the PTX, but the driver's assembler may unroll these loops,
// because it does so without copies of the exits.
struct ForgetKeptLoops : llvm::PassInfoMixin<ForgetKeptLoops> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
            if (llvm::findStringMetadataForLoop(loop, kept_tag))
                loop->setLoopID(llvm::makePostTransformationMetadata(function.getContext(), loop->getLoopID(),
                                                                     {not_unrolled, kept_tag}, {}));
        return llvm::PreservedAnalyses::all();
    }
};

}  // namespace

void add_divergent_loop_passes(llvm::PassBuilder& builder) {
    builder.registerPipelineStartEPCallback([](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
        llvm::FunctionPassManager join;
        join.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
        join.addPass(llvm::EarlyCSEPass());
        join.addPass(llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().bonusInstThreshold(vain_instructions_max)));
        passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(join)));
    });
    builder.registerVectorizerStartEPCallback(
        [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) { passes.addPass(KeepLoops()); });
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
            passes.addPass(llvm::createModuleToFunctionPassAdaptor(ForgetKeptLoops()));
        });
}

}  // namespace polder::compiler
