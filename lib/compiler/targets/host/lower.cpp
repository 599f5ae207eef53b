#include "lower.h"

#include "analyses.h"
#include "builtins/builtins.h"
#include "global_ids.h"
#include "machine/host.h"
#include "module/block_kernels.h"
#include "module/launch_context.h"
#include "module/named_spaces.h"
#include "module/powers.h"
#include "module/printf_lowering.h"
#include "module/program_variables.h"
#include "module/sine_pairs.h"
#include "module/unsupported_code.h"
#include "module/verified.h"
#include "targets/host/instructions/constant_loads.h"

#include <llvm/Transforms/IPO/FunctionAttrs.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace polder::compiler {
namespace {

void clean_up(llvm::Module& module) {
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);

    llvm::FunctionPassManager per_function;
    per_function.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    per_function.addPass(llvm::EarlyCSEPass());
    per_function.addPass(llvm::SimplifyCFGPass());
    // Built-ins were cleaned when the library was made.
    for (llvm::Function& function : module)
        if (!function.isDeclaration() && !function.hasFnAttribute(builtin_attribute))
            per_function.run(function, analyses.functions);
    find_global_ids(module);
    analyses.functions.clear();
    llvm::ModulePassManager passes;
    passes.addPass(llvm::createModuleToPostOrderCGSCCPassAdaptor(llvm::PostOrderFunctionAttrsPass()));
    passes.run(module, analyses.modules);
}

} // namespace

Result<void> lower_for_host(llvm::Module& module, std::string& log) {
    POLDER_ASSIGN(builtins, Builtins::for_host());
    mark_constant_loads(module);
    answer_named_spaces(module);
    retarget_to_host(module, spir64_address_spaces);
    lower_printf(module);
    name_blocks(module);
    fold_powers(module);
    pair_sines(module);
    POLDER_TRY(builtins->link_into(module));
    POLDER_TRY(check_supported(module, log));
    clean_up(module);
    return verified(module, "lowering for the host");
}

void place_program_variables(llvm::Module& module) {
    llvm::Function* const function = module.getFunction(program_variables_function);
    if (function == nullptr)
        return;
    for (llvm::User* user : llvm::make_early_inc_range(function->users())) {
        auto* const call = llvm::cast<llvm::CallInst>(user);
        llvm::IRBuilder<> builder(call);
        llvm::Value* const field = builder.CreateConstInBoundsGEP1_64(
            builder.getInt8Ty(), call_launch_context(builder, module), offsetof(LaunchContext, program_variables));
        auto* const base = builder.CreateAlignedLoad(call->getType(), field, llvm::Align(8));
        base->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module.getContext(), {}));
        call->replaceAllUsesWith(base);
        call->eraseFromParent();
    }
    function->eraseFromParent();
}

} // namespace polder::compiler
