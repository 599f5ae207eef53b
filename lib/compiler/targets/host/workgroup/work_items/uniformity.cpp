// A worklist algorithm. `spread` marks the sources as varying, then their users, until nothing changes. At a branch with a varying condition,
// `diverge` numbers the paths that leave the branch, and marks the phis where two different paths meet. A value only changes from uniform to
// varying, once. To be proved: two work-items that reach a phi on one path have the same incoming block there.
#include "uniformity.h"

#include "sub_group_functions.h"
#include "work_item_functions.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <set>

namespace polder::compiler::workgroup {

namespace {

bool is_source_of_divergence(const llvm::Instruction& instruction) {
    if (llvm::isa<llvm::AllocaInst>(instruction) || instruction.isAtomic() || instruction.isVolatile())
        return true;
    if (local_id_dimension(instruction))
        return true;
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call && !call->getType()->isVoidTy() && !call->doesNotAccessMemory();
}

// Whether all paths from `block` lead to `end`, in the same loop, without a way back to the blocks before `end` but through `block`. Then no paths join
// behind `end`, and no loop is left at different times. Otherwise each of many branches in a row would search all blocks behind it.
bool all_paths_meet(const llvm::BasicBlock& block, const llvm::BasicBlock& end,
                    const llvm::DenseMap<llvm::BasicBlock*, unsigned>& paths, const llvm::LoopInfo& loops) {
    const llvm::Loop* const loop = loops.getLoopFor(&block);
    if (&end == &block || paths.contains(&block) || loops.getLoopFor(&end) != loop)
        return false;
    return llvm::all_of(paths, [&](const auto& reached) {
        const llvm::BasicBlock* const each = reached.first;
        const auto is_before = [&](const llvm::BasicBlock* from) {
            return from == &block || (from != &end && paths.contains(from));
        };
        return each == &end ||
               ((loop == nullptr || loop->contains(each)) && llvm::all_of(llvm::predecessors(each), is_before));
    });
}

}  // namespace

Uniformity::Uniformity(llvm::Function& function, const llvm::LoopInfo& loops) : loops_(loops), is_of_lanes_(false) {
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function)) {
        order_[block] = blocks_.size();
        blocks_.push_back(block);
    }
    spread({});
}

Uniformity::Uniformity(llvm::ArrayRef<llvm::BasicBlock*> body, llvm::ArrayRef<const llvm::Value*> sources,
                       const llvm::LoopInfo& loops)
    : loops_(loops), is_of_lanes_(true), blocks_(body.begin(), body.end()) {
    for (unsigned i = 0; i < blocks_.size(); ++i)
        order_[blocks_[i]] = i;
    spread(sources);
}

void Uniformity::spread(llvm::ArrayRef<const llvm::Value*> sources) {
    for (const llvm::Value* source : sources)
        mark(source);
    for (const llvm::BasicBlock* block : blocks_)
        for (const llvm::Instruction& instruction : *block)
            if (is_source(instruction))
                mark(&instruction);
    while (!todo_.empty())
        mark_users(todo_.pop_back_val());
}

bool Uniformity::is_source(const llvm::Instruction& instruction) const {
    const auto operation = sub_group_operation(instruction);
    if (!operation)
        return is_source_of_divergence(instruction);
    return !instruction.getType()->isVoidTy() &&
           (!is_of_lanes_ || (!operation->is_same_for_all() && operation->kind != SubGroupOperation::Kind::shuffle));
}

// Whether `user` varies because `operand` does. The result of a reduction over a sub-group is the same for all lanes, and so is the result of
// a shuffle whose index is uniform.
bool Uniformity::varies_with(const llvm::Instruction& user, const llvm::Value* operand) const {
    if (is_of_lanes_ && is_any_work_item(user))
        return false;
    const auto operation = is_of_lanes_ ? sub_group_operation(user) : std::nullopt;
    if (!operation)
        return true;
    if (operation->kind == SubGroupOperation::Kind::shuffle)
        return user.getOperand(1) == operand;
    return !operation->is_same_for_all();
}

