// Copies of functions, from which one of several forms is chosen.
#pragma once

#include <llvm/IR/PassManager.h>

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler::workgroup {

// A copy of a function, beside it in the module while this object lives.
class CopiedFunction {
public:
    CopiedFunction(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
    ~CopiedFunction();
    CopiedFunction(const CopiedFunction&) = delete;
    CopiedFunction& operator=(const CopiedFunction&) = delete;
    [[nodiscard]] llvm::Function& operator*() const { return *copy_; }

private:
    llvm::FunctionAnalysisManager& analyses_;
    llvm::Function* copy_ = nullptr;
};

// Replaces the body of `to` by the body of `from`, which has none afterwards.
void take_body(llvm::Function& to, llvm::Function& from);

}  // namespace polder::compiler::workgroup
