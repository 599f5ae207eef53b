// The debug records of a kernel's variables after a cut. The records before the cut describe the last work-item of the region
// there. So after it, a variable with a single value gets a new record, and every other variable is marked as not available.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DebugProgramInstruction.h>

namespace polder::compiler::workgroup {

class DebugVariables {
public:
    // `body`: the kernel's code before regions are made of it. It must live as long as this object.
    explicit DebugVariables(llvm::ArrayRef<llvm::BasicBlock*> body);

    // Appends the records to `entry`, the first block of a region. `here` returns the value in that block that replaces a value
    // of the body, or null.
    void describe(llvm::BasicBlock& entry, llvm::function_ref<llvm::Value*(llvm::Value*)> here) const;

private:
    llvm::SmallVector<llvm::DbgVariableRecord*> variables_;  // the first record of each variable
    llvm::SmallDenseMap<llvm::DebugVariable, unsigned> records_;
};

}  // namespace polder::compiler::workgroup
