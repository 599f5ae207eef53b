#include "canonical_form.h"

#include "chosen_elements.h"
#include "element_functions.h"
#include "plain_operations.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>

namespace polder::compiler::workgroup {

namespace {

// Removes the lifetime markers of private variables: each lane has its own copy for the whole function, and the markers would only
// save stack.
void forget_lifetimes(llvm::Function& function) {
    for (llvm::BasicBlock& block : function)
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(block))
            if (instruction.isLifetimeStartOrEnd())
                instruction.eraseFromParent();
}

// Copies addresses of private variables that are computed in the entry block to the places where they are used, because lanes have other
// addresses. ScalarizerPass computes those of a vector's elements right after the variable.
struct ComputeAddressesWhereUsed : llvm::PassInfoMixin<ComputeAddressesWhereUsed> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
        llvm::SmallVector<llvm::GetElementPtrInst*> addresses;
        for (llvm::Instruction& instruction : function.getEntryBlock())
            if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction))
                if (llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address)))
                    addresses.push_back(address);
        // From the last to the first: an address may be computed from an earlier one.
        for (llvm::GetElementPtrInst* address : llvm::reverse(addresses))
            copy_to_uses(*address);
        llvm::PreservedAnalyses preserved;
        preserved.preserveSet<llvm::CFGAnalyses>();
        return preserved;
    }

private:
    static void copy_to_uses(llvm::GetElementPtrInst& address) {
        for (llvm::Use& use : llvm::make_early_inc_range(address.uses())) {
            auto* user = llvm::cast<llvm::Instruction>(use.getUser());
            if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(user))
                user = phi->getIncomingBlock(use)->getTerminator();
            if (user->getParent() == address.getParent())
                continue;
            llvm::Instruction* const copy = address.clone();
            copy->insertBefore(user->getIterator());
            use.set(copy);
        }
        if (address.use_empty())
            address.eraseFromParent();
    }
};

}  // namespace

void canonicalise(llvm::Function& function, ExplicitVectors vectors, llvm::FunctionAnalysisManager& analyses) {
    forget_lifetimes(function);
    if (vectors == ExplicitVectors::split)
        call_for_each_element(function);
    // Such as the comparison of all elements: a cast of a vector of bits.
    make_casts_plain(function, [&](const llvm::BitCastInst& cast) {
        return vectors == ExplicitVectors::split || !is_cast_lane_by_lane(cast);
    });
    llvm::FunctionPassManager passes;
    if (vectors == ExplicitVectors::split) {
        choose_by_bits(function);
        llvm::ScalarizerPassOptions options;
        options.ScalarizeLoadStore = true;
        options.ScalarizeVariableInsertExtract = true;
        passes.addPass(llvm::ScalarizerPass(options));
    }
    passes.addPass(ComputeAddressesWhereUsed());
    passes.addPass(llvm::EarlyCSEPass());
    passes.addPass(llvm::LowerSwitchPass());
    passes.addPass(llvm::LoopSimplifyPass());
    passes.addPass(llvm::LCSSAPass());
    passes.run(function, analyses);
}

}  // namespace polder::compiler::workgroup
