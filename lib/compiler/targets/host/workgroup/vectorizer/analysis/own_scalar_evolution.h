// LLVM's scalar evolution for an analysis that runs while the function changes, and so cannot use the results that a manager of analyses keeps.
#pragma once

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

class OwnScalarEvolution {
public:
    OwnScalarEvolution(llvm::Function& function, llvm::DominatorTree& dominators, llvm::LoopInfo& loops)
        : library_description_(function.getParent()->getTargetTriple()), library_(library_description_, &function),
          assumptions(function), evolution(function, library_, assumptions, dominators, loops) {}

private:
    llvm::TargetLibraryInfoImpl library_description_;
    llvm::TargetLibraryInfo library_;

public:
    llvm::AssumptionCache assumptions;
    llvm::ScalarEvolution evolution;
};

}  // namespace polder::compiler::workgroup
