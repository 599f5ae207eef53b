#include "half_rounding.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>

namespace polder::compiler {

namespace {

bool rounds_to_whole(llvm::Intrinsic::ID id) {
    switch (id) {
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::nearbyint:
    case llvm::Intrinsic::rint:
    case llvm::Intrinsic::round:
    case llvm::Intrinsic::roundeven:
    case llvm::Intrinsic::trunc: return true;
    default: return false;
    }
}

// To integers.
bool is_conversion_of_halves(const llvm::Instruction& instruction) {
    return (llvm::isa<llvm::FPToSIInst>(instruction) || llvm::isa<llvm::FPToUIInst>(instruction)) &&
           instruction.getOperand(0)->getType()->getScalarType()->isHalfTy();
}

// Where a half is made a float again, the float is used. Without other uses the half goes.
void use_floats(llvm::Instruction& halves) {
    llvm::Value* const floats = halves.getOperand(0);
    for (llvm::User* const user : llvm::make_early_inc_range(halves.users()))
        if (auto* const extension = llvm::dyn_cast<llvm::FPExtInst>(user);
            extension && extension->getType() == floats->getType()) {
            extension->replaceAllUsesWith(floats);
            extension->eraseFromParent();
        }
    if (halves.use_empty())
        halves.eraseFromParent();
}

}  // namespace

void round_halves_as_floats(llvm::Function& function, const llvm::TargetMachine& machine) {
    if (!machine.getTargetTriple().isX86() || machine.getMCSubtargetInfo()->checkFeatures("+avx512fp16"))
        return;
    llvm::SmallVector<llvm::Instruction*> rounded_halves;  // exact halves of rounded floats
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        if (is_conversion_of_halves(instruction)) {
            llvm::IRBuilder<> at(&instruction);
            llvm::Value& halves = *instruction.getOperand(0);
            instruction.setOperand(0, at.CreateFPExt(&halves, halves.getType()->getWithNewType(at.getFloatTy())));
        }
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (!call || !call->getType()->getScalarType()->isHalfTy() || !rounds_to_whole(call->getIntrinsicID()))
            continue;
        llvm::IRBuilder<> at(call);
        llvm::Type* const wide = call->getType()->getWithNewType(at.getFloatTy());
        llvm::Value* const rounded =
            at.CreateUnaryIntrinsic(call->getIntrinsicID(), at.CreateFPExt(call->getArgOperand(0), wide));
        auto* const halves = new llvm::FPTruncInst(rounded, call->getType(), "", call->getIterator());
        rounded_halves.push_back(halves);
        call->replaceAllUsesWith(halves);
        call->eraseFromParent();
    }
    for (llvm::Instruction* const halves : rounded_halves)
        use_floats(*halves);
}

void round_halves_to_even(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (call && call->getIntrinsicID() == llvm::Intrinsic::rint && call->getType()->getScalarType()->isHalfTy())
            call->setCalledFunction(llvm::Intrinsic::getOrInsertDeclaration(
                function.getParent(), llvm::Intrinsic::roundeven, {call->getType()}));
    }
}

}  // namespace polder::compiler
