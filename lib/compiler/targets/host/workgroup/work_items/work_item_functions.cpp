// Built-in functions are found by their mangled names in one table. The intrinsics that replace them are declarations in the module,
// made when they are first needed.
#include "work_item_functions.h"

#include "sub_group_functions.h"

#include <array>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <utility>

namespace polder::compiler::workgroup {

namespace {

using Named = std::pair<llvm::StringRef, WorkItemFunction>;

constexpr std::array named_functions = {
    Named{"_Z12get_work_dimv", WorkItemFunction::work_dim},
    Named{"_Z15get_global_sizej", WorkItemFunction::global_size},
    Named{"_Z13get_global_idj", WorkItemFunction::global_id},
    Named{"_Z14get_local_sizej", WorkItemFunction::local_size},
    Named{"_Z23get_enqueued_local_sizej", WorkItemFunction::enqueued_local_size},
    Named{"_Z12get_local_idj", WorkItemFunction::local_id},
    Named{"_Z14get_num_groupsj", WorkItemFunction::num_groups},
    Named{"_Z12get_group_idj", WorkItemFunction::group_id},
    Named{"_Z17get_global_offsetj", WorkItemFunction::global_offset},
    Named{"_Z20get_global_linear_idv", WorkItemFunction::global_linear_id},
    Named{"_Z19get_local_linear_idv", WorkItemFunction::local_linear_id},
    Named{"_Z7barrierj", WorkItemFunction::barrier},
    Named{"_polder_launch_context", WorkItemFunction::launch_context},
    Named{"_polder_local_memory", WorkItemFunction::local_memory},
    Named{"_polder_scratch_memory", WorkItemFunction::scratch_memory},
    Named{"_polder_scratch_bytes", WorkItemFunction::scratch_bytes},
    Named{"_polder_collective_slots", WorkItemFunction::collective_slots},
    Named{"_polder_sub_group_lane", WorkItemFunction::sub_group_lane},
    Named{"_polder_sub_group_number", WorkItemFunction::sub_group_number},
    Named{"_polder_sub_group_width", WorkItemFunction::sub_group_width},
};

constexpr llvm::StringLiteral local_id_prefix = "polder.local_id.";
constexpr llvm::StringLiteral barrier_name = "polder.barrier";
constexpr llvm::StringLiteral any_work_item_name = "polder.any_work_item";

const llvm::Function* callee_of(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call ? call->getCalledFunction() : nullptr;
}

}  // namespace

std::optional<WorkItemFunction> work_item_function(const llvm::Function& function) {
    // Overloads with a memory scope differ in their suffix only.
    if (function.isDeclaration() && function.getName().starts_with("_Z18work_group_barrierj"))
        return WorkItemFunction::barrier;
    for (const Named& named : named_functions)
        if (named.first == function.getName())
            return named.second;
    if (is_sub_group_operation(function))
        return WorkItemFunction::sub_group_operation;
    return std::nullopt;
}

llvm::Function* local_id_intrinsic(llvm::Module& module, unsigned dimension) {
    llvm::LLVMContext& context = module.getContext();
    const std::string name = (local_id_prefix + llvm::Twine(dimension)).str();
    if (llvm::Function* found = module.getFunction(name))
        return found;
    auto* type = llvm::FunctionType::get(llvm::Type::getInt64Ty(context), false);
    auto* intrinsic = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    intrinsic->setDoesNotAccessMemory();
    intrinsic->setDoesNotThrow();
    intrinsic->setWillReturn();
    intrinsic->setSpeculatable();
    return intrinsic;
}

llvm::Function* barrier_intrinsic(llvm::Module& module) {
    if (llvm::Function* found = module.getFunction(barrier_name))
        return found;
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), false);
    auto* intrinsic = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, barrier_name, module);
    intrinsic->setConvergent();
    intrinsic->setDoesNotThrow();
    return intrinsic;
}

bool has_local_id(const llvm::Module& module, unsigned dimension) {
    return module.getFunction((local_id_prefix + llvm::Twine(dimension)).str()) != nullptr;
}

std::optional<unsigned> local_id_dimension(const llvm::Instruction& instruction) {
    const llvm::Function* callee = callee_of(instruction);
    if (!callee || !callee->getName().starts_with(local_id_prefix))
        return std::nullopt;
    return static_cast<unsigned>(callee->getName().back() - '0');
}

bool is_barrier(const llvm::Instruction& instruction) {
    const llvm::Function* callee = callee_of(instruction);
    return callee && callee->getName() == barrier_name;
}

llvm::Function* any_work_item_intrinsic(llvm::Module& module) {
    if (llvm::Function* found = module.getFunction(any_work_item_name))
        return found;
    llvm::Type* const truth = llvm::Type::getInt1Ty(module.getContext());
    auto* type = llvm::FunctionType::get(truth, {truth}, false);
    auto* intrinsic = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, any_work_item_name, module);
    intrinsic->setDoesNotAccessMemory();
    intrinsic->setDoesNotThrow();
    intrinsic->setWillReturn();
    return intrinsic;
}

bool is_any_work_item(const llvm::Instruction& instruction) {
    const llvm::Function* callee = callee_of(instruction);
    return callee && callee->getName() == any_work_item_name;
}

void forget_any_work_item(llvm::Module& module) {
    llvm::Function* const intrinsic = module.getFunction(any_work_item_name);
    if (!intrinsic)
        return;
    for (llvm::User* user : llvm::make_early_inc_range(intrinsic->users())) {
        auto* call = llvm::cast<llvm::CallInst>(user);
        call->replaceAllUsesWith(call->getArgOperand(0));
        call->eraseFromParent();
    }
    intrinsic->eraseFromParent();
}

}  // namespace polder::compiler::workgroup
