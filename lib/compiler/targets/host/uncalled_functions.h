// LLVM's IPSCCP estimates the size of each function that it might specialise for constant arguments of its calls, also where there are no calls: 2% of the
// time for a small kernel. While an UncalledFunctions exists, functions without calls have an attribute that excludes them. It means nothing else for them.
//
// For one compilation; its thread alone uses it.
#pragma once

#include <llvm/ADT/SmallVector.h>

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace polder::compiler {

class UncalledFunctions {
public:
    explicit UncalledFunctions(llvm::Module& module);
    ~UncalledFunctions();
    UncalledFunctions(const UncalledFunctions&) = delete;
    UncalledFunctions& operator=(const UncalledFunctions&) = delete;

private:
    llvm::SmallVector<llvm::Function*> functions_;  // visible ones, which no pass deletes
};

}  // namespace polder::compiler
