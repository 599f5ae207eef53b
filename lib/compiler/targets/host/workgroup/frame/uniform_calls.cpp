// hoist_uniform_values moves single instructions. A power or a sine has branches for rare arguments, and what stands in branches cannot be
// moved one by one after inlining, so `pow(beta, step)` was computed for each vector of work-items. Here it still is one call.
//
// A call is moved although its work-items may not reach it: then it must cost little where it is not needed. So all branches that decide about it
// must be those of a loop around it, or compare ids, as the guard `if (x >= width) return` does. Where an argument or data decides, it stays.
// Functions without branches stay too: inlined, their instructions are moved, and constants are folded in them.
#include "uniform_calls.h"

#include "machine/retarget.h"
#include "targets/host/workgroup/work_items/hoisting.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"
#include "variables.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

constexpr const char* once_attribute = "polder-once";

// Functions of the library whose results depend only on their arguments, and which branch.
class BranchingFunctions {
public:
    [[nodiscard]] bool contain(const llvm::Function& function) {
        if (function.isDeclaration() || !function.hasFnAttribute(builtin_attribute) ||
            !function.doesNotAccessMemory() || !function.willReturn() || !function.doesNotThrow())
            return false;
        const Kind kind = kind_of(function);
        return kind.branches && !kind.is_of_work_item;
    }

private:
    struct Kind {
        bool branches = false;
        bool is_of_work_item = false;
    };

    Kind kind_of(const llvm::Function& function) {
        if (function.isDeclaration() || work_item_function(function))
            return {false, work_item_function(function).has_value()};
        if (const auto found = kinds_.find(&function); found != kinds_.end())
            return found->second;
        kinds_[&function] = {true, true};  // a recursive one stays
        Kind kind{function.size() > 1, false};
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
                const llvm::Function* const callee = call->getCalledFunction();
                const Kind inner = callee ? kind_of(*callee) : Kind{true, true};
                kind = {kind.branches || inner.branches, kind.is_of_work_item || inner.is_of_work_item};
            }
        return kinds_[&function] = kind;
    }

    llvm::DenseMap<const llvm::Function*, Kind> kinds_;
};

// Collects in `chain`, operands first, what must move to `entry` before `value` can be used there. False when it cannot move.
bool collect(llvm::Value& value, const llvm::BasicBlock& entry, llvm::SmallVectorImpl<llvm::Instruction*>& chain) {
    constexpr size_t long_chain = 32;
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (!instruction || instruction->getParent() == &entry || llvm::is_contained(chain, instruction))
        return true;
    if (chain.size() >= long_chain || llvm::isa<llvm::CallBase>(instruction) || !is_movable(*instruction))
        return false;
    for (const llvm::Use& operand : instruction->operands())
        if (!collect(*operand, entry, chain))
            return false;
    chain.push_back(instruction);
    return true;
}

// Whether `value` is computed of ids, sizes, arguments and constants alone. `has_ids`: whether of ids at all.
bool is_of_ids(const llvm::Value& value, const llvm::BasicBlock& entry, bool& has_ids, unsigned depth = 0) {
    constexpr unsigned steps_max = 12;
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (!instruction || instruction->getParent() == &entry)
        return true;
    if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(instruction)) {
        const llvm::Function* const callee = call->getCalledFunction();
        const auto which = callee ? work_item_function(*callee) : std::nullopt;
        has_ids |= which == WorkItemFunction::global_id || which == WorkItemFunction::local_id ||
                   which == WorkItemFunction::global_linear_id || which == WorkItemFunction::local_linear_id;
        return which && *which <= WorkItemFunction::local_linear_id;
    }
    if (depth == steps_max || llvm::isa<llvm::PHINode>(instruction) || instruction->mayReadOrWriteMemory())
        return false;
    return llvm::all_of(instruction->operands(),
                        [&](const llvm::Use& operand) { return is_of_ids(*operand, entry, has_ids, depth + 1); });
}

class Branches {
public:
    explicit Branches(llvm::Function& function)
        : entry_(function.getEntryBlock()), dominators_(function), ends_(function), loops_(dominators_) {}

    // Whether only loops around `block` and guards of ids decide whether it runs.
    [[nodiscard]] bool let_reach(const llvm::BasicBlock& block) const {
        if (!dominators_.isReachableFromEntry(&block))
            return false;
        const llvm::BasicBlock* reached = &block;
        for (const auto* node = dominators_.getNode(&block)->getIDom(); node; node = node->getIDom()) {
            const llvm::BasicBlock* const above = node->getBlock();
            if (ends_.dominates(reached, above)) {
                reached = above;
                continue;
            }
            const llvm::Loop* const loop = loops_.getLoopFor(above);
            if (loop && loop->contains(&block) && loop->isLoopExiting(above)) {
                reached = above;
                continue;
            }
            const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(above->getTerminator());
            bool has_ids = false;
            if (!branch || !branch->isConditional() || !is_of_ids(*branch->getCondition(), entry_, has_ids) || !has_ids)
                return false;
            reached = above;
        }
        return true;
    }

private:
    const llvm::BasicBlock& entry_;
    llvm::DominatorTree dominators_;
    llvm::PostDominatorTree ends_;
    llvm::LoopInfo loops_;
};

}  // namespace

bool runs_once(const llvm::CallBase& call) { return call.hasFnAttr(once_attribute); }

void call_once(llvm::Function& function) {
    BranchingFunctions branching;
    llvm::SmallVector<llvm::CallInst*> calls;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
            call && call->getCalledFunction() && branching.contain(*call->getCalledFunction()))
            calls.push_back(call);
    if (calls.empty())
        return;
    promote_variables(function);
    const Branches branches(function);
    llvm::BasicBlock& entry = function.getEntryBlock();
    for (llvm::CallInst* const call : calls) {
        llvm::SmallVector<llvm::Instruction*> chain;
        const bool is_constant =
            llvm::all_of(call->args(), [](const llvm::Use& operand) { return llvm::isa<llvm::Constant>(*operand); });
        const auto can_move = [&](const llvm::Use& operand) { return collect(*operand, entry, chain); };
        if (is_constant || call->getParent() == &entry || !llvm::all_of(call->args(), can_move) ||
            !branches.let_reach(*call->getParent()))
            continue;
        for (llvm::Instruction* const instruction : chain)
            instruction->moveBefore(entry.getTerminator()->getIterator());
        call->moveBefore(entry.getTerminator()->getIterator());
        // Where no work-item would reach the call, an argument may be undefined.
        llvm::IRBuilder<> at(call);
        for (llvm::Use& operand : call->args())
            if (!llvm::isGuaranteedNotToBeUndefOrPoison(operand.get()))
                operand.set(at.CreateFreeze(operand.get()));
        call->setCallingConv(call->getCalledFunction()->getCallingConv());
        call->addFnAttr(llvm::Attribute::get(call->getContext(), once_attribute));
    }
}

}  // namespace polder::compiler::workgroup
