#include "extremum_checks.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <optional>

namespace polder::compiler {
namespace {

using llvm::AtomicRMWInst;
using llvm::CmpInst;

// How a value that changes the memory compares with what it holds. True for NaNs.
std::optional<CmpInst::Predicate> changing_predicate(AtomicRMWInst::BinOp operation) {
    switch (operation) {
    case AtomicRMWInst::Min: return CmpInst::ICMP_SLT;
    case AtomicRMWInst::Max: return CmpInst::ICMP_SGT;
    case AtomicRMWInst::UMin: return CmpInst::ICMP_ULT;
    case AtomicRMWInst::UMax: return CmpInst::ICMP_UGT;
    case AtomicRMWInst::FMin: return CmpInst::FCMP_ULT;
    case AtomicRMWInst::FMax: return CmpInst::FCMP_UGT;
    default: return std::nullopt;
    }
}

void compare_first(AtomicRMWInst& update, CmpInst::Predicate predicate) {
    llvm::IRBuilder<> at(&update);
    llvm::Type* const type = update.getType();
    llvm::LoadInst* const held =
        at.CreateAlignedLoad(type, update.getPointerOperand(), update.getAlign(), update.isVolatile());
    held->setAtomic(update.getOrdering(), update.getSyncScopeID());
    llvm::Value* const changes = at.CreateCmp(predicate, update.getValOperand(), held);
    llvm::Instruction* const end = llvm::SplitBlockAndInsertIfThen(changes, update.getIterator(), false);
    llvm::BasicBlock* const before = end->getParent()->getSinglePredecessor();
    llvm::BasicBlock* const after = end->getSuccessor(0);
    update.moveBefore(end->getIterator());
    llvm::PHINode* const old = llvm::PHINode::Create(type, 2, "", after->begin());
    update.replaceAllUsesWith(old);
    old->addIncoming(held, before);
    old->addIncoming(&update, end->getParent());
}

}  // namespace

void check_extrema(llvm::Function& function) {
    llvm::SmallVector<std::pair<AtomicRMWInst*, CmpInst::Predicate>> updates;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        auto* const update = llvm::dyn_cast<AtomicRMWInst>(&instruction);
        const auto predicate = update ? changing_predicate(update->getOperation()) : std::nullopt;
        if (predicate && !update->getType()->isVectorTy() && !llvm::isReleaseOrStronger(update->getOrdering()))
            updates.emplace_back(update, *predicate);
    }
    for (const auto& [update, predicate] : updates)
        compare_first(*update, predicate);
}

}  // namespace polder::compiler
