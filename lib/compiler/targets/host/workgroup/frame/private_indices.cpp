#include "private_indices.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/Utils/Local.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

namespace polder::compiler::workgroup {

namespace {

using Steps = llvm::SmallVector<llvm::GetElementPtrInst*, 4>;

// What an iteration adds to the pointer, the last step first; nothing where its next value is computed otherwise.
Steps steps_of(const llvm::PHINode& pointer, const llvm::Loop& loop) {
    Steps steps;
    llvm::Value* value = pointer.getIncomingValueForBlock(loop.getLoopLatch());
    while (value != &pointer) {
        auto* const step = llvm::dyn_cast<llvm::GetElementPtrInst>(value);
        if (step == nullptr || !loop.contains(step))
            return {};
        steps.push_back(step);
        value = step->getPointerOperand();
    }
    return steps;
}

bool walks_through_private_array(const llvm::PHINode& phi, const llvm::Loop& loop) {
    return phi.getType()->isPointerTy() && phi.getNumIncomingValues() == 2 &&
           llvm::isa<llvm::AllocaInst>(
               llvm::getUnderlyingObject(phi.getIncomingValueForBlock(loop.getLoopPreheader()), 0));
}

void use_index(llvm::PHINode& pointer, const Steps& steps, const llvm::Loop& loop) {
    llvm::BasicBlock& header = *loop.getHeader();
    llvm::Value* const first = pointer.getIncomingValueForBlock(loop.getLoopPreheader());
    llvm::IRBuilder<> at(&header, header.begin());
    const llvm::DataLayout& layout = header.getDataLayout();
    llvm::Type* const type = layout.getIndexType(pointer.getType());
    llvm::PHINode* const index = at.CreatePHI(type, 2, "walked");
    at.SetInsertPoint(steps.front());
    llvm::Value* next = index;
    for (llvm::GetElementPtrInst* const step : llvm::reverse(steps))
        next = at.CreateAdd(next, llvm::emitGEPOffset(&at, layout, step));
    index->addIncoming(llvm::Constant::getNullValue(type), loop.getLoopPreheader());
    index->addIncoming(next, loop.getLoopLatch());
    at.SetInsertPoint(&header, header.getFirstInsertionPt());
    pointer.replaceAllUsesWith(at.CreateGEP(at.getInt8Ty(), first, index));
    pointer.eraseFromParent();
}

}  // namespace

llvm::PreservedAnalyses IndexPrivateArrays::run(llvm::Loop& loop, llvm::LoopAnalysisManager& /*analyses*/,
                                                llvm::LoopStandardAnalysisResults& results,
                                                llvm::LPMUpdater& /*updater*/) {
    if (loop.getLoopPreheader() == nullptr || loop.getLoopLatch() == nullptr)
        return llvm::PreservedAnalyses::all();
    bool is_changed = false;
    for (llvm::PHINode& phi : llvm::make_early_inc_range(loop.getHeader()->phis()))
        if (walks_through_private_array(phi, loop))
            if (const Steps steps = steps_of(phi, loop); !steps.empty()) {
                use_index(phi, steps, loop);
                is_changed = true;
            }
    if (!is_changed)
        return llvm::PreservedAnalyses::all();
    results.SE.forgetLoop(&loop);
    return llvm::getLoopPassPreservedAnalyses();
}

}  // namespace polder::compiler::workgroup
