#include "lane_addresses.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler {
namespace {

// With four lanes, sums of neighbours in local memory took 1.1 times as long.
constexpr unsigned changing_lanes_min = 8;

// The lane's element of which an address is made: the address itself, or its only index that is no constant.
llvm::ExtractElementInst* lane_of(llvm::Value* address) {
    if (auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(address)) {
        llvm::Value* index = nullptr;
        for (llvm::Use& operand : step->indices())
            if (!llvm::isa<llvm::Constant>(operand.get())) {
                if (index != nullptr)
                    return nullptr;
                index = operand.get();
            }
        if (index == nullptr)
            return nullptr;
        if (auto* cast = llvm::dyn_cast<llvm::CastInst>(index))
            index = cast->getOperand(0);
        address = index;
    }
    auto* lane = llvm::dyn_cast<llvm::ExtractElementInst>(address);
    return lane && llvm::isa<llvm::ConstantInt>(lane->getIndexOperand()) ? lane : nullptr;
}

// Whether the store's block loads from its address before it.
bool is_change(const llvm::StoreInst& store) {
    return llvm::any_of(store.getPointerOperand()->users(), [&](const llvm::User* user) {
        const auto* load = llvm::dyn_cast<llvm::LoadInst>(user);
        return load && load->getParent() == store.getParent() && load->comesBefore(&store);
    });
}

// Before all of the instructions.
llvm::Instruction& place_before(llvm::ArrayRef<llvm::ExtractElementInst*> lanes,
                                const llvm::DominatorTree& dominators) {
    llvm::BasicBlock* common = lanes.front()->getParent();
    for (llvm::ExtractElementInst* lane : lanes)
        common = dominators.findNearestCommonDominator(common, lane->getParent());
    llvm::Instruction* place = common->getTerminator();
    for (llvm::ExtractElementInst* lane : lanes)
        if (lane->getParent() == common && lane->comesBefore(place))
            place = lane;
    return *place;
}

void take_first(llvm::MutableArrayRef<llvm::ExtractElementInst*> lanes, const llvm::DominatorTree& dominators) {
    llvm::sort(lanes, [](const auto* one, const auto* other) {
        return llvm::cast<llvm::ConstantInt>(one->getIndexOperand())->getZExtValue() <
               llvm::cast<llvm::ConstantInt>(other->getIndexOperand())->getZExtValue();
    });
    llvm::IRBuilder<> at(&place_before(lanes, dominators));
    for (llvm::ExtractElementInst* lane : lanes) {
        llvm::Type* const type = lane->getType();
        llvm::InlineAsm* const keep =
            llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=r,0", /*hasSideEffects=*/true);
        llvm::CallInst* const taken =
            at.CreateCall(keep, {at.CreateExtractElement(lane->getVectorOperand(), lane->getIndexOperand())});
        taken->setDoesNotThrow();
        lane->replaceAllUsesWith(taken);
    }
    for (llvm::ExtractElementInst* lane : lanes)
        lane->eraseFromParent();
}

}  // namespace

void take_addresses_first(llvm::Function& function) {
    llvm::MapVector<llvm::Value*, llvm::SmallSetVector<llvm::ExtractElementInst*, 16>> vectors;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction); store && is_change(*store))
            if (llvm::ExtractElementInst* lane = lane_of(store->getPointerOperand()))
                vectors[lane->getVectorOperand()].insert(lane);
    std::optional<llvm::DominatorTree> dominators;
    for (auto& [vector, found] : vectors) {
        if (found.size() < changing_lanes_min)
            continue;
        if (!dominators)
            dominators.emplace(function);
        llvm::SmallVector<llvm::ExtractElementInst*> lanes(found.begin(), found.end());
        if (!llvm::all_of(lanes, [&](const auto* lane) { return dominators->isReachableFromEntry(lane->getParent()); }))
            continue;
        take_first(lanes, *dominators);
    }
}

}  // namespace polder::compiler
