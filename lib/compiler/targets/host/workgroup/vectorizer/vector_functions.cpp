// vectorize_functions() inlines the callee into the loop over lanes that call_for_lanes() has made, and makes its iterations lanes, like the work-items of
// a sub-group. What the callee calls, in turn, becomes such a function.
#include "vector_functions.h"

#include "targets/host/workgroup/frame/inliner.h"
#include "targets/host/workgroup/frame/simplify.h"
#include "targets/host/workgroup/vectorizer/code/lane_calls.h"
#include "targets/host/workgroup/vectorizer/code/values_in_memory.h"
#include "targets/host/workgroup/vectorizer/estimates/call_costs.h"
#include "vectorizer.h"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace polder::compiler::workgroup {

namespace {

// Longer functions take too long to compile in lanes, as longer kernels do.
constexpr unsigned vector_instructions_max = 12000;

// Whether nothing in `function` waits for other work-items or needs an order of the lanes.
bool is_plain(const llvm::Function& function) {
    return llvm::all_of(llvm::instructions(function), [](const llvm::Instruction& instruction) {
        const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        return !instruction.isAtomic() && !instruction.isVolatile() &&
               !llvm::isa<llvm::IndirectBrInst, llvm::InvokeInst>(instruction) &&
               (call == nullptr || is_plain_call(*call));
    });
}

bool ends_unreachably(const llvm::BasicBlock& block) { return llvm::isa<llvm::UnreachableInst>(block.getTerminator()); }

bool has_plain_parameters(const llvm::Function& function) {
    const llvm::DataLayout& layout = function.getDataLayout();
    llvm::Type& result = *function.getReturnType();
    return !function.isVarArg() && (result.isVoidTy() || is_array_element(result, layout)) &&
           llvm::all_of(function.args(),
                        [&](const llvm::Argument& one) { return is_array_element(*one.getType(), layout); });
}

bool may_have_vector_form(const llvm::Function& function) {
    return has_plain_parameters(function) && is_plain(function);
}

// The defined functions that `root` reaches without a cold one, callees first. Recursive ones are left out.
llvm::SmallVector<llvm::Function*> callees_first(llvm::Function& root) {
    llvm::SmallPtrSet<llvm::Function*, 16> reached{&root};
    llvm::SmallVector<llvm::Function*> todo{&root};
    while (!todo.empty())
        for (llvm::Instruction& instruction : llvm::instructions(*todo.pop_back_val()))
            if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
                call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration() &&
                !call->getCalledFunction()->hasFnAttribute(llvm::Attribute::Cold) &&
                reached.insert(call->getCalledFunction()).second)
                todo.push_back(call->getCalledFunction());
    llvm::SmallVector<llvm::Function*> result;
    llvm::CallGraph graph(*root.getParent());
    for (auto component = llvm::scc_begin(&graph); !component.isAtEnd(); ++component)
        if (llvm::Function* const function = component->front()->getFunction();
            component->size() == 1 && !component.hasCycle() && function != nullptr && function != &root &&
            reached.contains(function))
            result.push_back(function);
    return result;
}

// Inlines what `function` calls, and simplifies it as kernels are. False when it waits for other work-items, or has an order of them.
bool become_plain(llvm::Function& function, llvm::TargetMachine* target) {
    if (!is_plain(function))
        return false;
    if (llvm::Error error = inline_callees(function)) {
        llvm::consumeError(std::move(error));
        return false;
    }
    simplify_body(function, target);
    // Before, Clang's switch behind a `break` out of a block with variables has such an end.
    return is_plain(function) && llvm::none_of(function, ends_unreachably);
}

}  // namespace

void call_long_functions(llvm::Function& kernel, llvm::TargetMachine* target) {
    constexpr unsigned long_instructions = 500;
    const auto call = [](llvm::Function& function) {
        function.addFnAttr(called_attribute);
        function.removeFnAttr(llvm::Attribute::AlwaysInline);
    };
    llvm::SmallVector<llvm::Function*> without_vector_form;
    uint64_t inlined = 0;  // instructions of these, in all places
    for (llvm::Function* const function : callees_first(kernel)) {
        if (!function->hasNUsesOrMore(2) || !become_plain(*function, target) ||
            function->getInstructionCount() < long_instructions)
            continue;
        if (has_plain_parameters(*function)) {
            call(*function);
            continue;
        }
        without_vector_form.push_back(function);
        inlined += uint64_t{function->getInstructionCount()} * function->getNumUses();
    }
    // The kernel would have no lanes.
    if (inlined > lane_instructions_of_winners_max)
        for (llvm::Function* const function : without_vector_form)
            call(*function);
}

void prepare_vector_functions(llvm::Function& kernel, unsigned register_words, llvm::TargetMachine* target) {
    for (llvm::Function* const function : callees_first(kernel))
        if (may_have_vector_form(*function) && become_plain(*function, target) &&
            function->getInstructionCount() <= vector_instructions_max)
            note_costs_of_calls(*function, register_words);
}

namespace {

// Whether `function`, which calls its callee in a loop over lanes, has become vector code.
bool vectorize(llvm::Function& function, const LaneTarget& target, Lanes wanted,
               llvm::FunctionAnalysisManager& analyses) {
    unsigned lanes = 0;
    if (function.getFnAttribute(lanes_attribute).getValueAsString().getAsInteger(10, lanes))
        return false;
    llvm::ValueToValueMapTy copies;
    llvm::Function* const made = llvm::CloneFunction(&function, copies);
    made->removeFnAttr(lanes_attribute);
    llvm::InlineFunctionInfo info;
    llvm::CallInst* const call = callee_call_in(*made);
    bool is_done = call != nullptr && llvm::InlineFunction(*call, info).isSuccess();
    if (is_done) {
        put_variables_into_registers(*made, analyses);
        const LaneTarget* const prices = wanted == Lanes::where_they_pay ? &target : nullptr;
        is_done = vectorize_one_vector(*made, {lanes, target.permutes}, analyses, prices).empty();
    }
    if (!is_done) {
        analyses.clear(*made, made->getName());
        made->eraseFromParent();
        return false;
    }
    made->takeName(&function);
    function.replaceAllUsesWith(made);
    function.eraseFromParent();
    return true;
}

}  // namespace

std::set<std::string> vectorize_functions(llvm::Module& module, const LaneTarget& target, Lanes lanes,
                                          llvm::FunctionAnalysisManager& analyses) {
    std::set<std::string> without_lanes;
    const auto next = [&]() -> llvm::Function* {
        for (llvm::Function& function : module)
            if (function.hasFnAttribute(lanes_attribute))
                return &function;
        return nullptr;
    };
    while (llvm::Function* const function = next()) {
        const llvm::CallInst* const call = callee_call_in(*function);
        const std::string name = call ? call->getCalledFunction()->getName().str() : "";
        if (!vectorize(*function, target, lanes, analyses)) {
            function->removeFnAttr(lanes_attribute);
            without_lanes.insert(name);
        }
    }
    return without_lanes;
}

}  // namespace polder::compiler::workgroup
