#include "copied_function.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace polder::compiler::workgroup {

CopiedFunction::CopiedFunction(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
    : analyses_(analyses) {
    llvm::ValueToValueMapTy copies;
    copy_ = llvm::CloneFunction(&function, copies);
}

CopiedFunction::~CopiedFunction() {
    analyses_.clear(*copy_, copy_->getName());
    copy_->eraseFromParent();
}

void take_body(llvm::Function& to, llvm::Function& from) {
    for (llvm::BasicBlock& block : to)
        block.dropAllReferences();
    while (!to.empty())
        to.begin()->eraseFromParent();
    to.splice(to.begin(), &from);
    for (auto [its, own] : llvm::zip(from.args(), to.args()))
        its.replaceAllUsesWith(&own);
    to.setSubprogram(from.getSubprogram());  // the instructions' debug locations refer to it
}

}  // namespace polder::compiler::workgroup
