// No instruction gathers or scatters bytes and shorts, so the lanes access them one by one in any case. Two lanes with one place add up, as the
// work-items would; as operations on vectors one of the changes would be lost. Both are right, as the program has a race there.
#include "element_changes.h"

#include "targets/host/workgroup/work_items/local_atomics.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned least_gathered_bits = 32;

std::optional<llvm::AtomicRMWInst::BinOp> operation_of(const llvm::BinaryOperator& change, const llvm::Value& old) {
    switch (change.getOpcode()) {
    case llvm::Instruction::Add: return llvm::AtomicRMWInst::Add;
    case llvm::Instruction::And: return llvm::AtomicRMWInst::And;
    case llvm::Instruction::Or: return llvm::AtomicRMWInst::Or;
    case llvm::Instruction::Xor: return llvm::AtomicRMWInst::Xor;
    case llvm::Instruction::Sub:
        return change.getOperand(0) == &old ? std::optional(llvm::AtomicRMWInst::Sub) : std::nullopt;
    default: return std::nullopt;
    }
}

// The load of the element that the store changes, where nothing else uses it and nothing between them writes; else null.
llvm::LoadInst* load_before(const llvm::StoreInst& store) {
    const auto* const change = llvm::dyn_cast<llvm::BinaryOperator>(store.getValueOperand());
    if (change == nullptr || !change->hasOneUse() || change->getParent() != store.getParent())
        return nullptr;
    for (llvm::Value* operand : change->operands()) {
        auto* const load = llvm::dyn_cast<llvm::LoadInst>(operand);
        if (load == nullptr || !load->isSimple() || !load->hasOneUse() || load->getParent() != store.getParent() ||
            load->getPointerOperand() != store.getPointerOperand() || !operation_of(*change, *load))
            continue;
        const llvm::Instruction* next = load->getNextNode();
        while (next != &store && !next->mayHaveSideEffects())
            next = next->getNextNode();
        if (next == &store)
            return load;
    }
    return nullptr;
}

bool is_changed_apart(llvm::StoreInst& store, const LaneShapes& shapes, LaneAccesses& accesses) {
    const llvm::Type* const type = store.getValueOperand()->getType();
    return store.isSimple() && type->isIntegerTy() && type->getIntegerBitWidth() < least_gathered_bits &&
           llvm::isPowerOf2_32(type->getIntegerBitWidth()) && type->getIntegerBitWidth() >= 8 &&
           !shapes.of(store.getPointerOperand()).is_strided() && !accesses.of(store) &&
           accesses.elements_stored_with(store, LaneAccesses::Stored::some_lanes) == 1 &&
           !llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(store.getPointerOperand(), 0));
}

// Each lane's element is the one behind that of the lane before.
bool is_change_of_row(const llvm::AtomicRMWInst& change, const LaneShapes& shapes) {
    const LaneShape place = shapes.of(change.getPointerOperand());
    const llvm::TypeSize size = change.getDataLayout().getTypeStoreSize(change.getType());
    return change.hasMetadata(local_atomic_mark) && !change.getType()->isVectorTy() && place.is_strided() &&
           place.stride == static_cast<int64_t>(size.getFixedValue());
}

unsigned change_elements_in_one_piece(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses) {
    llvm::SmallVector<std::pair<llvm::StoreInst*, llvm::LoadInst*>> changes;
    for (llvm::BasicBlock* block : plan.blocks)
        for (llvm::Instruction& instruction : *block)
            if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
                store != nullptr && is_changed_apart(*store, shapes, accesses))
                if (llvm::LoadInst* const load = load_before(*store))
                    changes.emplace_back(store, load);
    for (const auto& [store, load] : changes) {
        auto* const change = llvm::cast<llvm::BinaryOperator>(store->getValueOperand());
        llvm::Value* const other = change->getOperand(change->getOperand(0) == load ? 1 : 0);
        const std::optional<llvm::AtomicRMWInst::BinOp> operation = operation_of(*change, *load);
        if (!operation)
            continue;  // never: load_before() has asked
        auto* const whole = new llvm::AtomicRMWInst(
            *operation, store->getPointerOperand(), other, std::min(load->getAlign(), store->getAlign()),
            llvm::AtomicOrdering::Monotonic, llvm::SyncScope::SingleThread, store->getIterator());
        whole->setMetadata(local_atomic_mark, llvm::MDNode::get(whole->getContext(), {}));
        whole->setDebugLoc(store->getDebugLoc());
        store->eraseFromParent();
        change->eraseFromParent();
        load->eraseFromParent();
    }
    return static_cast<unsigned>(changes.size());
}

unsigned change_rows_at_once(const LanePlan& plan, const LaneShapes& shapes) {
    llvm::SmallVector<llvm::AtomicRMWInst*> changes;
    for (llvm::BasicBlock* block : plan.blocks)
        for (llvm::Instruction& instruction : *block)
            if (auto* const change = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction);
                change != nullptr && is_change_of_row(*change, shapes))
                changes.push_back(change);
    for (llvm::AtomicRMWInst* const change : changes)
        llvm::lowerAtomicRMWInst(change);
    return static_cast<unsigned>(changes.size());
}

}  // namespace

unsigned fit_changes_to_lanes(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses) {
    const unsigned in_one_piece = change_elements_in_one_piece(plan, shapes, accesses);
    return in_one_piece + change_rows_at_once(plan, shapes);
}

}  // namespace polder::compiler::workgroup
