// The function gets the values of all lanes in memory, and the mask as an integer. Its loop calls the callee for the lowest bit that is set
// in the mask, clears this bit, and ends when no bit is left.
//
// Both arguments fill a whole register. LLVM 22 compiles functions with saves_registers_attribute wrongly where an argument or a result is
// part of a register, such as the lower half of 64 bits: the callee does not save the whole register, but the caller assumes that it does
// (decision 136).
#include "rare_calls.h"

#include "machine/retarget.h"
#include "values_in_memory.h"

#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

namespace polder::compiler::workgroup {

namespace {

// The attributes of the callee's parameters, which are part of how it is called.
llvm::AttributeList calling_attributes(const llvm::Function& callee) {
    const llvm::AttributeList all = callee.getAttributes();
    llvm::SmallVector<llvm::AttributeSet> parameters;
    for (unsigned i = 0; i < callee.arg_size(); ++i)
        parameters.push_back(all.getParamAttrs(i));
    return llvm::AttributeList::get(callee.getContext(), {}, all.getRetAttrs(), parameters);
}

class RareFunction {
public:
    RareFunction(const llvm::CallInst& call, const ValuesOfCall& places, unsigned lanes)
        : call_(call), callee_(*call.getCalledFunction()), places_(places), lanes_(lanes), context_(call.getContext()),
          builder_(context_) {}

    // The function; made when it does not exist yet. Its parameters are the address of the values, and the mask.
    llvm::Function* get() {
        llvm::Module& module = *callee_.getParent();
        const std::string name = callee_.getName().str() + ".lanes" + std::to_string(lanes_);
        if (llvm::Function* const made = module.getFunction(name))
            return made;
        auto* const type =
            llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy(), builder_.getInt64Ty()}, false);
        auto* const function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
        describe(*function);
        define(*function);
        return function;
    }

private:
    void describe(llvm::Function& function) const {
        function.setDSOLocal(true);
        function.addFnAttr(llvm::Attribute::Cold);
        function.addFnAttr(llvm::Attribute::NoInline);
        function.addFnAttr(llvm::Attribute::NoUnwind);
        function.addFnAttr(saves_registers_attribute);
        function.addFnAttr(rare_lanes_attribute, std::to_string(lanes_));
        if (callee_.hasFnAttribute(builtin_attribute))
            function.addFnAttr(builtin_attribute);
        for (const auto kind : {llvm::Attribute::WillReturn, llvm::Attribute::Convergent, llvm::Attribute::NoSync})
            if (callee_.hasFnAttribute(kind))
                function.addFnAttr(kind);
        function.addParamAttr(0, llvm::Attribute::NoAlias);
        function.addParamAttr(0, llvm::Attribute::getWithCaptureInfo(context_, llvm::CaptureInfo::none()));
        function.addParamAttr(0, llvm::Attribute::getWithAlignment(context_, llvm::Align(values_align)));
        // Pointers for the callee are loaded from the values. So LLVM does not count an access through them as one through an argument, and
        // the callee's own effects are added to those on the values.
        if (callee_.doesNotAccessMemory())
            function.setMemoryEffects(llvm::MemoryEffects::argMemOnly());
        else if (callee_.onlyReadsMemory())
            function.setMemoryEffects(llvm::MemoryEffects::readOnly() | llvm::MemoryEffects::argMemOnly());
    }

    void define(llvm::Function& function) {
        builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", &function));
        for_each_lane(builder_, *function.getArg(1), [&](llvm::Value& lane) {
            llvm::SmallVector<llvm::Value*> values;
            for (const auto [argument, place] : llvm::zip(call_.args(), places_.arguments))
                values.push_back(
                    builder_.CreateLoad(argument->getType(), address_of_lane(builder_, *function.getArg(0), place,
                                                                             *argument->getType(), lane)));
            llvm::CallInst* const call = builder_.CreateCall(callee_.getFunctionType(), &callee_, values);
            call->setCallingConv(callee_.getCallingConv());
            call->setAttributes(calling_attributes(callee_));
            // LLVM could make a jump of a call at the end, and then the registers would not be restored.
            call->setTailCallKind(llvm::CallInst::TCK_NoTail);
            if (!call->getType()->isVoidTy())
                builder_.CreateStore(
                    call, address_of_lane(builder_, *function.getArg(0), places_.result, *call->getType(), lane));
        });
        builder_.CreateRetVoid();
    }

    const llvm::CallInst& call_;
    llvm::Function& callee_;
    const ValuesOfCall& places_;
    const unsigned lanes_;
    llvm::LLVMContext& context_;
    llvm::IRBuilder<> builder_;
};

}  // namespace

std::string features_of(const llvm::Function& function, llvm::StringRef features) {
    const bool keeps = function.hasFnAttribute(saves_registers_attribute) &&
                       llvm::Triple(function.getParent()->getTargetTriple()).isX86();
    return keeps ? (features.empty() ? "" : features.str() + ",") + "-vzeroupper" : features.str();
}

bool is_rare_call(const llvm::Instruction& instruction, unsigned lanes) {
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const llvm::Function* const callee = call ? call->getCalledFunction() : nullptr;
    if (callee == nullptr || callee->isIntrinsic() || !callee->hasFnAttribute(llvm::Attribute::Cold) ||
        callee->isVarArg() || lanes > lanes_in_memory_max || call->hasOperandBundles() || call->hasByValArgument() ||
        call->hasStructRetAttr())
        return false;
    const llvm::DataLayout& layout = callee->getDataLayout();
    return (call->getType()->isVoidTy() || is_array_element(*call->getType(), layout)) &&
           llvm::all_of(call->args(),
                        [&](const llvm::Use& argument) { return is_array_element(*argument->getType(), layout); });
}

llvm::Value* call_rare(llvm::IRBuilder<>& builder, const llvm::CallInst& call, llvm::ArrayRef<llvm::Value*> arguments,
                       llvm::Value& mask, llvm::AllocaInst*& memory) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask.getType())->getNumElements();
    const ValuesOfCall places(call, lanes);
    memory = memory_for(places.bytes, *builder.GetInsertBlock()->getParent(), memory);
    const llvm::Align align(values_align);
    const auto address = [&](uint64_t place) {
        return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), memory, place);
    };
    for (const auto [argument, place] : llvm::zip(arguments, places.arguments)) {
        llvm::Value* const all =
            argument->getType()->isVectorTy() ? argument : builder.CreateVectorSplat(lanes, argument);
        builder.CreateAlignedStore(all, address(place), align);
    }
    llvm::CallInst* const made =
        builder.CreateCall(RareFunction(call, places, lanes).get(), {memory, mask_bits(builder, mask)});
    made->addFnAttr(llvm::Attribute::get(builder.getContext(), saves_registers_attribute));
    if (call.getType()->isVoidTy())
        return nullptr;
    return builder.CreateAlignedLoad(llvm::FixedVectorType::get(call.getType(), lanes), address(places.result), align);
}

}  // namespace polder::compiler::workgroup
