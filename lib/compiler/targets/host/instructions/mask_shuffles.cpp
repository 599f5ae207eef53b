#include "mask_shuffles.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler {
namespace {

// Logic of more comparisons than a usual condition has is left as it is.
constexpr unsigned depth_max = 4;

// Shuffles elements of one vector of bits.
bool is_mask_shuffle(const llvm::User* user) {
    const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(user);
    return shuffle != nullptr && shuffle->getType()->getScalarType()->isIntegerTy(1) &&
           llvm::isa<llvm::FixedVectorType>(shuffle->getType()) && llvm::isa<llvm::UndefValue>(shuffle->getOperand(1));
}

// Bits that can be computed again from shuffled operands: comparisons of vectors and their logic.
bool is_of_comparisons(const llvm::Value* value, unsigned depth) {
    if (const auto* const comparison = llvm::dyn_cast<llvm::CmpInst>(value))
        return comparison->getOperand(0)->getType()->getScalarType()->isSingleValueType();
    if (llvm::isa<llvm::Constant>(value))
        return true;
    const auto* const logic = llvm::dyn_cast<llvm::BinaryOperator>(value);
    return logic != nullptr && logic->isBitwiseLogicOp() && depth < depth_max &&
           llvm::all_of(logic->operands(), [&](const llvm::Use& use) { return is_of_comparisons(use, depth + 1); });
}

llvm::Value* shuffled(llvm::Value* value, llvm::ArrayRef<int> elements, llvm::IRBuilder<>& at) {
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr || !is_of_comparisons(value, 0))
        return at.CreateShuffleVector(value, elements);
    llvm::Value* const left = shuffled(instruction->getOperand(0), elements, at);
    llvm::Value* const right = shuffled(instruction->getOperand(1), elements, at);
    llvm::Value* made = nullptr;
    if (const auto* const comparison = llvm::dyn_cast<llvm::CmpInst>(instruction))
        made = at.CreateCmp(comparison->getPredicate(), left, right);
    else
        made = at.CreateBinOp(llvm::cast<llvm::BinaryOperator>(instruction)->getOpcode(), left, right);
    if (auto* const copy = llvm::dyn_cast<llvm::Instruction>(made))
        copy->copyIRFlags(instruction);
    return made;
}

}  // namespace

void shuffle_before_comparing(llvm::Function& function) {
    llvm::SmallVector<llvm::Instruction*> found;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        const bool is_condition = llvm::isa<llvm::CmpInst>(instruction) || llvm::isa<llvm::BinaryOperator>(instruction);
        if (is_condition && !instruction.use_empty() && llvm::all_of(instruction.users(), is_mask_shuffle) &&
            is_of_comparisons(&instruction, 0))
            found.push_back(&instruction);
    }
    for (llvm::Instruction* const condition : found)
        for (llvm::User* const user : llvm::make_early_inc_range(condition->users())) {
            auto* const shuffle = llvm::cast<llvm::ShuffleVectorInst>(user);
            llvm::IRBuilder<> at(shuffle);
            shuffle->replaceAllUsesWith(shuffled(condition, shuffle->getShuffleMask(), at));
            shuffle->eraseFromParent();
        }
    for (llvm::Instruction* const condition : found)
        llvm::RecursivelyDeleteTriviallyDeadInstructions(condition);
}

}  // namespace polder::compiler
