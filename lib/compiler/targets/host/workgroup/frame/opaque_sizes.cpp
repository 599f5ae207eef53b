#include "opaque_sizes.h"

#include "abi.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler::workgroup {

namespace {

// A word that the launch sets, or the number of the group.
bool is_launch_word(const llvm::Value* value) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(value);
    const auto* object =
        load ? llvm::dyn_cast<llvm::Argument>(llvm::getUnderlyingObject(load->getPointerOperand())) : nullptr;
    return object != nullptr && (object->getArgNo() == abi::context || object->getArgNo() == abi::group_id);
}

bool is_of_group(const llvm::Instruction& value) {
    if (!value.getType()->isIntegerTy(64))
        return false;
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&value))
        return call->getIntrinsicID() == llvm::Intrinsic::umin && llvm::any_of(call->args(), is_launch_word);
    return value.getOpcode() == llvm::Instruction::Mul && llvm::all_of(value.operands(), is_launch_word);
}

void hide(llvm::Instruction& value) {
    llvm::Type* const type = value.getType();
    llvm::IRBuilder<> after(value.getNextNode());
    llvm::CallInst* const hidden = after.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=r,0", false), {&value});
    hidden->setDoesNotAccessMemory();
    hidden->setDoesNotThrow();
    hidden->addFnAttr(llvm::Attribute::WillReturn);
    hidden->addRetAttr(llvm::Attribute::NoUndef);  // else LLVM freezes what depends on it
    value.replaceUsesWithIf(hidden, [hidden](const llvm::Use& use) { return use.getUser() != hidden; });
}

}  // namespace

void hide_sizes(llvm::Function& function) {
    for (llvm::Instruction& value : llvm::make_early_inc_range(function.getEntryBlock()))
        if (is_of_group(value) && !value.use_empty())
            hide(value);
}

}  // namespace polder::compiler::workgroup
