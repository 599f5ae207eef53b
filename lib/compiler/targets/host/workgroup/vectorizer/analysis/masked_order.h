// The order in which the blocks of masked code are emitted.
#pragma once

#include "lane_plan.h"

namespace polder::compiler::workgroup {

// The loop directly inside of `level` that contains `block`; null when there is none. `level` may be null: no loop.
[[nodiscard]] llvm::Loop* child_loop(const llvm::LoopInfo& loops, const llvm::Loop* level,
                                     const llvm::BasicBlock& block);

// Those of `blocks` that follow `before`, in topological order. A loop inside of `level` counts as one block and is in the result as its header.
// Blocks that are entered only through one successor of a block, and left for its other successor, follow that block at once.
[[nodiscard]] llvm::SmallVector<llvm::BasicBlock*> in_topological_order(const BlockSet& blocks,
                                                                        const llvm::LoopInfo& loops,
                                                                        const llvm::Loop* level,
                                                                        llvm::BasicBlock& before);

}  // namespace polder::compiler::workgroup