void Uniformity::mark(const llvm::Value* value) {
    if (varying_.insert(value).second)
        todo_.push_back(value);
}

void Uniformity::mark_users(const llvm::Value* value) {
    for (const llvm::User* user : value->users()) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user);
        if (!instruction || !order_.contains(instruction->getParent()))
            continue;
        if (!instruction->isTerminator()) {
            if (varies_with(*instruction, value))
                mark(instruction);
        } else if (varying_.insert(instruction).second) {
            if (instruction->getNumSuccessors() > 1)
                diverge(*const_cast<llvm::BasicBlock*>(instruction->getParent()));
        }
    }
}

// Gives each block that `block` reaches the number of the path on which it is reached. Each successor of `block` has its own number. A block
// where two paths join begins a new number.
void Uniformity::diverge(llvm::BasicBlock& block) {
    divergent_.push_back(&block);
    Paths paths;
    unsigned last_path = 0;
    llvm::DenseSet<llvm::BasicBlock*> joins;
    std::set<unsigned> todo;  // by reverse post-order, so that a block's joins are known before it is left
    const auto reach = [&](llvm::BasicBlock* target, unsigned path) {
        if (!order_.contains(target))
            return;
        unsigned& current = paths[target];
        if (current == path || joins.contains(target))
            return;
        if (current != 0) {
            joins.insert(target);
            current = ++last_path;
            for (llvm::PHINode& phi : target->phis())
                // An undefined operand counts as another value: a value of all work-items is kept once for the group, and those
                // that came without one would write over what the others have.
                if (!phi.hasConstantValue())
                    mark(&phi);
        } else {
            current = path;
        }
        if (target != &block)
            todo.insert(order_.lookup(target));
    };
    llvm::SmallPtrSet<llvm::BasicBlock*, 4> successors(llvm::succ_begin(&block), llvm::succ_end(&block));
    last_path = successors.size();
    unsigned path = 0;
    for (llvm::BasicBlock* successor : successors)
        reach(successor, ++path);
    size_t blocks_to_search = 0;
    while (!todo.empty()) {
        llvm::BasicBlock* next = blocks_[*todo.begin()];
        // Searched again only when twice as many blocks were reached, so that a long path does not take quadratic time.
        if (todo.size() == 1 && paths.size() > blocks_to_search) {
            if (all_paths_meet(block, *next, paths, loops_))
                return;
            blocks_to_search = size_t{2} * paths.size();
        }
        todo.erase(todo.begin());
        const unsigned current = paths[next];
        for (llvm::BasicBlock* successor : llvm::successors(next))
            reach(successor, current);
    }
    for (const llvm::Loop* loop = loops_.getLoopFor(&block); loop; loop = loop->getParentLoop())
        if (is_left_at_different_times(*loop, paths))
            mark_live_out(*loop);
}

// Whether the next iteration of `loop` and one of its exits, or two of its exits, are reached on different paths.
bool Uniformity::is_left_at_different_times(const llvm::Loop& loop, const Paths& paths) {
    llvm::SmallVector<llvm::BasicBlock*> targets;
    loop.getExitBlocks(targets);
    targets.push_back(loop.getHeader());
    unsigned seen = 0;
    for (llvm::BasicBlock* target : targets) {
        const unsigned path = paths.lookup(target);
        if (path == 0)
            continue;
        if (seen != 0 && path != seen)
            return true;
        seen = path;
    }
    return false;
}

void Uniformity::mark_live_out(const llvm::Loop& loop) {
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block)
            for (const llvm::User* user : instruction.users()) {
                const auto* outside = llvm::dyn_cast<llvm::Instruction>(user);
                if (outside && !loop.contains(outside))
                    mark(outside->isTerminator() ? &instruction : outside);
            }
}

}  // namespace polder::compiler::workgroup
