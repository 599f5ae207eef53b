#include "private_volatiles.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

bool is_store_of_constant(const llvm::User& user) {
    const auto* store = llvm::dyn_cast<llvm::StoreInst>(&user);
    return store && !store->isAtomic() && llvm::isa<llvm::ConstantData>(store->getValueOperand());
}

bool is_load(const llvm::User& user) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&user);
    return load && !load->isAtomic();
}

bool holds_constants(const llvm::AllocaInst& variable) {
    return llvm::all_of(variable.users(), [](const llvm::User* user) {
        return is_load(*user) || is_store_of_constant(*user) ||
               llvm::cast<llvm::Instruction>(user)->isLifetimeStartOrEnd();
    });
}

}  // namespace

void forget_volatile_constants(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        const auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
        if (!variable || !holds_constants(*variable))
            continue;
        for (llvm::User* const user : instruction.users()) {
            if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(user))
                load->setVolatile(false);
            else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(user))
                store->setVolatile(false);
        }
    }
}

bool accesses_own_variable(const llvm::Instruction& instruction) {
    const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
    return address && llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address));
}

}  // namespace polder::compiler::workgroup
