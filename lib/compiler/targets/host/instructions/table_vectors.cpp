#include "table_vectors.h"

#include "targets/host/workgroup/vectorizer/analysis/vectors_of_table.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {
namespace {

bool look_up_one(llvm::InsertElementInst& last, Permutes permutes) {
    std::optional<workgroup::ConstantTable> table;
    const auto vector = workgroup::vector_of_table(last, [&](llvm::LoadInst& load) {
        table = workgroup::constant_table_of(load, permutes);
        return table ? &*table : nullptr;
    });
    if (!vector)
        return false;
    llvm::IRBuilder<> at(&last);
    last.replaceAllUsesWith(workgroup::look_up(at, *vector, *vector->indices));
    return true;
}

// With what only it uses.
void erase_with_operands(llvm::Instruction& first) {
    llvm::SmallSetVector<llvm::Instruction*, 16> candidates;
    candidates.insert(&first);
    while (!candidates.empty()) {
        llvm::Instruction* const one = candidates.pop_back_val();
        if (!one->use_empty() || one->mayHaveSideEffects() || llvm::isa<llvm::PHINode>(one))
            continue;
        for (llvm::Value* const operand : one->operands())
            if (auto* const before = llvm::dyn_cast<llvm::Instruction>(operand))
                candidates.insert(before);
        one->eraseFromParent();
    }
}

}  // namespace

void look_up_vectors(llvm::Function& function, const llvm::TargetMachine& machine) {
    const Permutes permutes = permutes_of(&machine);
    if (permutes == Permutes::none)
        return;
    llvm::SmallVector<llvm::InsertElementInst*> insertions;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* const insertion = llvm::dyn_cast<llvm::InsertElementInst>(&instruction))
            insertions.push_back(insertion);
    llvm::SmallVector<llvm::Instruction*> useless;
    for (llvm::InsertElementInst* const last : insertions)
        if (look_up_one(*last, permutes))
            useless.push_back(last);
    for (llvm::Instruction* const last : useless)
        erase_with_operands(*last);
}

}  // namespace polder::compiler
