#include "inlining.h"

#include "machine/retarget.h"

#include <algorithm>
#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler {
namespace {

// A function is inlined, so that it is vectorized with the loop around it, unless the code would become too large. A cold
// function stays a call. It is called for one lane after the other, but rarely.
constexpr unsigned inlined_instructions_max = 3000;
constexpr unsigned inlined_instructions_total_max = 60000;
constexpr unsigned inlined_anyway_instructions_max = 50;

}  // namespace

// Callees come before callers, so that the size of a function includes what is inlined into it.
uint64_t prefer_inlining(llvm::Module& module) {
    llvm::DenseMap<const llvm::Function*, uint64_t> whole_sizes;  // with all functions inlined
    uint64_t longest = 0;
    llvm::DenseMap<const llvm::Function*, uint64_t> sizes;  // including the functions that are inlined into them
    llvm::SmallVector<llvm::Function*> callees_first;
    llvm::CallGraph graph(module);
    for (auto component = llvm::scc_begin(&graph); !component.isAtEnd(); ++component)
        for (const llvm::CallGraphNode* node : *component)
            if (llvm::Function* function = node->getFunction(); function && !function->isDeclaration())
                callees_first.push_back(function);
    uint64_t total = module.getInstructionCount();
    for (llvm::Function* function : callees_first) {
        const uint64_t own = function->getInstructionCount();
        uint64_t& size = sizes[function] = own;
        uint64_t& whole_size = whole_sizes[function] = own;
        for (const llvm::Instruction& instruction : llvm::instructions(*function)) {
            const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
            const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
            if (callee && callee->hasFnAttribute(llvm::Attribute::AlwaysInline))
                size += sizes.lookup(callee);
            if (callee && !callee->hasFnAttribute(llvm::Attribute::Cold))
                whole_size = llvm::SaturatingAdd(whole_size, whole_sizes.lookup(callee));
        }
        longest = std::max(longest, whole_size);
        if (function->hasFnAttribute(kernel_attribute))
            continue;
        function->setLinkage(llvm::GlobalValue::InternalLinkage);
        if (function->hasFnAttribute(llvm::Attribute::Cold))
            continue;
        const uint64_t added = size * (std::max(function->getNumUses(), 1U) - 1);
        const bool is_too_much =
            total + added > inlined_instructions_total_max && size > inlined_anyway_instructions_max;
        if (own > inlined_instructions_max || is_too_much)
            continue;
        total += added;
        function->removeFnAttr(llvm::Attribute::NoInline);
        function->addFnAttr(llvm::Attribute::AlwaysInline);
    }
    return longest;
}

}  // namespace polder::compiler
