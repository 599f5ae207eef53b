// Sums, products and bits are computed modulo 2^32. A shift down needs its operand's upper half to be zero, and so does the index.
#include "narrow_indices.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

constexpr unsigned narrow_bits = 32, wide_bits = 64;
constexpr unsigned depth_max = 8;  // of the operations of an index

bool is_below(const llvm::Value& value, unsigned bits) {
    return llvm::computeKnownBits(&value, llvm::cast<llvm::Instruction>(value).getDataLayout()).countMaxActiveBits() <=
           bits;
}

bool is_extension(const llvm::Value& value) {
    return llvm::isa<llvm::ZExtInst, llvm::SExtInst>(value) &&
           llvm::cast<llvm::CastInst>(value).getSrcTy()->getScalarSizeInBits() <= narrow_bits;
}

// Whether the lower halves of the operands determine that of the result.
bool is_modular(unsigned opcode) {
    switch (opcode) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor: return true;
    default: return false;
    }
}

// Whether the lower half of `value` can be computed from narrow numbers, by operations that nothing else needs.
bool can_narrow(const llvm::Value& value, bool is_index, unsigned depth = 0) {
    if (llvm::isa<llvm::Constant>(value))
        return match(&value, m_ImmConstant());
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || depth > depth_max)
        return false;
    if (is_extension(value))
        return true;
    if (!is_index && !instruction->hasOneUse())
        return false;
    const auto of = [&](unsigned operand) { return can_narrow(*instruction->getOperand(operand), false, depth + 1); };
    if (is_modular(instruction->getOpcode()))
        return of(0) && of(1);
    const llvm::APInt* amount = nullptr;
    if (instruction->isShift() && match(instruction->getOperand(1), m_APInt(amount)) && amount->ult(narrow_bits) &&
        llvm::isa<llvm::Instruction>(instruction->getOperand(0)))
        return of(0) && (instruction->getOpcode() == llvm::Instruction::Shl ||
                         is_below(*instruction->getOperand(0), narrow_bits - 1));
    return false;
}

llvm::Value* narrowed(llvm::IRBuilder<>& builder, llvm::Value& value) {
    auto* const type = llvm::VectorType::get(builder.getInt32Ty(), llvm::cast<llvm::VectorType>(value.getType()));
    if (llvm::isa<llvm::Constant>(value))
        return builder.CreateTrunc(&value, type);
    auto& instruction = llvm::cast<llvm::Instruction>(value);
    builder.SetInsertPoint(&instruction);
    if (is_extension(value)) {
        llvm::Value* const narrow = instruction.getOperand(0);
        return llvm::isa<llvm::SExtInst>(value) ? builder.CreateSExt(narrow, type) : builder.CreateZExt(narrow, type);
    }
    llvm::Value* const left = narrowed(builder, *instruction.getOperand(0));
    llvm::Value* const right = narrowed(builder, *instruction.getOperand(1));
    builder.SetInsertPoint(&instruction);
    return builder.CreateBinOp(llvm::cast<llvm::BinaryOperator>(value).getOpcode(), left, right);
}

// The index of the gather's addresses, if it is wide and all that uses it are addresses; else null.
llvm::Instruction* wide_index_of(const llvm::Instruction& instruction) {
    const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::masked_gather)
        return nullptr;
    const auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(call->getArgOperand(0));
    if (address == nullptr || address->getNumIndices() != 1)
        return nullptr;
    auto* const index = llvm::dyn_cast<llvm::BinaryOperator>(address->getOperand(1));
    if (index == nullptr || !llvm::isa<llvm::FixedVectorType>(index->getType()) ||
        index->getType()->getScalarSizeInBits() != wide_bits ||
        !llvm::all_of(index->users(), [](const llvm::User* user) { return llvm::isa<llvm::GetElementPtrInst>(user); }))
        return nullptr;
    return index;
}

}  // namespace

unsigned narrow_gather_indices(llvm::Function& function) {
    llvm::SmallSetVector<llvm::Instruction*, 8> indices;
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (llvm::Instruction* const index = wide_index_of(instruction);
            index != nullptr && can_narrow(*index, true) && is_below(*index, narrow_bits - 1))
            indices.insert(index);
    for (llvm::Instruction* const index : indices) {
        llvm::IRBuilder<> builder(index);
        llvm::Value* const narrow = narrowed(builder, *index);
        builder.SetInsertPoint(index);
        index->replaceAllUsesWith(builder.CreateZExt(narrow, index->getType(), "", /*IsNonNeg=*/true));
        llvm::RecursivelyDeleteTriviallyDeadInstructions(index);
    }
    return static_cast<unsigned>(indices.size());
}

}  // namespace polder::compiler
