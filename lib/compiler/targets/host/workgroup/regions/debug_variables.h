// The debug records of a kernel's variables after a cut. Those of the region before describe the last
// work-item there: a variable that has one value all along gets it again, any other is not available.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DebugProgramInstruction.h>

namespace polder::compiler::workgroup {

class DebugVariables {
public:
    // `body`: as it is before regions are made of it; alive as long as this.
    explicit DebugVariables(llvm::ArrayRef<llvm::BasicBlock*> body);

    // Ends `entry`, the first block of a region, with what is known there. `here`: a value of the body in that block, or
    // null.
    void describe(llvm::BasicBlock& entry, llvm::function_ref<llvm::Value*(llvm::Value*)> here) const;

private:
    llvm::SmallVector<llvm::DbgVariableRecord*> variables_;  // one record of each
    llvm::SmallDenseMap<llvm::DebugVariable, unsigned> records_;
};

}  // namespace polder::compiler::workgroup
