// The call graph below the kernel is classified first: a function that reaches a work-item function or a __local variable must be
// inlined; others are inlined while they are small. `restrict` is dropped while inlining where work-items of a group can see each other's writes,
// because it holds for one work-item only.
#include "inliner.h"

#include "arguments.h"
#include "machine/retarget.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"
#include "uniform_calls.h"
#include "variables.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace polder::compiler::workgroup {

namespace {

// Limits on what is inlined only for speed, in instructions.
constexpr size_t optional_callee_max = 4000;
constexpr size_t optional_total_max = 60000;

llvm::Function* defined_callee(llvm::CallBase& call) {
    llvm::Function* callee = call.getCalledFunction();
    // A mismatch of calling conventions would make the call unreachable.
    if (!callee || callee->isDeclaration() || callee->isVarArg())
        return nullptr;
    return callee;
}

// `restrict` holds for one work-item; with it, LLVM would move accesses across a barrier after which
// other work-items' writes are visible. Without barriers and atomic operations none are.
void forget_restrict(llvm::Function& function) {
    for (unsigned i = 0; i < function.arg_size(); ++i)
        function.removeParamAttr(i, llvm::Attribute::NoAlias);
}

// Makes values of variables. While a parameter is copied to a variable, LLVM does not see which accesses are those of the parameter.
void use_restrict(llvm::Function& function) {
    if (llvm::none_of(function.args(), [](const llvm::Argument& argument) { return argument.hasNoAliasAttr(); }))
        return;
    promote_variables(function);
}

bool uses_local_variable(const llvm::Value& value) {
    if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&value))
        return is_local_variable(*global);
    const auto* constant = llvm::dyn_cast<llvm::ConstantExpr>(&value);
    if (!constant)
        return false;
    for (const llvm::Use& operand : constant->operands())
        if (uses_local_variable(*operand))
            return true;
    return false;
}

// The functions that `root` reaches, classified.
class CallGraph {
public:
    explicit CallGraph(llvm::Function& root) { visit(root); }

    // Whether `function` must be inlined.
    [[nodiscard]] bool depends_on_work_item(llvm::Function& function) { return dependent_.contains(&function); }
    [[nodiscard]] bool is_recursive(llvm::Function& function) {
        if (const auto found = recursive_.find(&function); found != recursive_.end())
            return found->second;
        llvm::SmallPtrSet<llvm::Function*, 16> seen;
        llvm::SmallVector<llvm::Function*> todo(callees_[&function]);
        bool reached = false;
        while (!todo.empty() && !reached) {
            llvm::Function* next = todo.pop_back_val();
            reached = next == &function;
            if (!reached && seen.insert(next).second)
                todo.append(callees_[next]);
        }
        return recursive_[&function] = reached;
    }
    // Whether any function calls an operation of sub-groups.
    [[nodiscard]] bool has_sub_groups() const { return has_sub_groups_; }
    // Whether any function has a barrier, an operation of sub-groups or an atomic or volatile access.
    [[nodiscard]] bool synchronizes() const { return synchronizes_; }
    [[nodiscard]] size_t size_of(llvm::Function& function) {
        auto [entry, fresh] = sizes_.try_emplace(&function, 0);
        if (fresh)
            entry->second = function.getInstructionCount();
        return entry->second;
    }

private:
    void visit(llvm::Function& root) {
        llvm::SmallVector<llvm::Function*> todo{&root};
        llvm::DenseMap<llvm::Function*, llvm::SmallVector<llvm::Function*>> callers;
        llvm::SmallVector<llvm::Function*> dependent;
        llvm::SmallPtrSet<llvm::Function*, 32> seen{&root};
        while (!todo.empty()) {
            llvm::Function* function = todo.pop_back_val();
            for (llvm::Instruction& instruction : llvm::instructions(*function)) {
                for (const llvm::Use& operand : instruction.operands())
                    if (uses_local_variable(*operand))
                        dependent.push_back(function);
                synchronizes_ |= instruction.isAtomic() || instruction.isVolatile();
                auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
                llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
                if (!callee)
                    continue;
                if (const auto which = work_item_function(*callee)) {
                    dependent.push_back(function);
                    has_sub_groups_ |= *which == WorkItemFunction::sub_group_operation;
                    synchronizes_ |= has_sub_groups_ || *which == WorkItemFunction::barrier;
                } else if (!callee->isDeclaration()) {
                    callees_[function].push_back(callee);
                    callers[callee].push_back(function);
                    if (seen.insert(callee).second)
                        todo.push_back(callee);
                }
            }
        }
        while (!dependent.empty()) {
            llvm::Function* function = dependent.pop_back_val();
            if (dependent_.insert(function).second)
                dependent.append(callers[function]);
        }
    }

