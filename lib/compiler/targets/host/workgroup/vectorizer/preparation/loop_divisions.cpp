// All blocks of an innermost loop, operands before their users. What can be moved is in front of the loop then; the divisions that stay under a condition
// get a frozen operand.
#include "loop_divisions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

namespace polder::compiler::workgroup {
namespace {

bool is_unsigned_division(const llvm::Instruction& instruction) {
    return instruction.getOpcode() == llvm::Instruction::UDiv || instruction.getOpcode() == llvm::Instruction::URem;
}

// In front of the loop, where nothing is known of the divisor.
void move_out(llvm::Instruction& division, llvm::Instruction& end_of_preheader) {
    llvm::Value* const divisor = division.getOperand(1);
    const llvm::SimplifyQuery query(division.getDataLayout(), &end_of_preheader);
    division.moveBefore(end_of_preheader.getIterator());
    division.dropPoisonGeneratingFlags();
    if (llvm::isGuaranteedNotToBeUndefOrPoison(divisor, nullptr, &end_of_preheader) &&
        llvm::isKnownNonZero(divisor, query))
        return;
    llvm::IRBuilder<> builder(&division);
    division.setOperand(1, builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, builder.CreateFreeze(divisor),
                                                         llvm::ConstantInt::get(divisor->getType(), 1)));
}

// LLVM compares what its analysis of scalars says of the lanes' quotients. It says nothing of frozen numbers.
void freeze_operand(llvm::Instruction& division, const llvm::Loop& loop) {
    const unsigned changing = loop.isLoopInvariant(division.getOperand(1)) ? 0 : 1;
    llvm::IRBuilder<> builder(&division);
    division.setOperand(changing, builder.CreateFreeze(division.getOperand(changing)));
}

bool may_be_moved(const llvm::Instruction& instruction) {
    return is_unsigned_division(instruction) && !llvm::isSafeToSpeculativelyExecute(&instruction);
}

bool move_divisions_out(llvm::Loop& loop, llvm::LoopInfo& loops, llvm::DominatorTree& dominators) {
    if (llvm::none_of(loop.blocks(), [](const llvm::BasicBlock* block) { return llvm::any_of(*block, may_be_moved); }))
        return false;
    llvm::BasicBlock* preheader = loop.getLoopPreheader();
    bool changed = preheader == nullptr;
    // A block that only leads to the loop may have been joined with a branch before it.
    if (preheader == nullptr)
        preheader = llvm::InsertPreheaderForLoop(&loop, &dominators, &loops, nullptr, false);
    if (preheader == nullptr)
        return false;
    const llvm::BasicBlock* const latch = loop.getLoopLatch();
    const auto is_conditional = [&](const llvm::BasicBlock& block) {
        return latch == nullptr || !dominators.dominates(&block, latch);
    };
    // Operands before their users, also where a quotient is divided again.
    llvm::LoopBlocksRPO blocks(&loop);
    blocks.perform(&loops);
    for (llvm::BasicBlock* const block : blocks)
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block)) {
            if (!may_be_moved(instruction))
                continue;
            llvm::Instruction* const end = preheader->getTerminator();
            const bool are_same = llvm::all_of(instruction.operands(), [&](const llvm::Use& operand) {
                return loop.makeLoopInvariant(operand.get(), changed, end);
            });
            if (are_same)
                move_out(instruction, *end);
            else if (is_conditional(*block))
                freeze_operand(instruction, loop);
            changed = true;
        }
    return changed;
}

struct LoopDivisions : llvm::PassInfoMixin<LoopDivisions> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(function);
        llvm::DominatorTree& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
        bool changed = false;
        for (llvm::Loop* const loop : loops.getLoopsInPreorder())
            if (loop->isInnermost())
                changed |= move_divisions_out(*loop, loops, dominators);
        if (!changed)
            return llvm::PreservedAnalyses::all();
        llvm::PreservedAnalyses preserved;
        preserved.preserve<llvm::DominatorTreeAnalysis>();
        preserved.preserve<llvm::LoopAnalysis>();
        return preserved;
    }
    // LLVM runs this pass also where it leaves out optional passes (optnone).
    static bool isRequired() { return true; }
};

}  // namespace

void add_loop_division_pass(llvm::PassBuilder& builder) {
    builder.registerVectorizerStartEPCallback(
        [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) { passes.addPass(LoopDivisions()); });
}

}  // namespace polder::compiler::workgroup
