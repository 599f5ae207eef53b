// For each block, NextCuts computes by data flow which cuts may come next. A uniform branch whose successors differ in this is
// made a cut, unless a divergent branch before it lets only some work-items reach it (is_partial). Each new cut may
// make another branch decisive, so the search repeats until nothing changes.
#include "cuts.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

using Blocks = llvm::SmallPtrSet<llvm::BasicBlock*, 16>;

// For each block the cuts, and the return, that may come next: bit i for cut i, the last bit for return.
class NextCuts {
public:
    NextCuts(llvm::Function& function, const Cuts& cuts) : cuts_(cuts), bits_(cuts.size() + 1) {
        const llvm::SmallVector<llvm::BasicBlock*> order(llvm::post_order(&function));
        for (bool changed = true; changed;) {
            changed = false;
            for (llvm::BasicBlock* block : order) {
                llvm::BitVector next(bits_);
                if (llvm::isa<llvm::ReturnInst>(block->getTerminator()))
                    next.set(bits_ - 1);
                for (llvm::BasicBlock* successor : llvm::successors(block))
                    next |= through(successor);
                llvm::BitVector& current = next_.try_emplace(block, bits_).first->second;
                if (current != next) {
                    current = next;
                    changed = true;
                }
            }
        }
    }

    // Whether the branch of `block` decides which cut comes next. A successor that reaches neither a cut nor the return (the
    // default of a switch that has all cases) does not count.
    [[nodiscard]] bool decides(llvm::BasicBlock& block) const {
        llvm::BitVector first(bits_);
        for (llvm::BasicBlock* successor : llvm::successors(&block)) {
            const llvm::BitVector next = through(successor);
            if (first.none())
                first = next;
            else if (next.any() && next != first)
                return true;
        }
        return false;
    }

private:
    [[nodiscard]] llvm::BitVector through(llvm::BasicBlock* block) const {
        const auto cut = llvm::find(cuts_, block);
        if (cut != cuts_.end()) {
            llvm::BitVector only(bits_);
            only.set(static_cast<unsigned>(cut - cuts_.begin()));
            return only;
        }
        const auto found = next_.find(block);
        return found == next_.end() ? llvm::BitVector(bits_) : found->second;
    }

    const Cuts& cuts_;
    unsigned bits_;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BitVector> next_;
};

// The blocks that are reached from `from`'s successors without passing through `barriers` or `avoided`;
// those themselves are included.
Blocks reach(llvm::BasicBlock& from, const Cuts& barriers, const llvm::BasicBlock* avoided) {
    Blocks reached;
    llvm::SmallVector<llvm::BasicBlock*> todo{&from};
    while (!todo.empty())
        for (llvm::BasicBlock* successor : llvm::successors(todo.pop_back_val()))
            if (reached.insert(successor).second && successor != avoided && !barriers.contains(successor))
                todo.push_back(successor);
    return reached;
}

// Whether only some of the work-items that will reach a barrier may arrive at `block`, because a divergent
// branch can lead the others to a barrier without passing `block`.
bool is_partial(llvm::BasicBlock& block, const Uniformity& uniformity, const Cuts& barriers) {
    return llvm::any_of(uniformity.divergent_branches(), [&](llvm::BasicBlock* branch) {
        if (!reach(*branch, barriers, nullptr).contains(&block))
            return false;
        const Blocks without = reach(*branch, barriers, &block);
        return llvm::any_of(barriers, [&](llvm::BasicBlock* barrier) { return without.contains(barrier); });
    });
}

// The blocks that become cuts next. They may all do so at once, because no divergent branch leads to two of them, A and B, on ways that avoid the
// other one. Proof: otherwise A leads to a cut (`decides`), and each way from A to a cut passes B (`is_partial`). The same holds with A and B
// exchanged. But each way to a cut passes one of them last.
llvm::SmallVector<llvm::BasicBlock*> deciding_blocks(llvm::Function& function, const Uniformity& uniformity,
                                                     const Cuts& cuts) {
    llvm::SmallVector<llvm::BasicBlock*> deciding;
    const NextCuts next(function, cuts);
    for (llvm::BasicBlock& block : llvm::drop_begin(function)) {
        const llvm::Instruction* terminator = block.getTerminator();
        if (cuts.contains(&block) || terminator->getNumSuccessors() < 2 || !uniformity.is_uniform(terminator))
            continue;
        if (next.decides(block) && !is_partial(block, uniformity, cuts))
            deciding.push_back(&block);
    }
    return deciding;
}

void give_own_block(llvm::BasicBlock& cut, llvm::BasicBlock& successor) {
    auto* between = llvm::BasicBlock::Create(cut.getContext(), "region", cut.getParent(), &successor);
    llvm::BranchInst::Create(&successor, between);
    cut.getTerminator()->replaceSuccessorWith(&successor, between);
    for (llvm::PHINode& phi : successor.phis()) {
        phi.setIncomingBlock(static_cast<unsigned>(phi.getBasicBlockIndex(&cut)), between);
        for (int other = phi.getBasicBlockIndex(&cut); other >= 0; other = phi.getBasicBlockIndex(&cut))
            phi.removeIncomingValue(static_cast<unsigned>(other), false);
    }
}

}  // namespace

Cuts split_at_barriers(llvm::Function& function) {
    llvm::SmallVector<llvm::Instruction*> barriers;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_barrier(instruction))
            barriers.push_back(&instruction);
    Cuts cuts;
    for (llvm::Instruction* barrier : barriers) {
        llvm::BasicBlock* cut = barrier->getParent()->splitBasicBlock(barrier->getIterator(), "barrier");
        cut->splitBasicBlock(std::next(barrier->getIterator()), "after.barrier");
        barrier->eraseFromParent();
        cuts.insert(cut);
    }
    return cuts;
}

void place_cuts(llvm::Function& function, const Uniformity& uniformity, Cuts& cuts) {
    // A new cut may be what a branch before it decides about.
    for (bool changed = !cuts.empty(); changed;) {
        const llvm::SmallVector<llvm::BasicBlock*> deciding = deciding_blocks(function, uniformity, cuts);
        for (llvm::BasicBlock* block : deciding)
            cuts.insert(block->splitBasicBlock(block->getTerminator()->getIterator(), "decision"));
        changed = !deciding.empty();
    }
    for (llvm::BasicBlock* cut : cuts) {
        const llvm::SmallPtrSet<llvm::BasicBlock*, 4> successors(llvm::succ_begin(cut), llvm::succ_end(cut));
        for (llvm::BasicBlock* successor : successors)
            give_own_block(*cut, *successor);
    }
}

}  // namespace polder::compiler::workgroup
