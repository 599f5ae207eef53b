// A phi of a loop's header is separated when the value on the back edge is the phi plus uniform numbers: a chain of additions,
// subtractions and address computations. Integers wrap around, so the sums can be computed in another order with the same result.
#include "common_steps.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/Utils/Local.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>

namespace polder::compiler::workgroup {

namespace {

bool is_around(const llvm::Loop& loop, const Cuts& cuts) {
    return llvm::any_of(cuts, [&](const llvm::BasicBlock* cut) { return loop.contains(cut); });
}

// The operand to which `value` adds a uniform number; null when it does something else.
llvm::Value* summand_of(llvm::Instruction& value, const Uniformity& uniformity) {
    const auto is_uniform = [&](const llvm::Use& use) { return uniformity.is_uniform(use.get()); };
    if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&value))
        return llvm::all_of(address->indices(), is_uniform) ? address->getPointerOperand() : nullptr;
    const bool is_sum = value.getOpcode() == llvm::Instruction::Add;
    if (!is_sum && value.getOpcode() != llvm::Instruction::Sub)
        return nullptr;
    if (is_uniform(value.getOperandUse(1)))
        return value.getOperand(0);
    return is_sum && is_uniform(value.getOperandUse(0)) ? value.getOperand(1) : nullptr;
}

class Advance {
public:
    Advance(llvm::PHINode& phi, const llvm::Loop& loop, const Uniformity& uniformity)
        : phi_(phi), loop_(loop), layout_(phi.getDataLayout()) {
        constexpr size_t sums_max = 64;
        llvm::Value* at = phi.getIncomingValueForBlock(loop.getLoopLatch());
        while (at != &phi) {
            auto* sum = llvm::dyn_cast<llvm::Instruction>(at);
            at = sum && loop.contains(sum) ? summand_of(*sum, uniformity) : nullptr;
            if (!at || sums_.size() == sums_max) {
                sums_.clear();
                return;
            }
            sums_.push_back(sum);
        }
        std::reverse(sums_.begin(), sums_.end());
    }

    [[nodiscard]] bool is_possible() const { return !sums_.empty(); }

    void separate() {
        llvm::Type* const type = phi_.getType()->isPointerTy() ? layout_.getIndexType(phi_.getType()) : phi_.getType();
        llvm::PHINode* const steps = llvm::PHINode::Create(type, 2, "steps", phi_.getIterator());
        steps->addIncoming(llvm::Constant::getNullValue(type), loop_.getLoopPreheader());
        record(phi_, *steps);
        llvm::Value* before = &phi_;
        for (llvm::Instruction* sum : sums_) {
            record(*sum, *advanced(*sum, *before));
            before = sum;
        }
        steps->addIncoming(steps_[before], loop_.getLoopLatch());
        for (size_t i = 0; i < separated_.size(); ++i)  // grows
            add_at_uses(*separated_[i]);
        for (llvm::Instruction* value : separated_)
            value->replaceAllUsesWith(llvm::PoisonValue::get(value->getType()));
        for (llvm::Instruction* value : separated_)
            value->eraseFromParent();
    }

private:
    [[nodiscard]] llvm::Value* start() const { return phi_.getIncomingValueForBlock(loop_.getLoopPreheader()); }

    // `value` is the start plus `steps`.
    void record(llvm::Instruction& value, llvm::Value& steps) {
        steps_[&value] = &steps;
        separated_.push_back(&value);
    }

    // The steps up to `sum`, which adds to `before`.
    llvm::Value* advanced(llvm::Instruction& sum, llvm::Value& before) {
        llvm::IRBuilder<> at(&sum);
        llvm::Value* const so_far = steps_[&before];
        if (llvm::isa<llvm::GetElementPtrInst>(sum))
            return at.CreateAdd(so_far, llvm::emitGEPOffset(&at, layout_, &sum, /*NoAssumptions=*/true));
        llvm::Value* const number = sum.getOperand(sum.getOperand(0) == &before ? 1 : 0);
        return sum.getOpcode() == llvm::Instruction::Add ? at.CreateAdd(so_far, number) : at.CreateSub(so_far, number);
    }

    // After the loop, a phi may join the start and values of the loop, for example when the loop may not run at all. Another phi then joins the
    // steps in the same way.
    bool is_separated_too(llvm::PHINode& node) {
        if (loop_.contains(&node) || node.getType() != phi_.getType())
            return false;
        const auto is_known = [&](const llvm::Use& use) { return use.get() == start() || steps_.contains(use.get()); };
        if (!llvm::all_of(node.incoming_values(), is_known))
            return false;
        llvm::Type* const type = steps_[&phi_]->getType();
        llvm::PHINode* const steps =
            llvm::PHINode::Create(type, node.getNumIncomingValues(), "steps", node.getIterator());
        for (unsigned i = 0; i < node.getNumIncomingValues(); ++i) {
            llvm::Value* const value = node.getIncomingValue(i);
            steps->addIncoming(value == start() ? llvm::Constant::getNullValue(type) : steps_[value],
                               node.getIncomingBlock(i));
        }
        record(node, *steps);
        return true;
    }

    // Each use gets a sum of its own, so that only the start and the steps live across barriers.
    void add_at_uses(llvm::Instruction& value) {
        llvm::SmallVector<llvm::Use*> uses;
        for (llvm::Use& use : value.uses())
            uses.push_back(&use);
        for (llvm::Use* use : uses) {
            auto* user = llvm::cast<llvm::Instruction>(use->getUser());
            if (use->get() != &value || steps_.contains(user))  // a phi that was changed already, or a sum
                continue;
            auto* node = llvm::dyn_cast<llvm::PHINode>(user);
            if (node && is_separated_too(*node))
                continue;
            llvm::IRBuilder<> at(node ? node->getIncomingBlock(*use)->getTerminator() : user);
            llvm::Value* const now = value.getType()->isPointerTy() ? at.CreatePtrAdd(start(), steps_[&value])
                                                                    : at.CreateAdd(start(), steps_[&value]);
            if (node)  // a predecessor that is listed several times has one value
                node->setIncomingValueForBlock(node->getIncomingBlock(*use), now);
            else
                use->set(now);
        }
    }

    llvm::PHINode& phi_;
    const llvm::Loop& loop_;
    const llvm::DataLayout& layout_;
    llvm::SmallVector<llvm::Instruction*> sums_;  // from the phi to the back edge
    llvm::DenseMap<const llvm::Value*, llvm::Value*> steps_;  // of the separated values
    llvm::SmallVector<llvm::Instruction*> separated_;
};

}  // namespace

bool has_loops_around(llvm::Function& function, const Cuts& cuts) {
    if (cuts.empty())
        return false;
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    return llvm::any_of(loops, [&](const llvm::Loop* loop) { return is_around(*loop, cuts); });
}

unsigned separate_common_steps(llvm::Function& function, const Cuts& cuts, const Uniformity& uniformity) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    unsigned separated = 0;
    for (const llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!is_around(*loop, cuts) || !loop->getLoopLatch() || !loop->getLoopPreheader())
            continue;
        for (llvm::PHINode& phi : llvm::make_early_inc_range(loop->getHeader()->phis())) {
            if (!phi.getType()->isIntOrPtrTy() || uniformity.is_uniform(&phi))
                continue;
            if (Advance advance(phi, *loop, uniformity); advance.is_possible()) {
                advance.separate();
                ++separated;
            }
        }
    }
    return separated;
}

}  // namespace polder::compiler::workgroup
