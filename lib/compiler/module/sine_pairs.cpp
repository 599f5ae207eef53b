// sincos has the same error bounds as sin and cos. Only calls in one basic block become a pair, because then either both run or none.
#include "sine_pairs.h"

#include "analyses.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <string>

namespace polder::compiler {
namespace {

// sin and cos of one type.
struct Pair {
    llvm::Function *sine = nullptr, *cosine = nullptr;
};

bool is_of_one_number(const llvm::Function& function) {
    llvm::Type* const result = function.getReturnType();
    return function.isDeclaration() && function.arg_size() == 1 && result->isFPOrFPVectorTy() &&
           function.getArg(0)->getType() == result;
}

// The pairs, by their mangled parameters.
llvm::MapVector<llvm::StringRef, Pair> pairs_in(llvm::Module& module) {
    llvm::MapVector<llvm::StringRef, Pair> pairs;
    for (llvm::Function& function : module) {
        llvm::StringRef parameters = function.getName();
        if (!is_of_one_number(function))
            continue;
        if (parameters.consume_front("_Z3sin"))
            pairs[parameters].sine = &function;
        else if (parameters.consume_front("_Z3cos"))
            pairs[parameters].cosine = &function;
    }
    pairs.remove_if([](const auto& pair) { return !pair.second.sine || !pair.second.cosine; });
    return pairs;
}

using Functions = llvm::SmallSetVector<llvm::Function*, 4>;

llvm::CallInst* call_of(const llvm::Function& function, llvm::User& user) {
    auto* const call = llvm::dyn_cast<llvm::CallInst>(&user);
    return call && call->getCalledFunction() == &function ? call : nullptr;
}

Functions callers_of(llvm::Function& function) {
    Functions callers;
    for (llvm::User* user : function.users())
        if (const llvm::CallInst* call = call_of(function, *user))
            callers.insert(const_cast<llvm::Function*>(call->getFunction()));
    return callers;
}

// Simplifies the callers, so that equal angles become one value.
void simplify(const Functions& functions) {
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    passes.addPass(llvm::EarlyCSEPass());
    for (llvm::Function* function : functions)
        passes.run(*function, analyses.functions);
}

// Declares float sincos(float, private float*), or the same for another type.
llvm::FunctionCallee sincos_like(llvm::StringRef parameters, llvm::Function& sine) {
    const bool is_vector = sine.getReturnType()->isVectorTy();
    const std::string name = "_Z6sincos" + parameters.str() + "P" + (is_vector ? "S_" : parameters.str());
    llvm::LLVMContext& context = sine.getContext();
    auto* const type = llvm::FunctionType::get(sine.getReturnType(),
                                               {sine.getReturnType(), llvm::PointerType::get(context, 0)}, false);
    llvm::FunctionCallee callee = sine.getParent()->getOrInsertFunction(name, type);
    auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setCallingConv(sine.getCallingConv());
    function->setDoesNotThrow();
    return callee;
}

void replace(llvm::CallInst& sine, llvm::CallInst& cosine, llvm::FunctionCallee sincos) {
    llvm::CallInst& first = sine.comesBefore(&cosine) ? sine : cosine;
    llvm::IRBuilder<> at(&*first.getFunction()->getEntryBlock().getFirstInsertionPt());
    llvm::AllocaInst* const place = at.CreateAlloca(cosine.getType());
    at.SetInsertPoint(&first);
    llvm::CallInst* const both = at.CreateCall(sincos, {sine.getArgOperand(0), place});
    both->setCallingConv(sine.getCallingConv());
    both->setFastMathFlags(sine.getFastMathFlags() & cosine.getFastMathFlags());
    cosine.replaceAllUsesWith(at.CreateLoad(cosine.getType(), place));
    sine.replaceAllUsesWith(both);
    cosine.eraseFromParent();
    sine.eraseFromParent();
}

}  // namespace

void pair_sines(llvm::Module& module) {
    auto pairs = pairs_in(module);
    Functions with_both;
    for (auto& [parameters, pair] : pairs) {
        const Functions callers = callers_of(*pair.cosine);
        for (llvm::Function* caller : callers_of(*pair.sine))
            if (callers.contains(caller))
                with_both.insert(caller);
    }
    if (with_both.empty())
        return;
    simplify(with_both);
    for (auto& [parameters, pair] : pairs) {
        using Place = std::pair<llvm::BasicBlock*, llvm::Value*>;  // where, and of what
        llvm::MapVector<Place, llvm::CallInst*> cosines;
        for (llvm::User* user : pair.cosine->users())
            if (llvm::CallInst* call = call_of(*pair.cosine, *user))
                cosines.try_emplace({call->getParent(), call->getArgOperand(0)}, call);
        for (llvm::User* user : llvm::make_early_inc_range(pair.sine->users())) {
            llvm::CallInst* const sine = call_of(*pair.sine, *user);
            const auto found = sine ? cosines.find({sine->getParent(), sine->getArgOperand(0)}) : cosines.end();
            if (found == cosines.end())
                continue;
            llvm::CallInst* const cosine = found->second;
            cosines.erase(found);
            replace(*sine, *cosine, sincos_like(parameters, *pair.sine));
        }
    }
}

}  // namespace polder::compiler
