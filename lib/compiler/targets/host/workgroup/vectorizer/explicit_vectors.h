// The vectors that a program works on by itself. Lanes need them taken apart into their elements; here is when they are better
// left whole, and what is lost where they are not.
#pragma once

#include <llvm/ADT/ArrayRef.h>

namespace llvm {
class Loop;
class LoopInfo;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether the loops mostly access vectors that fill the registers by themselves.
[[nodiscard]] bool use_wide_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops);

// How many instructions less one work-item takes while its vectors are whole; blocks weigh as in lane_cost.
// `register_elements`: so many of 32 bits fit into a register.
[[nodiscard]] double saved_by_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops,
                                      unsigned register_elements);

}  // namespace polder::compiler::workgroup
