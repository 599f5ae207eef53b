// Plans how the work-items of one loop become lanes: which blocks run under masks, and whether lanes are possible. This is the
// first half of the vectorizer; it changes no code.
//
// A branch that is the same for neighbouring work-items stays a branch. The blocks between a divergent branch and its
// immediate post-dominator run under masks; loops that lanes leave at different iterations do, too. The masked blocks between two
// uniform blocks are a chunk.
#pragma once

#include "lane_shape.h"

#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>

namespace llvm {
class PostDominatorTree;
}  // namespace llvm

namespace polder::compiler::workgroup {

using BlockSet = llvm::SmallPtrSet<llvm::BasicBlock*, 16>;

// The masked blocks that follow one uniform block, up to `join`, the next uniform block.
struct MaskedChunk {
    BlockSet blocks;
    llvm::BasicBlock* join = nullptr;
};

// A loop over the work-items of one sub-group must become lanes; a loop over work-items may stay a loop.
enum class LoopKind : uint8_t { work_items, sub_group };
// `everywhere`: all blocks but the first and the last run under masks, so that any control flow is possible.
enum class Masking : uint8_t { where_divergent, everywhere };

struct LanePlan {
    explicit LanePlan(unsigned lanes) : privates(lanes) {}

    llvm::Loop* loop = nullptr;
    llvm::LoopInfo* loops = nullptr;

    llvm::BasicBlock *header = nullptr, *latch = nullptr, *exit = nullptr, *preheader = nullptr;
    llvm::PHINode* index = nullptr;
    llvm::Instruction* next = nullptr;
    llvm::ICmpInst* compare = nullptr;
    llvm::Value* count = nullptr;
    llvm::Value* start = nullptr;  // of the index: 0, or where a vector loop with more lanes ended
    llvm::SmallVector<llvm::BasicBlock*> blocks;  // reverse post-order
    PrivateVariables privates;
    LoopKind kind = LoopKind::work_items;

    BlockSet masked;
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> divergent;
    std::map<llvm::BasicBlock*, MaskedChunk> chunks;  // by the block that they follow
    llvm::DenseMap<const llvm::BasicBlock*, llvm::BasicBlock*> joins;  // immediate post-dominators

    [[nodiscard]] bool is_masked(llvm::BasicBlock* block) const { return masked.contains(block); }
};

// Why a loop has no lanes, for the user: a clause without a full stop.
struct LaneObstacle {
    std::string reason;
};

[[nodiscard]] tl::expected<LanePlan, LaneObstacle> plan_lanes(llvm::Loop& loop, llvm::LoopInfo& loops,
                                                              const llvm::PostDominatorTree& post_dominators,
                                                              unsigned lanes, LoopKind kind = LoopKind::work_items,
                                                              Masking masking = Masking::where_divergent);

// The chunks behind those of `blocks` that are not masked. `divergent`: behind which there is one although nothing masked may follow.
[[nodiscard]] tl::expected<std::map<llvm::BasicBlock*, MaskedChunk>, LaneObstacle>
chunks_of(llvm::ArrayRef<llvm::BasicBlock*> blocks, const BlockSet& masked,
          const llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& divergent);

// Nothing when every instruction has a form for lanes, given the shapes of the values.
[[nodiscard]] std::optional<LaneObstacle> obstacle_to_lanes(const LanePlan& plan, const LaneShapes& shapes);

}  // namespace polder::compiler::workgroup
