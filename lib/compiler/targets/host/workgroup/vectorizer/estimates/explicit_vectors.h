// Explicit vectors: vector types in the kernel's source, such as float4. These functions estimate what becomes of them in lanes, and when it is
// better to have no lanes.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <cstdint>
#include <llvm/ADT/ArrayRef.h>

namespace llvm {
class Instruction;
class Loop;
class LoopInfo;
}  // namespace llvm

namespace polder::compiler::workgroup {

// When work-items become lanes, explicit vectors are split into their elements, which have as many lanes as the register has, or stay whole: then the
// vectors of neighbouring work-items are side by side in a register (lane_types.h).
enum class ExplicitVectors : uint8_t { split, whole };

// Whether the instruction only moves elements. It is not needed when each element is a value of its own.
[[nodiscard]] bool only_moves_elements(const llvm::Instruction& instruction);

// How many instructions a move of elements takes in lanes, for each register. An insertion takes two: the numbers are repeated, then combined.
[[nodiscard]] double moves_in_lanes(const llvm::Instruction& instruction, unsigned lanes, Permutes permutes);

// How many work-items' explicit vectors, of the size that is most frequent in the loop, fill a register; 0 when the loop has no explicit vectors.
[[nodiscard]] unsigned lanes_of_whole_vectors(const llvm::Loop& work_item_loop, const llvm::LoopInfo& loops,
                                              unsigned register_words);

// Whether most accesses in the loops are of explicit vectors with eight or more elements.
[[nodiscard]] bool use_wide_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops);

struct SavedByVectors {
    double anywhere = 0;
    double in_windows = 0;  // where loops over windows count as often as lane_cost counts them (window_loops.h)
};

// How many instructions one work-item saves when its vectors are kept. Blocks are weighted by their depth as in lane_cost.
[[nodiscard]] SavedByVectors saved_by_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops,
                                              const LaneTarget& target);

// How many instructions of one work-item are added where its vectors stay whole in lanes: a number made of a vector's bits, as `all()` and `any()` make it, is put
// together from the elements (plain_operations.h). One work-item after the other needs one instruction for it.
[[nodiscard]] double added_by_plain_casts(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops);

}  // namespace polder::compiler::workgroup
