#include "unchanging_atomics.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

namespace polder::compiler::workgroup {

namespace {

bool may_change_nothing(const llvm::AtomicRMWInst& operation) {
    switch (operation.getOperation()) {
    case llvm::AtomicRMWInst::Min:
    case llvm::AtomicRMWInst::Max:
    case llvm::AtomicRMWInst::UMin:
    case llvm::AtomicRMWInst::UMax: break;
    case llvm::AtomicRMWInst::And:
    case llvm::AtomicRMWInst::Or:
        if (operation.use_empty())
            return false;  // one instruction; with a result it is a loop, as minima are
        break;
    default: return false;
    }
    return operation.getOrdering() == llvm::AtomicOrdering::Monotonic;
}

void skip_unchanging(llvm::AtomicRMWInst& operation) {
    llvm::IRBuilder<> at(&operation);
    llvm::LoadInst* const before =
        at.CreateAlignedLoad(operation.getType(), operation.getPointerOperand(), operation.getAlign(), "before");
    before->setAtomic(llvm::AtomicOrdering::Monotonic, operation.getSyncScopeID());
    before->setVolatile(operation.isVolatile());
    llvm::Value* const after =
        llvm::buildAtomicRMWValue(operation.getOperation(), at, before, operation.getValOperand());
    llvm::Value* const changes = at.CreateICmpNE(after, before);
    llvm::BasicBlock* const head = operation.getParent();
    llvm::Instruction* const end = llvm::SplitBlockAndInsertIfThen(changes, operation.getIterator(), false);
    auto* const result = llvm::PHINode::Create(operation.getType(), 2, "", operation.getIterator());
    operation.replaceAllUsesWith(result);
    operation.moveBefore(end->getIterator());
    result->addIncoming(before, head);
    result->addIncoming(&operation, end->getParent());
}

}  // namespace

void skip_unchanging_atomics(llvm::Function& function) {
    llvm::SmallVector<llvm::AtomicRMWInst*> operations;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* operation = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction);
            operation && may_change_nothing(*operation))
            operations.push_back(operation);
    for (llvm::AtomicRMWInst* operation : operations)
        skip_unchanging(*operation);
}

}  // namespace polder::compiler::workgroup
