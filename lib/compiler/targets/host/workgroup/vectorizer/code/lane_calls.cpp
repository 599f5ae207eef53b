// call_for_lanes() makes a function with a loop over the lanes that calls the callee. Vectors of arguments and of results are in memory; values that
// are the same for all lanes, or have a constant step, are parameters, so that branches on them stay branches and addresses stay rows. There is one such
// function for each callee, number of lanes and shape of the arguments, with and without a mask.
#include "lane_calls.h"

#include "values_in_memory.h"

#include <algorithm>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Module.h>
#include <string>

namespace polder::compiler::workgroup {

namespace {

// What a function of call_for_lanes() is made from.
class LaneFunction {
public:
    LaneFunction(const llvm::CallInst& call, unsigned lanes, llvm::ArrayRef<LaneArgument> arguments, bool is_masked)
        : call_(call), callee_(*call.getCalledFunction()), places_(call, lanes), lanes_(lanes), arguments_(arguments),
          is_masked_(is_masked), context_(call.getContext()), at_(context_) {}

    // Its parameters: the address of the vectors; the mask's bits, if it has one; the values of arguments that are no vectors.
    llvm::Function* get() {
        llvm::Module& module = *callee_.getParent();
        std::string name = callee_.getName().str() + ".for" + std::to_string(lanes_) + (is_masked_ ? ".masked" : "");
        llvm::SmallVector<llvm::Type*> types{at_.getPtrTy()};
        if (is_masked_)
            types.push_back(at_.getInt64Ty());
        for (const LaneArgument& argument : arguments_) {
            name += '.';
            name += argument.step ? std::to_string(*argument.step) : "v";
            if (argument.step)
                types.push_back(argument.value->getType());
        }
        if (llvm::Function* const made = module.getFunction(name); made && made->hasFnAttribute(made_attribute))
            return made;
        auto* const type = llvm::FunctionType::get(at_.getVoidTy(), types, false);
        auto* const function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
        function->setDSOLocal(true);
        function->addFnAttr(llvm::Attribute::NoUnwind);
        if (callee_.hasFnAttribute(llvm::Attribute::NoInline))
            function->addFnAttr(llvm::Attribute::NoInline);
        function->addFnAttr(lanes_attribute, std::to_string(lanes_));
        function->addFnAttr(made_attribute);
        for (const char* kept : {"target-cpu", "target-features", "prefer-vector-width"})
            if (callee_.hasFnAttribute(kept))
                function->addFnAttr(callee_.getFnAttribute(kept));
        function->addParamAttr(0, llvm::Attribute::NoAlias);
        function->addParamAttr(0, llvm::Attribute::getWithCaptureInfo(context_, llvm::CaptureInfo::none()));
        function->addParamAttr(0, llvm::Attribute::getWithAlignment(context_, llvm::Align(values_align)));
        define(*function);
        return function;
    }

    [[nodiscard]] const ValuesOfCall& places() const { return places_; }

private:
    void define(llvm::Function& function) {
        const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context_, name, &function); };
        at_.SetInsertPoint(block("entry"));
        llvm::BasicBlock* const after = block("done");
        loop_over_lanes(at_, lanes_, is_masked_ ? function.getArg(1) : nullptr, *after,
                        [&](llvm::Value& lane) { call_for(function, lane); });
        at_.SetInsertPoint(after);
        at_.CreateRetVoid();
    }

    void call_for(llvm::Function& function, llvm::Value& lane) {
        llvm::Value& memory = *function.getArg(0);
        unsigned parameter = is_masked_ ? 2 : 1;
        llvm::SmallVector<llvm::Value*> values;
        for (const auto [argument, operand, place] : llvm::zip(arguments_, call_.args(), places_.arguments)) {
            llvm::Type& type = *operand->getType();
            values.push_back(argument.step ? moved(*function.getArg(parameter++), *argument.step, lane)
                                           : at_.CreateLoad(&type, address_of_lane(at_, memory, place, type, lane)));
        }
        llvm::CallInst* const call = at_.CreateCall(call_.getFunctionType(), &callee_, values);
        call->setCallingConv(callee_.getCallingConv());
        call->setAttributes(call_.getAttributes());
        if (!call->getType()->isVoidTy())
            at_.CreateStore(call, address_of_lane(at_, memory, places_.result, *call->getType(), lane));
    }

    llvm::Value* moved(llvm::Value& first, int64_t step, llvm::Value& lane) {
        if (step == 0)
            return &first;
        llvm::Value* const distance = at_.CreateMul(&lane, at_.getInt64(static_cast<uint64_t>(step)));
        if (first.getType()->isPointerTy())
            return at_.CreateGEP(at_.getInt8Ty(), &first, distance);
        return at_.CreateAdd(&first, at_.CreateZExtOrTrunc(distance, first.getType()));
    }

    const llvm::CallInst& call_;
    llvm::Function& callee_;
    const ValuesOfCall places_;
    const unsigned lanes_;
    const llvm::ArrayRef<LaneArgument> arguments_;
    const bool is_masked_;
    llvm::LLVMContext& context_;
    llvm::IRBuilder<> at_;
};

}  // namespace

llvm::Value* call_for_lanes(llvm::IRBuilder<>& builder, const llvm::CallInst& call, unsigned lanes,
                            llvm::ArrayRef<LaneArgument> arguments, llvm::Value* mask, llvm::AllocaInst*& memory) {
    LaneFunction function(call, lanes, arguments, mask != nullptr);
    const ValuesOfCall& places = function.places();
    memory = memory_for(std::max<uint64_t>(places.bytes, 1), *builder.GetInsertBlock()->getParent(), memory);
    const auto address = [&](uint64_t place) {
        return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), memory, place);
    };
    const llvm::Align align(values_align);
    llvm::SmallVector<llvm::Value*> values{memory};
    if (mask != nullptr)
        values.push_back(mask_bits(builder, *mask));
    for (const auto [argument, place] : llvm::zip(arguments, places.arguments))
        if (argument.step)
            values.push_back(argument.value);
        else
            builder.CreateAlignedStore(argument.value, address(place), align);
    builder.CreateCall(function.get(), values);
    if (call.getType()->isVoidTy())
        return nullptr;
    return builder.CreateAlignedLoad(llvm::FixedVectorType::get(call.getType(), lanes), address(places.result), align);
}

}  // namespace polder::compiler::workgroup
