#include "local_atomics.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

namespace polder::compiler::workgroup {

namespace {

const llvm::Value* address_of(const llvm::Instruction& instruction) {
    if (const auto* operation = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
        return operation->getPointerOperand();
    const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction);
    return exchange ? exchange->getPointerOperand() : nullptr;
}

}  // namespace

void mark_local_atomics(llvm::Function& function, const llvm::Value& local_memory) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (const llvm::Value* address = address_of(instruction)) {
            llvm::SmallVector<const llvm::Value*> objects;
            llvm::getUnderlyingObjects(address, objects, nullptr, 0);
            if (llvm::all_of(objects, [&](const llvm::Value* object) { return object == &local_memory; }))
                instruction.setMetadata(local_atomic_mark, llvm::MDNode::get(function.getContext(), {}));
        }
}

void replace_local_atomics(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        if (!instruction.hasMetadata(local_atomic_mark))
            continue;
        if (auto* operation = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
            llvm::lowerAtomicRMWInst(operation);
        else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
            llvm::lowerAtomicCmpXchgInst(exchange);
    }
}

}  // namespace polder::compiler::workgroup
