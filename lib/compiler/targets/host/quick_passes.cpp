#include "quick_passes.h"

#include "analyses.h"
#include "module/verified.h"
#include "targets/host/instructions/half_rounding.h"
#include "targets/host/instructions/masked_memory.h"
#include "targets/host/instructions/minimum_zeros.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace polder::compiler {

Result<void> optimize_quickly(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::PassBuilder builder(&machine);
    Analyses analyses;
    analyses.register_all(builder);
    llvm::ModulePassManager passes;
    passes.addPass(llvm::AlwaysInlinerPass());
    passes.addPass(llvm::GlobalDCEPass());
    llvm::FunctionPassManager per_function;
    per_function.addPass(llvm::EarlyCSEPass());
    per_function.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(per_function)));
    passes.run(module, analyses.modules);
    for (llvm::Function& function : module) {
        if (function.isDeclaration())
            continue;
        lower_masked_memory(function, machine.getTargetTransformInfo(function));
        ignore_order_of_zeros(function);
        round_halves_to_even(function);
    }
    return verified(module, "the passes for quick code");
}

}  // namespace polder::compiler
