// The optimisation that evaluates constructors needs functions that are inlined and loops that are unrolled. It works on a copy of the module,
// because the program keeps its code as Clang made it; what it finds are the values that the objects have from the beginning.
#include "global_constructors.h"

#include "analyses.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/xxhash.h>
#include <llvm/Transforms/IPO/GlobalOpt.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <optional>
#include <utility>

namespace polder::compiler {
namespace {

constexpr const char* list_name = "llvm.global_ctors";

llvm::SmallVector<llvm::Function*> constructors(llvm::Module& module) {
    llvm::SmallVector<llvm::Function*> found;
    const llvm::GlobalVariable* const list = module.getGlobalVariable(list_name);
    const auto* const entries = list != nullptr ? llvm::dyn_cast<llvm::ConstantArray>(list->getInitializer()) : nullptr;
    for (unsigned i = 0; entries != nullptr && i < entries->getNumOperands(); ++i)
        if (auto* const function =
                llvm::dyn_cast<llvm::Function>(entries->getOperand(i)->getOperand(1)->stripPointerCasts()))
            found.push_back(function);
    return found;
}

// The objects end with the program, and nothing can see them then: their destructors are not called.
void forget_destructors(llvm::Module& module) {
    if (llvm::Function* const at_exit = module.getFunction("__cxa_atexit"); at_exit && at_exit->isDeclaration()) {
        for (llvm::User* const user : llvm::make_early_inc_range(at_exit->users()))
            if (auto* const call = llvm::dyn_cast<llvm::CallInst>(user)) {
                call->replaceAllUsesWith(llvm::Constant::getNullValue(call->getType()));
                call->eraseFromParent();
            }
        if (at_exit->use_empty())
            at_exit->eraseFromParent();
    }
    llvm::GlobalVariable* const handle = module.getNamedGlobal("__dso_handle");
    if (handle != nullptr && handle->isDeclaration() && handle->use_empty())
        handle->eraseFromParent();
}

void evaluate(llvm::Module& module) {
    for (llvm::GlobalVariable& variable : module.globals())
        if (variable.hasLocalLinkage())
            variable.setLinkage(llvm::GlobalValue::ExternalLinkage);  // so that it stays
    llvm::PassBuilder builder;
    Analyses analyses;
    analyses.register_all(builder);
    llvm::ModulePassManager passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
    passes.addPass(llvm::GlobalOptPass());
    passes.run(module, analyses.modules);
}

// Whether a value contains no address, so that it may move to another module.
bool has_no_address(const llvm::Constant& value) {
    return !llvm::isa<llvm::GlobalValue>(value) && llvm::all_of(value.operands(), [](const llvm::Use& operand) {
        return has_no_address(*llvm::cast<llvm::Constant>(operand.get()));
    });
}

using Values = llvm::SmallVector<std::pair<llvm::GlobalVariable*, llvm::Constant*>>;

// The values that constructors give to variables of `module`; nothing when they cannot be known.
std::optional<Values> constructed(llvm::Module& module) {
    const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    evaluate(*copy);
    if (!constructors(*copy).empty())
        return std::nullopt;
    Values values;
    for (llvm::GlobalVariable& variable : module.globals()) {
        if (!variable.hasInitializer() || variable.getName() == list_name)
            continue;
        const llvm::GlobalVariable* const same = copy->getNamedGlobal(variable.getName());
        if (same == nullptr || !same->hasInitializer() || same->getValueType() != variable.getValueType())
            return std::nullopt;
        if (same->getInitializer() == variable.getInitializer())
            continue;
        if (!has_no_address(*same->getInitializer()))
            return std::nullopt;
        values.emplace_back(&variable, const_cast<llvm::Constant*>(same->getInitializer()));
    }
    return values;
}

}  // namespace

void construct_globals(llvm::Module& module, std::string_view source) {
    const llvm::SmallVector<llvm::Function*> functions = constructors(module);
    if (functions.empty())
        return;
    forget_destructors(module);
    const std::optional<Values> values = constructed(module);
    module.getGlobalVariable(list_name)->eraseFromParent();
    if (values) {
        for (const auto& [variable, value] : *values)
            variable->setInitializer(value);
        for (llvm::Function* const function : functions)
            function->eraseFromParent();
        return;
    }
    for (llvm::Function* const function : functions) {
        function->setLinkage(llvm::GlobalValue::ExternalLinkage);
        function->setName(function->getName() + "." + llvm::utohexstr(llvm::xxh3_64bits(llvm::StringRef{source})));
    }
}

}  // namespace polder::compiler
