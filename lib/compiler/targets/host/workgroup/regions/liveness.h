// Which instructions' values are live at the start of each block of a function.
//
// Values of the prologue (which are available everywhere), static allocas and local ids are left out. The
// data-flow analysis is the usual one over bit vectors, for the values that are used outside of their
// block.
#pragma once

#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>

namespace polder::compiler::workgroup {

class Liveness {
public:
    Liveness(llvm::Function& function, const llvm::BasicBlock& prologue);

    // The values that are live at the start of `block`, in order of definition.
    [[nodiscard]] llvm::SmallVector<llvm::Instruction*> live_in(const llvm::BasicBlock& block) const;

private:
    struct Sets {
        llvm::BitVector used;     // before being defined in the block
        llvm::BitVector defined;
        llvm::BitVector at_end;   // used by a successor's phi
        llvm::BitVector live_in;
    };

    void collect(llvm::Function& function, const llvm::BasicBlock& prologue);
    void find_uses(llvm::Function& function);
    void iterate(llvm::Function& function);

    llvm::SmallVector<llvm::Instruction*> values_;
    llvm::DenseMap<const llvm::Value*, unsigned> number_;
    llvm::DenseMap<const llvm::BasicBlock*, Sets> sets_;
};

} // namespace polder::compiler::workgroup
