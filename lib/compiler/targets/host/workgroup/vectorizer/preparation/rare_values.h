// Values that only rare blocks of the vector loop use: the lanes' coordinates and addresses, where a whole row of work-items was asked before the loop
// (row_ends.h). They are computed in the rare blocks, so that the loop does not compute them for rows.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/BasicBlock.h>

namespace polder::compiler::workgroup {

// Where one access asks its lanes, and where it accesses the elements of each lane. The former precedes the latter, and a row runs neither.
struct RareBlocks {
    llvm::BasicBlock *lanes = nullptr, *apart = nullptr;
};

// Moves computations into the rare blocks where nothing else uses their results; a value that several accesses use is computed in each.
// `header` to `end`: the vector loop.
void move_rare_values(llvm::ArrayRef<RareBlocks> rare, llvm::BasicBlock& header, const llvm::BasicBlock& end);

}  // namespace polder::compiler::workgroup
