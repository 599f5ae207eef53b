// The instructions of a block that code after it may need.
#pragma once

#include "lane_shape.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/BasicBlock.h>

namespace polder::compiler::workgroup {

// Where the block is skipped because no lane is active, these instructions have another value behind it: no lane reads it.
llvm::SmallPtrSet<const llvm::Instruction*, 16> needed_behind(const llvm::BasicBlock& block, const LaneShapes& shapes);

}  // namespace polder::compiler::workgroup
