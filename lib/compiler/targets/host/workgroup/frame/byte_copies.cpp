// A word has four bytes: private arrays whose lanes' copies are interleaved (vectorizer/analysis/private_variables.h) mostly have numbers of this size.
// Places that are both aligned to words may overlap: a byte that the copy reads again, after it was written, is in another word.
// The loop keeps its block. A counter of bytes, which steps by words, replaces the loop's own counters, and the condition at its end.
#include "byte_copies.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

namespace polder::compiler::workgroup {

namespace {

constexpr uint64_t word_bytes = 4;
// Shorter loops are unrolled, and vectors are made of their bytes.
constexpr uint64_t bytes_min = 64;

struct Copy {
    llvm::LoadInst* load = nullptr;
    llvm::StoreInst* store = nullptr;
};

// What the only block of `loop` copies in each iteration, if it does nothing else.
Copy copy_of(const llvm::Loop& loop) {
    Copy copy;
    if (loop.getNumBlocks() != 1 || loop.getLoopPreheader() == nullptr)
        return {};
    for (llvm::Instruction& instruction : *loop.getHeader()) {
        const auto is_outside = [&](const llvm::User* user) {
            return !loop.contains(llvm::cast<llvm::Instruction>(user));
        };
        if (llvm::any_of(instruction.users(), is_outside))
            return {};
        if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && load->isSimple() && !copy.load)
            copy.load = load;
        else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
                 store && store->isSimple() && !copy.store)
            copy.store = store;
        else if (instruction.mayHaveSideEffects() || instruction.mayReadFromMemory())
            return {};
    }
    const bool is_copy = copy.load && copy.store && copy.load->getType()->isIntegerTy(8) && copy.load->hasOneUse() &&
                         copy.store->getValueOperand() == copy.load;
    return is_copy ? copy : Copy{};
}

// The first address, where each iteration accesses the next byte; else null.
const llvm::SCEV* begin_of(llvm::Value& address, const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    const auto* const places = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(&address));
    const bool is_row =
        places && places->getLoop() == &loop && places->isAffine() && places->getStepRecurrence(evolution)->isOne();
    return is_row ? places->getStart() : nullptr;
}

void copy_words(llvm::Loop& loop, const Copy& copy, llvm::Value& from, llvm::Value& to, uint64_t bytes) {
    llvm::BasicBlock& block = *loop.getHeader();
    llvm::Type* const index = llvm::Type::getInt64Ty(block.getContext());
    llvm::IRBuilder<> at(&block, block.begin());
    llvm::PHINode* const place = at.CreatePHI(index, 2, "byte");
    place->addIncoming(at.getInt64(0), loop.getLoopPreheader());
    at.SetInsertPoint(block.getTerminator());
    const auto address = [&](llvm::Value& begin) { return at.CreateInBoundsGEP(at.getInt8Ty(), &begin, place); };
    llvm::LoadInst* const word = at.CreateAlignedLoad(at.getInt32Ty(), address(from), llvm::Align(word_bytes));
    llvm::StoreInst* const stored = at.CreateAlignedStore(word, address(to), llvm::Align(word_bytes));
    word->setAAMetadata(copy.load->getAAMetadata());
    stored->setAAMetadata(copy.store->getAAMetadata());
    for (llvm::Instruction* const access :
         {static_cast<llvm::Instruction*>(word), static_cast<llvm::Instruction*>(stored)})
        access->setMetadata(llvm::LLVMContext::MD_tbaa, nullptr);  // of a byte
    llvm::Value* const next = at.CreateAdd(place, at.getInt64(word_bytes), "", true, true);
    place->addIncoming(next, &block);
    auto* const branch = llvm::cast<llvm::BranchInst>(block.getTerminator());
    llvm::Value* const before = branch->getCondition();
    const bool leaves_if_true = branch->getSuccessor(1) == &block;
    branch->setCondition(
        at.CreateICmp(leaves_if_true ? llvm::ICmpInst::ICMP_EQ : llvm::ICmpInst::ICMP_NE, next, at.getInt64(bytes)));
    copy.store->eraseFromParent();
    llvm::RecursivelyDeleteTriviallyDeadInstructions(copy.load);
    llvm::RecursivelyDeleteTriviallyDeadInstructions(before);
    llvm::DeleteDeadPHIs(&block);
}

}  // namespace

llvm::PreservedAnalyses CopyByWords::run(llvm::Loop& loop, llvm::LoopAnalysisManager& /*analyses*/,
                                         llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& /*updater*/) {
    const Copy copy = copy_of(loop);
    const uint64_t bytes = copy.load ? results.SE.getSmallConstantTripCount(&loop) : 0;
    if (bytes < bytes_min || bytes % word_bytes != 0)
        return llvm::PreservedAnalyses::all();
    const llvm::SCEV* const from = begin_of(*copy.load->getPointerOperand(), loop, results.SE);
    const llvm::SCEV* const to = begin_of(*copy.store->getPointerOperand(), loop, results.SE);
    llvm::Instruction* const before = loop.getLoopPreheader()->getTerminator();
    llvm::SCEVExpander expander(results.SE, "copy");
    if (!from || !to || !expander.isSafeToExpandAt(from, before) || !expander.isSafeToExpandAt(to, before))
        return llvm::PreservedAnalyses::all();
    const auto begin = [&](const llvm::SCEV* place) { return expander.expandCodeFor(place, nullptr, before); };
    llvm::Value *const first_from = begin(from), *const first_to = begin(to);
    const auto is_aligned = [&](llvm::Value* address) {
        return llvm::getOrEnforceKnownAlignment(address, llvm::Align(word_bytes), before->getDataLayout(), before,
                                                &results.AC, &results.DT) >= word_bytes;
    };
    if (is_aligned(first_from) && is_aligned(first_to))
        copy_words(loop, copy, *first_from, *first_to, bytes);
    results.SE.forgetLoop(&loop);
    return llvm::getLoopPassPreservedAnalyses();
}

}  // namespace polder::compiler::workgroup