    llvm::DenseMap<llvm::Function*, llvm::SmallVector<llvm::Function*>> callees_;
    llvm::SmallPtrSet<llvm::Function*, 32> dependent_;
    llvm::DenseMap<llvm::Function*, bool> recursive_;
    llvm::DenseMap<llvm::Function*, size_t> sizes_;
    bool has_sub_groups_ = false;
    bool synchronizes_ = false;
};

bool takes_scalars_only(const llvm::Function& function) {
    const auto is_scalar = [](const llvm::Type* type) { return !type->isVectorTy() && !type->isAggregateType(); };
    return is_scalar(function.getReturnType()) &&
           llvm::all_of(function.args(), [&](const llvm::Argument& argument) { return is_scalar(argument.getType()); });
}

}  // namespace

bool is_local_variable(const llvm::GlobalVariable& global) {
    return global.getAddressSpace() == local_address_space || global.hasAttribute("polder-local");
}

llvm::Error inline_callees(llvm::Function& function, Callees which) {
    CallGraph graph(function);
    size_t total = function.getInstructionCount();
    llvm::SmallPtrSet<llvm::CallBase*, 8> kept;
    bool changed = true;
    while (changed) {
        changed = false;
        llvm::SmallVector<llvm::CallBase*> calls;
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
                call && !kept.contains(call) && defined_callee(*call))
                calls.push_back(call);
        for (llvm::CallBase* call : calls) {
            llvm::Function* callee = defined_callee(*call);
            if (work_item_function(*callee) || runs_once(*call) ||
                (which == Callees::own && callee->hasFnAttribute(builtin_attribute)))
                continue;
            const bool needed = graph.depends_on_work_item(*callee);
            // The work-items of a sub-group have to be lanes, and lanes cannot call a function with vectors as parameters or result.
            const bool is_better_inlined = graph.has_sub_groups() && !takes_scalars_only(*callee);
            const bool recursive = graph.is_recursive(*callee);
            if (needed && recursive)
                return llvm::createStringError("recursive function '" + callee->getName() +
                                               "' reaches a barrier or a work-item function");
            const size_t size = graph.size_of(*callee);
            const bool is_rare = callee->hasFnAttribute(llvm::Attribute::Cold);
            const bool is_large = size > optional_callee_max || total + size > optional_total_max ||
                                  callee->hasFnAttribute(called_attribute);
            if (!needed && (recursive || (!is_better_inlined && (is_rare || is_large)))) {
                kept.insert(call);
                continue;
            }
            call->setCallingConv(callee->getCallingConv());
            call->removeFnAttr(llvm::Attribute::NoInline);
            if (needed && graph.synchronizes())
                forget_restrict(*callee);
            else
                use_restrict(*callee);
            llvm::InlineFunctionInfo info;
            if (!llvm::InlineFunction(*call, info).isSuccess()) {
                if (needed)
                    return llvm::createStringError("cannot inline '" + callee->getName() + "'");
                kept.insert(call);
                continue;
            }
            total += size;
            changed = true;
        }
    }
    return llvm::Error::success();
}

}  // namespace polder::compiler::workgroup
