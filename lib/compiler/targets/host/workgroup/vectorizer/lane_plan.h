// How the work-items of one loop become lanes: the loop's frame, what of it runs under masks, and whether all of it
// can. The first half of the vectorizer; nothing is changed here.
//
// Control that is the same for neighbouring work-items stays; the blocks between a divergent branch and its
// immediate post-dominator are masked, and so are loops that lanes leave at different rounds. Masked blocks lie in
// chunks between two uniform blocks.
#pragma once

#include "lane_shape.h"

#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>

namespace llvm {
class PostDominatorTree;
} // namespace llvm

namespace polder::compiler::workgroup {

using BlockSet = llvm::SmallPtrSet<llvm::BasicBlock*, 16>;

// Masked blocks between one uniform block, after which they start, and another, where all meet again.
struct MaskedChunk {
    BlockSet blocks;
    llvm::BasicBlock* join = nullptr;
};

// Loops over the work-items of one sub-group have no other form than lanes.
enum class LoopKind : uint8_t { work_items, sub_group };
// `everywhere`: all but the first and last block run under masks, so that any control flow is understood.
enum class Masking : uint8_t { where_divergent, everywhere };

struct LanePlan {
    llvm::Loop* loop = nullptr;
    llvm::LoopInfo* loops = nullptr;

    llvm::BasicBlock *header = nullptr, *latch = nullptr, *exit = nullptr, *preheader = nullptr;
    llvm::PHINode* index = nullptr;
    llvm::Instruction* next = nullptr;
    llvm::ICmpInst* compare = nullptr;
    llvm::Value* count = nullptr;
    llvm::SmallVector<llvm::BasicBlock*> blocks;  // reverse post-order
    llvm::DenseMap<const llvm::Value*, uint64_t> private_strides;
    LoopKind kind = LoopKind::work_items;

    BlockSet masked;
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> divergent;
    std::map<llvm::BasicBlock*, MaskedChunk> chunks;  // by the block that they follow

    [[nodiscard]] bool is_masked(llvm::BasicBlock* block) const { return masked.contains(block); }
};

// Why a loop has no lanes, for the user: a clause without a full stop.
struct LaneObstacle {
    std::string reason;
};

[[nodiscard]] tl::expected<LanePlan, LaneObstacle> plan_lanes(llvm::Loop& loop, llvm::LoopInfo& loops,
                                                              const llvm::PostDominatorTree& post_dominators,
                                                              LoopKind kind = LoopKind::work_items,
                                                              Masking masking = Masking::where_divergent);

// Nothing when every instruction has a form for lanes, given the shapes of the values.
[[nodiscard]] std::optional<LaneObstacle> obstacle_to_lanes(const LanePlan& plan, const LaneShapes& shapes);

// Of a type that a vector can have as its element.
[[nodiscard]] bool is_scalar(const llvm::Type* type);

} // namespace polder::compiler::workgroup
