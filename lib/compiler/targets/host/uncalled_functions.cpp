#include "uncalled_functions.h"

#include <llvm/IR/Module.h>

namespace polder::compiler {

UncalledFunctions::UncalledFunctions(llvm::Module& module) {
    for (llvm::Function& function : module)
        if (!function.isDeclaration() && !function.hasLocalLinkage() && function.use_empty() &&
            !function.hasFnAttribute(llvm::Attribute::NoDuplicate)) {
            function.addFnAttr(llvm::Attribute::NoDuplicate);
            functions_.push_back(&function);
        }
}

UncalledFunctions::~UncalledFunctions() {
    for (llvm::Function* const function : functions_)
        function->removeFnAttr(llvm::Attribute::NoDuplicate);
}

}  // namespace polder::compiler
