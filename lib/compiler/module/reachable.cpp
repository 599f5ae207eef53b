#include "reachable.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler {
namespace {

using FunctionSet = llvm::SetVector<llvm::Function*>;

// Adds functions that `constant` mentions.
void add_functions(llvm::Constant& constant, FunctionSet& functions) {
    if (auto* function = llvm::dyn_cast<llvm::Function>(&constant)) {
        functions.insert(function);
        return;
    }
    if (llvm::isa<llvm::GlobalVariable>(constant))
        return;
    for (llvm::Use& operand : constant.operands())
        if (auto* inner = llvm::dyn_cast<llvm::Constant>(operand.get()))
            add_functions(*inner, functions);
}

// Reads the bodies of `root` and of all it reaches.
llvm::Expected<FunctionSet> read_reachable(llvm::Function& root) {
    FunctionSet functions;
    functions.insert(&root);
    for (size_t i = 0; i < functions.size(); ++i) {
        if (llvm::Error error = functions[i]->materialize())
            return error;
        for (llvm::Instruction& instruction : llvm::instructions(functions[i]))
            for (llvm::Use& operand : instruction.operands())
                if (auto* constant = llvm::dyn_cast<llvm::Constant>(operand.get()))
                    add_functions(*constant, functions);
    }
    return functions;
}

void remove_others(llvm::Module& module, const FunctionSet& kept) {
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        if (kept.contains(&function))
            continue;
        function.deleteBody();
        function.setIsMaterializable(false);
        function.removeDeadConstantUsers();
        if (function.use_empty())
            function.eraseFromParent();
    }
    for (llvm::GlobalVariable& variable : llvm::make_early_inc_range(module.globals())) {
        variable.removeDeadConstantUsers();
        if (variable.use_empty() && !variable.getName().starts_with("llvm."))
            variable.eraseFromParent();
    }
}

} // namespace

Result<std::unique_ptr<llvm::Module>> read_kernel(std::string_view bitcode, const std::string& kernel,
                                                  llvm::LLVMContext& context) {
    auto module = read_bitcode(bitcode, context, BitcodeReading::lazy);
    if (!module)
        return fail(Status::out_of_resources, std::string{module.error().detail()});
    llvm::Function* function = (*module)->getFunction(kernel);
    if (function == nullptr)
        return fail(Status::out_of_resources, "the program's code has no kernel " + kernel);
    auto reachable = read_reachable(*function);
    if (!reachable)
        return fail(Status::out_of_resources, llvm::toString(reachable.takeError()));
    if (llvm::Error error = (*module)->materializeMetadata())
        return fail(Status::out_of_resources, llvm::toString(std::move(error)));
    remove_others(**module, *reachable);
    return module;
}

} // namespace polder::compiler
