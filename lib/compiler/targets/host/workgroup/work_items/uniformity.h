// Which values and branches of a lowered kernel are the same for all work-items of a work-group.
//
// A value is *varying* when it depends, through data or control, on a local id, an atomic operation, a call with
// side effects, or a private variable in memory. Every other value is *uniform*: all work-items that compute it between the
// same two barriers get the same value. A load from a uniform address counts as uniform, because otherwise the program
// would have a data race.
//
// Control: a phi is varying when a branch with a varying condition reaches it on two disjoint paths
// (after Karrenberg and Hack, "Improving performance of OpenCL on CPUs", and LLVM's sync dependence
// analysis), or when work-items leave a loop at different iterations and the value is used after it.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>

namespace llvm {
class Loop;
class LoopInfo;
}  // namespace llvm

namespace polder::compiler::workgroup {

class Uniformity {
public:
    Uniformity(llvm::Function& function, const llvm::LoopInfo& loops);
    // For the body of a loop over work-items: values that depend on `sources` are varying. The result of a reduction over a
    // sub-group is uniform, because the loop's lanes are one sub-group.
    Uniformity(llvm::ArrayRef<llvm::BasicBlock*> body, llvm::ArrayRef<const llvm::Value*> sources,
               const llvm::LoopInfo& loops);

    [[nodiscard]] bool is_uniform(const llvm::Value* value) const { return !varying_.contains(value); }
    // Blocks that end in a branch with a varying condition.
    [[nodiscard]] const llvm::SmallVector<llvm::BasicBlock*>& divergent_branches() const { return divergent_; }

private:
    using Paths = llvm::DenseMap<llvm::BasicBlock*, unsigned>;

    void spread(llvm::ArrayRef<const llvm::Value*> sources);
    void mark(const llvm::Value* value);
    void mark_users(const llvm::Value* value);
    void diverge(llvm::BasicBlock& block);
    [[nodiscard]] bool is_source(const llvm::Instruction& instruction) const;
    [[nodiscard]] bool varies_with(const llvm::Instruction& user, const llvm::Value* operand) const;
    static bool is_left_at_different_times(const llvm::Loop& loop, const Paths& paths);
    void mark_live_out(const llvm::Loop& loop);

    const llvm::LoopInfo& loops_;
    const bool is_of_lanes_;  // uniform: the same for all lanes of a vector; else for a work-group
    llvm::SmallVector<llvm::BasicBlock*> blocks_;  // in reverse post-order
    llvm::DenseMap<const llvm::BasicBlock*, unsigned> order_;
    llvm::DenseSet<const llvm::Value*> varying_;
    llvm::SmallVector<const llvm::Value*> todo_;
    llvm::SmallVector<llvm::BasicBlock*> divergent_;
};

}  // namespace polder::compiler::workgroup
