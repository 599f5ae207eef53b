#include "fences.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler {
namespace {

using llvm::AtomicOrdering;

// Narrows or widens an OpenCL scope to one that PTX has.
llvm::SyncScope::ID ptx_scope(llvm::LLVMContext& context, llvm::SyncScope::ID scope) {
    if (scope == llvm::SyncScope::SingleThread)
        return scope;
    llvm::SmallVector<llvm::StringRef> names;
    context.getSyncScopeNames(names);
    const llvm::StringRef name = scope < names.size() ? names[scope] : llvm::StringRef();
    const bool is_work_group = name == "workgroup" || name == "subgroup" || name == "block";
    return context.getOrInsertSyncScopeID(is_work_group ? "block" : "device");
}

void fence_before(llvm::Instruction& instruction, AtomicOrdering order, llvm::SyncScope::ID scope) {
    if (llvm::isReleaseOrStronger(order))
        llvm::IRBuilder<>(&instruction)
            .CreateFence(order == AtomicOrdering::SequentiallyConsistent ? order : AtomicOrdering::AcquireRelease,
                         scope);
}

void fence_after(llvm::Instruction& instruction, AtomicOrdering order, llvm::SyncScope::ID scope) {
    if (llvm::isAcquireOrStronger(order))
        llvm::IRBuilder<>(instruction.getNextNode()).CreateFence(AtomicOrdering::AcquireRelease, scope);
}

void relax(llvm::AtomicRMWInst& update) {
    const auto scope = ptx_scope(update.getContext(), update.getSyncScopeID());
    fence_before(update, update.getOrdering(), scope);
    fence_after(update, update.getOrdering(), scope);
    update.setOrdering(AtomicOrdering::Monotonic);
    update.setSyncScopeID(scope);
}

void relax(llvm::AtomicCmpXchgInst& exchange) {
    const auto scope = ptx_scope(exchange.getContext(), exchange.getSyncScopeID());
    const AtomicOrdering order = exchange.getMergedOrdering();
    fence_before(exchange, order, scope);
    fence_after(exchange, order, scope);
    exchange.setSuccessOrdering(AtomicOrdering::Monotonic);
    exchange.setFailureOrdering(AtomicOrdering::Monotonic);
    exchange.setSyncScopeID(scope);
}

void relax(llvm::LoadInst& load) {
    const auto scope = ptx_scope(load.getContext(), load.getSyncScopeID());
    // A load has no release order, so it needs a fence before it only if it is sequentially consistent.
    if (load.getOrdering() == AtomicOrdering::SequentiallyConsistent)
        fence_before(load, load.getOrdering(), scope);
    fence_after(load, load.getOrdering(), scope);
    load.setAtomic(AtomicOrdering::Monotonic, scope);
}

void relax(llvm::StoreInst& store) {
    const auto scope = ptx_scope(store.getContext(), store.getSyncScopeID());
    fence_before(store, store.getOrdering(), scope);
    store.setAtomic(AtomicOrdering::Monotonic, scope);
}

} // namespace

void place_fences(llvm::Module& module) {
    llvm::SmallVector<llvm::Instruction*> atomics;
    for (llvm::Function& function : module)
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (instruction.isAtomic())
                atomics.push_back(&instruction);
    for (llvm::Instruction* instruction : atomics) {
        if (auto* fence = llvm::dyn_cast<llvm::FenceInst>(instruction))
            fence->setSyncScopeID(ptx_scope(module.getContext(), fence->getSyncScopeID()));
        else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(instruction))
            relax(*update);
        else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(instruction))
            relax(*exchange);
        else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction))
            relax(*load);
        else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(instruction))
            relax(*store);
    }
}

} // namespace polder::compiler
