// Divisions by arguments are products with reciprocals already (work_items/uniform_division): the last operation of a quotient is a shift by what is computed
// from the divisor before the loop.
#include "asked_divisors.h"

#include "targets/host/workgroup/vectorizer/analysis/access_places.h"
#include "targets/host/workgroup/work_items/uniform_division.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler::workgroup {

namespace {

// The arguments from which a number outside of the loop is computed.
void add_arguments(llvm::Value& value, llvm::SmallSetVector<llvm::Value*, 2>& found) {
    constexpr size_t values_max = 32;
    llvm::SmallPtrSet<const llvm::Value*, values_max> seen;
    llvm::SmallVector<llvm::Value*> todo{&value};
    while (!todo.empty() && seen.size() < values_max) {
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(todo.pop_back_val());
        if (instruction == nullptr || !seen.insert(instruction).second)
            continue;
        if (AccessPlaces::is_argument(*instruction))
            found.insert(instruction);
        else if (!instruction->mayReadOrWriteMemory())
            todo.append(instruction->value_op_begin(), instruction->value_op_end());
    }
}

llvm::Value* argument_compared_with_one(llvm::Value& condition) {
    const auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(&condition);
    const auto* const bound =
        comparison != nullptr ? llvm::dyn_cast<llvm::ConstantInt>(comparison->getOperand(1)) : nullptr;
    if (bound == nullptr || !comparison->isEquality() || !bound->isOne())
        return nullptr;
    llvm::Value* value = root_of(comparison->getOperand(0));
    if (const auto* const frozen = llvm::dyn_cast<llvm::FreezeInst>(value))
        value = root_of(frozen->getOperand(0));
    return AccessPlaces::is_argument(*value) ? value : nullptr;
}

}  // namespace

KnownNumbers asked_divisors(const llvm::Loop& loop) {
    llvm::SmallSetVector<llvm::Value*, 2> divisors, asked;
    for (llvm::BasicBlock* block : loop.blocks())
        for (llvm::Instruction& instruction : *block) {
            if (instruction.hasMetadata(neighbours_quotient) && instruction.getOpcode() == llvm::Instruction::LShr &&
                loop.isLoopInvariant(instruction.getOperand(1)))
                add_arguments(*instruction.getOperand(1), divisors);
            llvm::Value* condition = nullptr;
            if (auto* const branch = llvm::dyn_cast<llvm::BranchInst>(&instruction))
                condition = branch->isConditional() ? branch->getCondition() : nullptr;
            else if (auto* const select = llvm::dyn_cast<llvm::SelectInst>(&instruction))
                condition = select->getCondition();
            if (llvm::Value* const argument = condition != nullptr ? argument_compared_with_one(*condition) : nullptr)
                asked.insert(argument);
        }
    KnownNumbers result;
    for (llvm::Value* divisor : divisors)
        if (asked.contains(divisor))
            result.push_back({.root = divisor, .value = 1});
    return result;
}

}  // namespace polder::compiler::workgroup
