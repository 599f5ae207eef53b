// Additions in a loop, where PTX's instruction would lose a subnormal number.
//
// PTX's `atom.add.f32` takes subnormal numbers in global memory for zero, and makes zero of subnormal sums. The device reports CL_FP_DENORM,
// so a work-item whose operand could meet such numbers adds in a loop around a compare-and-exchange. Every other operand has a magnitude of at
// least 2^-101; its sums are right with the instruction:
// - A subnormal number in memory is less than half the distance from the operand to its neighbours, so the rounded sum is the operand.
// - A sum of less than 2^-126 is the difference of two numbers of at least 2^-102. Both are multiples of 2^-125, so it is zero.
#include "float_additions.h"

#include "approximations.h"

#include <cmath>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace polder::compiler {
namespace {

using llvm::AtomicRMWInst;
using llvm::Value;

constexpr unsigned local_space = 3;  // shared memory in PTX
constexpr double exact_from = 0x1p-101;

// PTX adds, but does not subtract.
void add_the_negative(AtomicRMWInst& update) {
    llvm::IRBuilder<> builder(&update);
    update.setOperation(AtomicRMWInst::FAdd);
    update.setOperand(1, builder.CreateFNeg(update.getValOperand()));
}

// The built-in functions of OpenCL C have generic pointers.
bool is_local(const AtomicRMWInst& addition) {
    return llvm::getUnderlyingObject(addition.getPointerOperand())->getType()->getPointerAddressSpace() == local_space;
}

bool may_flush(const AtomicRMWInst& addition) {
    if (!addition.getType()->isFloatTy() || is_local(addition) || flushes_denormals(*addition.getFunction()))
        return false;
    const auto* const known = llvm::dyn_cast<llvm::ConstantFP>(addition.getValOperand());
    return known == nullptr || std::abs(known->getValueAPF().convertToDouble()) < exact_from;
}

// The same change before `end`, the only instruction of its block, as a loop. Returns the value that was there before.
Value* add_in_loop(AtomicRMWInst& update, llvm::Instruction* end) {
    llvm::IRBuilder<> builder(end);
    llvm::Type* const word = builder.getInt32Ty();
    llvm::LoadInst* const first =
        builder.CreateAlignedLoad(word, update.getPointerOperand(), update.getAlign(), update.isVolatile());
    first->setAtomic(llvm::AtomicOrdering::Monotonic, update.getSyncScopeID());
    llvm::BasicBlock* const head = end->getParent();
    llvm::BasicBlock* const after = llvm::SplitBlock(head, end);
    auto* const loop = llvm::BasicBlock::Create(update.getContext(), "add", head->getParent(), after);
    head->getTerminator()->setSuccessor(0, loop);

    builder.SetInsertPoint(loop);
    llvm::PHINode* const seen = builder.CreatePHI(word, 2);
    Value* const before = builder.CreateBitCast(seen, update.getType());
    Value* const sum = builder.CreateFAdd(before, update.getValOperand());
    llvm::AtomicCmpXchgInst* const exchange = builder.CreateAtomicCmpXchg(
        update.getPointerOperand(), seen, builder.CreateBitCast(sum, word), update.getAlign(), update.getOrdering(),
        llvm::AtomicOrdering::Monotonic, update.getSyncScopeID());
    exchange->setVolatile(update.isVolatile());
    seen->addIncoming(first, head);
    seen->addIncoming(builder.CreateExtractValue(exchange, 0), loop);
    builder.CreateCondBr(builder.CreateExtractValue(exchange, 1), after, loop);
    return before;
}

void keep_subnormals(AtomicRMWInst& update) {
    llvm::IRBuilder<> builder(&update);
    Value* const magnitude = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, update.getValOperand());
    Value* const is_small = builder.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(update.getType(), exact_from));
    llvm::Instruction* small = nullptr;
    llvm::Instruction* large = nullptr;
    llvm::SplitBlockAndInsertIfThenElse(is_small, update.getIterator(), &small, &large);
    builder.SetInsertPoint(&update);
    llvm::PHINode* const before = builder.CreatePHI(update.getType(), 2);
    update.replaceAllUsesWith(before);
    update.moveBefore(large->getIterator());
    Value* const looped = add_in_loop(update, small);  // which moves `small` into another block
    before->addIncoming(looped, small->getParent());
    before->addIncoming(&update, large->getParent());
}

}  // namespace

void lower_float_additions(llvm::Module& module) {
    llvm::SmallVector<AtomicRMWInst*> additions;
    for (llvm::Function& function : module)
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (auto* const update = llvm::dyn_cast<AtomicRMWInst>(&instruction);
                update != nullptr &&
                (update->getOperation() == AtomicRMWInst::FAdd || update->getOperation() == AtomicRMWInst::FSub))
                additions.push_back(update);
    for (AtomicRMWInst* const addition : additions) {
        if (addition->getOperation() == AtomicRMWInst::FSub)
            add_the_negative(*addition);
        if (may_flush(*addition))
            keep_subnormals(*addition);
    }
}

}  // namespace polder::compiler
