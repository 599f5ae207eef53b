#include "masked_order.h"

#include <algorithm>
#include <llvm/Analysis/LoopInfo.h>

namespace polder::compiler::workgroup {

llvm::Loop* child_loop(const llvm::LoopInfo& loops, const llvm::Loop* level, const llvm::BasicBlock& block) {
    llvm::Loop* inner = loops.getLoopFor(&block);
    if (inner == level)
        return nullptr;
    while (inner && inner->getParentLoop() != level)
        inner = inner->getParentLoop();
    return inner;
}

llvm::SmallVector<llvm::BasicBlock*> in_topological_order(const BlockSet& blocks, const llvm::LoopInfo& loops,
                                                          const llvm::Loop* level, llvm::BasicBlock& before) {
    llvm::SmallVector<llvm::BasicBlock*> order;
    llvm::SmallPtrSet<llvm::BasicBlock*, 16> seen;
    const auto visit = [&](auto& self, llvm::BasicBlock* block) -> void {
        if (!blocks.contains(block) || (level && block == level->getHeader()))
            return;
        const llvm::Loop* const inner = child_loop(loops, level, *block);
        llvm::BasicBlock* const unit = inner ? inner->getHeader() : block;
        if (!seen.insert(unit).second)
            return;
        llvm::SmallVector<llvm::BasicBlock*> next(llvm::successors(block));
        if (inner) {
            next.clear();
            inner->getExitBlocks(next);
        }
        for (llvm::BasicBlock* successor : next)
            self(self, successor);
        order.push_back(unit);
    };
    for (llvm::BasicBlock* entry : llvm::successors(&before))
        visit(visit, entry);
    std::reverse(order.begin(), order.end());
    return order;
}

}  // namespace polder::compiler::workgroup
