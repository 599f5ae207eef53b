#include "opaque_sizes.h"

#include "abi.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>
#include <tuple>

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

llvm::CallInst* hidden(llvm::IRBuilder<>& at, llvm::Value& value) {
    llvm::Type* const type = value.getType();
    llvm::CallInst* const hidden =
        at.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=r,0", false), {&value});
    hidden->setDoesNotAccessMemory();
    hidden->setDoesNotThrow();
    hidden->addFnAttr(llvm::Attribute::WillReturn);
    hidden->addRetAttr(llvm::Attribute::NoUndef);  // else LLVM freezes what depends on it
    return hidden;
}

void hide(llvm::Instruction& value) {
    llvm::IRBuilder<> after(value.getNextNode());
    llvm::CallInst* const in_its_place = hidden(after, value);
    value.replaceUsesWithIf(in_its_place, [&](const llvm::Use& use) { return use.getUser() != in_its_place; });
}

// Whether a row has whole vectors, or a rest behind them: a size of the launch without its lower bits is compared with a constant, or with itself.
using Question = std::tuple<llvm::CmpInst::Predicate, llvm::Value*, llvm::Value*, llvm::Value*>;

std::optional<Question> question_of(const llvm::ICmpInst& comparison) {
    using namespace llvm::PatternMatch;
    llvm::Value *size = nullptr, *bits = nullptr, *const other = comparison.getOperand(1);
    if (!match(comparison.getOperand(0), m_And(m_Value(size), m_Value(bits))) || !llvm::isa<llvm::ConstantInt>(bits) ||
        !(other == size || llvm::isa<llvm::ConstantInt>(other)) || !size->getType()->isIntegerTy(64))
        return std::nullopt;
    // Never poison, and computed in the first block. The answer will be at its end.
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(size);
    const bool is_hidden = call != nullptr && call->isInlineAsm() && call->hasRetAttr(llvm::Attribute::NoUndef);
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(size);
    const llvm::BasicBlock* const first = &comparison.getFunction()->getEntryBlock();
    if (!(is_hidden || is_launch_word(size)) || instruction->getParent() != first || comparison.getParent() == first)
        return std::nullopt;
    return Question{comparison.getPredicate(), size, bits, other};
}

}  // namespace

void hide_repeated_questions(llvm::Function& function) {
    llvm::MapVector<Question, llvm::SmallVector<llvm::ICmpInst*>> askers;
    for (llvm::Instruction& each : llvm::instructions(function))
        if (auto* const comparison = llvm::dyn_cast<llvm::ICmpInst>(&each))
            if (const auto question = question_of(*comparison))
                askers[*question].push_back(comparison);
    llvm::IRBuilder<> at(function.getEntryBlock().getTerminator());
    for (const auto& [question, comparisons] : askers) {
        if (comparisons.size() <= askers_max)
            continue;
        const auto [how, size, bits, other] = question;
        llvm::Value* const answer = at.CreateICmp(how, at.CreateAnd(size, bits), other);
        llvm::Value* const word = hidden(at, *at.CreateZExt(answer, at.getInt64Ty()));
        for (llvm::ICmpInst* comparison : comparisons) {
            comparison->replaceAllUsesWith(llvm::IRBuilder<>(comparison).CreateIsNotNull(word));
            comparison->eraseFromParent();
        }
    }
}

void hide_sizes(llvm::Function& function) {
    for (llvm::Instruction& value : llvm::make_early_inc_range(function.getEntryBlock()))
        if (is_of_group(value) && !value.use_empty())
            hide(value);
}

}  // namespace polder::compiler::workgroup
