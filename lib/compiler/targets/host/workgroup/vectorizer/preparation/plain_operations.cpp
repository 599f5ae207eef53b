// Three rewrites: atomic exchanges and calls that return structures become calls of small functions with one result; bit casts
// between vectors and numbers become shifts and ors of the elements.
#include "plain_operations.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/work_items/local_atomics.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

llvm::Function& make_member_function(llvm::Module& module, llvm::FunctionType& type) {
    llvm::Function* const function =
        llvm::Function::Create(&type, llvm::GlobalValue::InternalLinkage, "polder.member", module);
    function->addFnAttr(llvm::Attribute::AlwaysInline);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    return *function;
}

// A function with the operands of `original` as its parameters that does the same and returns member `member`.
llvm::Function* make_member_function(llvm::Instruction& original, llvm::ArrayRef<llvm::Value*> operands,
                                     unsigned member) {
    llvm::Module& module = *original.getModule();
    llvm::SmallVector<llvm::Type*> types;
    for (const llvm::Value* operand : operands)
        types.push_back(operand->getType());
    llvm::Type* result = original.getType()->getStructElementType(member);
    llvm::FunctionType& type = *llvm::FunctionType::get(result, types, false);
    llvm::Function* const function = llvm::isa<llvm::AtomicCmpXchgInst>(original)
                                         ? &make_exchange_function(*original.getFunction(), type)
                                         : &make_member_function(module, type);
    if (!original.mayReadOrWriteMemory())
        function->setDoesNotAccessMemory();
    llvm::IRBuilder<> at(llvm::BasicBlock::Create(module.getContext(), "", function));
    llvm::Instruction* copy = original.clone();
    for (unsigned i = 0; i < operands.size(); ++i)
        copy->setOperand(i, function->getArg(i));
    forget_metadata(*copy);
    at.Insert(copy);
    at.CreateRet(at.CreateExtractValue(copy, member));
    replace_local_atomics(*function);
    return function;
}

// A strong exchange succeeds exactly when the old value is the expected one. A weak one is treated as strong, as on x86 and ARM.
void rewrite_exchange(llvm::AtomicCmpXchgInst& exchange) {
    exchange.setWeak(false);
    llvm::SmallVector<llvm::Value*> operands(exchange.operand_values());
    llvm::Function* function = make_member_function(exchange, operands, 0);
    llvm::IRBuilder<> at(&exchange);
    llvm::Value* old = at.CreateCall(function, operands);
    llvm::Value* is_done = at.CreateICmpEQ(old, exchange.getCompareOperand());
    for (llvm::User* user : llvm::make_early_inc_range(exchange.users()))
        if (auto* member = llvm::dyn_cast<llvm::ExtractValueInst>(user)) {
            member->replaceAllUsesWith(member->getIndices()[0] == 0 ? old : is_done);
            member->eraseFromParent();
        }
    // A second exchange must not remain for what uses both members, such as a phi.
    if (!exchange.use_empty()) {
        llvm::Value* const both = at.CreateInsertValue(llvm::PoisonValue::get(exchange.getType()), old, 0);
        exchange.replaceAllUsesWith(at.CreateInsertValue(both, is_done, 1));
    }
    exchange.eraseFromParent();
}

// Replaces a call without effects by one call for each member of its result that is used.
void rewrite_call(llvm::CallInst& call) {
    llvm::SmallVector<llvm::Value*> operands(call.args());
    for (llvm::User* user : llvm::make_early_inc_range(call.users()))
        if (auto* member = llvm::dyn_cast<llvm::ExtractValueInst>(user); member && member->getNumIndices() == 1) {
            llvm::IRBuilder<> at(&call);
            member->replaceAllUsesWith(
                at.CreateCall(make_member_function(call, operands, member->getIndices()[0]), operands));
            member->eraseFromParent();
        }
    if (call.use_empty())
        call.eraseFromParent();
}

llvm::Type* bits_of(llvm::Type* type) {
    return llvm::IntegerType::get(type->getContext(), type->getPrimitiveSizeInBits().getFixedValue());
}

// For little-endian hosts, which are the supported ones.
void rewrite_cast(llvm::BitCastInst& cast) {
    llvm::IRBuilder<> at(&cast);
    llvm::Value* from = cast.getOperand(0);
    auto* vector = llvm::cast<llvm::FixedVectorType>(from->getType()->isVectorTy() ? from->getType() : cast.getType());
    llvm::Type* element_bits = bits_of(vector->getElementType());
    const unsigned width = element_bits->getIntegerBitWidth();
    llvm::Value* result = nullptr;
    if (from->getType()->isVectorTy()) {
        llvm::Type* whole = bits_of(cast.getType());
        for (unsigned i = 0; i < vector->getNumElements(); ++i) {
            llvm::Value* element = at.CreateBitCast(at.CreateExtractElement(from, i), element_bits);
            llvm::Value* placed = at.CreateShl(at.CreateZExt(element, whole), uint64_t{width} * i);
            result = result ? at.CreateOr(result, placed) : placed;
        }
        result = at.CreateBitCast(result, cast.getType());
    } else {
        llvm::Value* whole = at.CreateBitCast(from, bits_of(from->getType()));
        result = llvm::PoisonValue::get(vector);
        for (unsigned i = 0; i < vector->getNumElements(); ++i) {
            llvm::Value* element = at.CreateTrunc(at.CreateLShr(whole, uint64_t{width} * i), element_bits);
            result = at.CreateInsertElement(result, at.CreateBitCast(element, vector->getElementType()), i);
        }
    }
    cast.replaceAllUsesWith(result);
    cast.eraseFromParent();
}

}  // namespace

llvm::Function& make_exchange_function(llvm::Function& caller, llvm::FunctionType& type) {
    llvm::Function& function = make_member_function(*caller.getParent(), type);
    function.addFnAttr(exchange_attribute);
    for (const char* kept : {"target-cpu", "target-features", "prefer-vector-width"})
        if (caller.hasFnAttribute(kept))
            function.addFnAttr(caller.getFnAttribute(kept));
    return function;
}

void forget_metadata(llvm::Instruction& instruction) {
    instruction.setDebugLoc({});
    instruction.dropDbgRecords();
    instruction.dropUnknownNonDebugMetadata({instruction.getContext().getMDKindID(local_atomic_mark)});
}

void make_exchanges_plain(llvm::Function& function) {
    llvm::SmallVector<llvm::AtomicCmpXchgInst*> exchanges;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
            exchanges.push_back(exchange);
    for (llvm::AtomicCmpXchgInst* exchange : exchanges)
        rewrite_exchange(*exchange);
}

void make_operations_plain(llvm::Function& function) {
    make_exchanges_plain(function);
    llvm::SmallVector<llvm::CallInst*> calls;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
            call && call->getType()->isStructTy() && !call->mayReadOrWriteMemory() && call->getCalledFunction())
            calls.push_back(call);
    for (llvm::CallInst* call : calls)
        rewrite_call(*call);
    make_casts_plain(function, [](const llvm::BitCastInst&) { return true; });
}

void make_casts_plain(llvm::Function& function, llvm::function_ref<bool(const llvm::BitCastInst&)> is_chosen) {
    llvm::SmallVector<llvm::BitCastInst*> casts;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(&instruction);
            cast && cast->getSrcTy()->isVectorTy() != cast->getDestTy()->isVectorTy() && is_chosen(*cast))
            casts.push_back(cast);
    for (llvm::BitCastInst* cast : casts)
        rewrite_cast(*cast);
}

}  // namespace polder::compiler::workgroup
