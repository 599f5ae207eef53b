// The function for one element is the function of a vector that has this element everywhere, split: what computes the other elements is the same, or unused.
#include "element_functions.h"

#include "analyses.h"
#include "machine/retarget.h"
#include "targets/host/workgroup/vectorizer/analysis/elementwise.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace polder::compiler::workgroup {
namespace {

void split_elements(llvm::Function& function) {
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::ScalarizerPass());
    passes.addPass(llvm::EarlyCSEPass());
    passes.addPass(llvm::ADCEPass());
    passes.run(function, analyses.functions);
}

llvm::Function& element_function_of(llvm::Function& of_vectors) {
    llvm::Module& module = *of_vectors.getParent();
    const std::string name = (of_vectors.getName() + ".element").str();
    if (llvm::Function* const known = module.getFunction(name))
        return *known;
    const auto elements = llvm::cast<llvm::FixedVectorType>(of_vectors.getReturnType())->getElementCount();
    llvm::SmallVector<llvm::Type*> parameters;
    for (const llvm::Argument& argument : of_vectors.args())
        parameters.push_back(argument.getType()->getScalarType());
    auto* const type = llvm::FunctionType::get(of_vectors.getReturnType()->getScalarType(), parameters, false);
    auto* const made = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
    made->setAttributes(
        llvm::AttributeList::get(module.getContext(), llvm::AttributeList::FunctionIndex,
                                 llvm::AttrBuilder(module.getContext(), of_vectors.getAttributes().getFnAttrs())));
    llvm::IRBuilder<> at(llvm::BasicBlock::Create(module.getContext(), "", made));
    llvm::SmallVector<llvm::Value*> arguments;
    for (const auto& [argument, parameter] : llvm::zip(of_vectors.args(), made->args()))
        arguments.push_back(argument.getType()->isVectorTy() ? at.CreateVectorSplat(elements, &parameter) : &parameter);
    llvm::CallInst* const call = at.CreateCall(&of_vectors, arguments);
    at.CreateRet(at.CreateExtractElement(call, uint64_t{0}));
    llvm::InlineFunctionInfo info;
    llvm::InlineFunction(*call, info);
    split_elements(*made);
    return *made;
}

bool is_of_vectors(const llvm::Function& function) {
    return function.hasFnAttribute(llvm::Attribute::Cold) && function.hasFnAttribute(builtin_attribute) &&
           is_elementwise(function);
}

}  // namespace

void call_for_each_element(llvm::Function& function) {
    llvm::SmallVector<llvm::CallInst*> calls;
    llvm::DenseMap<const llvm::Function*, bool> are_of_vectors;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        const llvm::Function* const callee = call ? call->getCalledFunction() : nullptr;
        if (callee == nullptr)
            continue;
        const auto [known, is_new] = are_of_vectors.try_emplace(callee, false);
        if (is_new)
            known->second = is_of_vectors(*callee);
        if (known->second)
            calls.push_back(call);
    }
    for (llvm::CallInst* const call : calls) {
        llvm::Function& of_element = element_function_of(*call->getCalledFunction());
        llvm::IRBuilder<> at(call);
        llvm::Value* result = llvm::PoisonValue::get(call->getType());
        for (uint64_t i = 0; i < llvm::cast<llvm::FixedVectorType>(call->getType())->getNumElements(); ++i) {
            llvm::SmallVector<llvm::Value*> arguments;
            for (llvm::Value* const argument : call->args())
                arguments.push_back(argument->getType()->isVectorTy() ? at.CreateExtractElement(argument, i)
                                                                      : argument);
            result = at.CreateInsertElement(result, at.CreateCall(&of_element, arguments), i);
        }
        call->replaceAllUsesWith(result);
        call->eraseFromParent();
    }
}

}  // namespace polder::compiler::workgroup
