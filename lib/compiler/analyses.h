// The analyses that LLVM's passes use, registered with each other. Every run of passes needs them.
//
// Owned by the run; one thread.
#pragma once

#include <llvm/Passes/PassBuilder.h>

namespace polder::compiler {

struct Analyses {
    // A caller that wants its own version of an analysis registers that one before.
    void register_all(llvm::PassBuilder& builder) {
        builder.registerModuleAnalyses(modules);
        builder.registerCGSCCAnalyses(components);
        builder.registerFunctionAnalyses(functions);
        builder.registerLoopAnalyses(loops);
        builder.crossRegisterProxies(loops, functions, components, modules);
    }

    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
};

} // namespace polder::compiler
