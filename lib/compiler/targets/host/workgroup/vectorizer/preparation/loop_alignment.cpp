#include "loop_alignment.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {
namespace {

bool is_executed_in_each_iteration(const llvm::BasicBlock& block, const llvm::Loop& loop,
                                   const llvm::DominatorTree& dominators) {
    const llvm::BasicBlock* const latch = loop.getLoopLatch();
    return latch && dominators.dominates(&block, latch);
}

void lower_alignment(llvm::Instruction& access) {
    const llvm::TypeSize bytes = access.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&access));
    const llvm::Align align = llvm::commonAlignment(llvm::getLoadStoreAlignment(&access), bytes);
    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&access))
        load->setAlignment(align);
    else
        llvm::cast<llvm::StoreInst>(access).setAlignment(align);
}

struct LoopAlignment : llvm::PassInfoMixin<LoopAlignment> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        const llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(function);
        if (loops.empty())
            return llvm::PreservedAnalyses::all();
        const llvm::DominatorTree& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
        for (llvm::BasicBlock& block : function) {
            const llvm::Loop* const loop = loops.getLoopFor(&block);
            if (loop == nullptr || is_executed_in_each_iteration(block, *loop, dominators))
                continue;
            for (llvm::Instruction& instruction : block)
                if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction))
                    lower_alignment(instruction);
        }
        return llvm::PreservedAnalyses::all();
    }
    // LLVM runs this pass also where it leaves out optional passes (optnone).
    static bool isRequired() { return true; }
};

}  // namespace

void add_loop_alignment_pass(llvm::PassBuilder& builder) {
    builder.registerVectorizerStartEPCallback(
        [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) { passes.addPass(LoopAlignment()); });
}

}  // namespace polder::compiler::workgroup
