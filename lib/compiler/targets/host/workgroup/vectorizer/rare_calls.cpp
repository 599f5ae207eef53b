// The function gets the mask as an integer. It stores its vectors, and takes one lane after the other: the lowest bit that is set in
// what is left of the mask.
#include "rare_calls.h"

#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned lanes_max = 64;  // bits of the mask

// Whether a vector of such elements has them in memory as an array has.
bool is_array_element(const llvm::Type& type, const llvm::DataLayout& layout) {
    auto* const element = const_cast<llvm::Type*>(&type);
    return llvm::VectorType::isValidElementType(element) &&
           layout.getTypeSizeInBits(element) == layout.getTypeAllocSizeInBits(element);
}

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
    RareFunction(const llvm::CallInst& call, llvm::ArrayRef<llvm::Value*> arguments, unsigned lanes)
        : call_(call), callee_(*call.getCalledFunction()), arguments_(arguments), lanes_(lanes),
          context_(call.getContext()), builder_(context_) {}

    llvm::Function* get() {
        llvm::Module& module = *callee_.getParent();
        if (llvm::Function* const made = module.getFunction(name()))
            return made;
        auto* const function = llvm::Function::Create(type(), llvm::GlobalValue::InternalLinkage, name(), module);
        describe(*function);
        define(*function);
        return function;
    }

private:
    [[nodiscard]] bool is_vector(unsigned argument) const {
        return arguments_[argument]->getType() != call_.getArgOperand(argument)->getType();
    }

    // Same callee, lanes and vectors: the same function.
    [[nodiscard]] std::string name() const {
        std::string text = callee_.getName().str() + ".lanes" + std::to_string(lanes_);
        for (unsigned i = 0; i < arguments_.size(); ++i)
            text += is_vector(i) ? 'v' : 's';
        return text;
    }

    llvm::Type* wide(llvm::Type* type) const {
        return type->isVoidTy() ? type : llvm::FixedVectorType::get(type, lanes_);
    }

    [[nodiscard]] llvm::FunctionType* type() {
        llvm::SmallVector<llvm::Type*> types;
        for (const llvm::Value* argument : arguments_)
            types.push_back(argument->getType());
        types.push_back(builder_.getInt64Ty());
        return llvm::FunctionType::get(wide(callee_.getReturnType()), types, false);
    }

    void describe(llvm::Function& function) const {
        function.setDSOLocal(true);
        function.addFnAttr(llvm::Attribute::Cold);
        function.addFnAttr(llvm::Attribute::NoInline);
        function.addFnAttr(llvm::Attribute::NoUnwind);
        for (const auto kind : {llvm::Attribute::WillReturn, llvm::Attribute::Convergent, llvm::Attribute::NoSync})
            if (callee_.hasFnAttribute(kind))
                function.addFnAttr(kind);
        // Where it gets pointers, they are in vectors: what it accesses by them does not count as by its arguments.
        if (callee_.doesNotAccessMemory())
            function.setDoesNotAccessMemory();
        else if (callee_.onlyReadsMemory())
            function.setOnlyReadsMemory();
    }

    llvm::AllocaInst* place(llvm::Type* type) { return builder_.CreateAlloca(type); }

    llvm::Value* element_address(llvm::Value* place, llvm::Type* element, llvm::Value* lane) {
        return builder_.CreateInBoundsGEP(element, place, lane);
    }

    void define(llvm::Function& function) {
        auto* const entry = llvm::BasicBlock::Create(context_, "entry", &function);
        auto* const loop = llvm::BasicBlock::Create(context_, "lane", &function);
        auto* const done = llvm::BasicBlock::Create(context_, "done", &function);
        builder_.SetInsertPoint(entry);
        llvm::Type* const result = callee_.getReturnType();
        llvm::Value* const results = result->isVoidTy() ? nullptr : place(wide(result));
        llvm::SmallVector<llvm::Value*> places;
        for (unsigned i = 0; i < arguments_.size(); ++i) {
            places.push_back(is_vector(i) ? place(arguments_[i]->getType()) : nullptr);
            if (is_vector(i))
                builder_.CreateStore(function.getArg(i), places.back());
        }
        builder_.CreateBr(loop);

        builder_.SetInsertPoint(loop);
        llvm::PHINode* const rest = builder_.CreatePHI(builder_.getInt64Ty(), 2, "rest");
        rest->addIncoming(function.getArg(function.arg_size() - 1), entry);
        llvm::Value* const lane =
            builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, rest, builder_.getTrue(), nullptr, "lane");
        llvm::SmallVector<llvm::Value*> values;
        for (unsigned i = 0; i < arguments_.size(); ++i) {
            llvm::Type* const element = call_.getArgOperand(i)->getType();
            values.push_back(is_vector(i) ? builder_.CreateLoad(element, element_address(places[i], element, lane))
                                          : static_cast<llvm::Value*>(function.getArg(i)));
        }
        llvm::CallInst* const call =
            builder_.CreateCall(callee_.getFunctionType(), const_cast<llvm::Function*>(&callee_), values);
        call->setCallingConv(callee_.getCallingConv());
        call->setAttributes(calling_attributes(callee_));
        if (results != nullptr)
            builder_.CreateStore(call, element_address(results, result, lane));
        llvm::Value* const next = builder_.CreateAnd(rest, builder_.CreateSub(rest, builder_.getInt64(1)));
        rest->addIncoming(next, loop);
        builder_.CreateCondBr(builder_.CreateIsNull(next), done, loop);

        builder_.SetInsertPoint(done);
        if (results != nullptr)
            builder_.CreateRet(builder_.CreateLoad(wide(result), results));
        else
            builder_.CreateRetVoid();
    }

    const llvm::CallInst& call_;
    llvm::Function& callee_;
    const llvm::ArrayRef<llvm::Value*> arguments_;
    const unsigned lanes_;
    llvm::LLVMContext& context_;
    llvm::IRBuilder<> builder_;
};

}  // namespace

bool is_rare_call(const llvm::Instruction& instruction, unsigned lanes) {
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const llvm::Function* const callee = call ? call->getCalledFunction() : nullptr;
    if (callee == nullptr || callee->isIntrinsic() || !callee->hasFnAttribute(llvm::Attribute::Cold) ||
        callee->isVarArg() || lanes > lanes_max || call->hasOperandBundles() || call->hasByValArgument() ||
        call->hasStructRetAttr())
        return false;
    const llvm::DataLayout& layout = callee->getDataLayout();
    return (call->getType()->isVoidTy() || is_array_element(*call->getType(), layout)) &&
           llvm::all_of(call->args(),
                        [&](const llvm::Use& argument) { return is_array_element(*argument->getType(), layout); });
}

llvm::CallInst* call_rare(llvm::IRBuilder<>& builder, const llvm::CallInst& call,
                          llvm::ArrayRef<llvm::Value*> arguments, llvm::Value& mask) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask.getType())->getNumElements();
    llvm::Function* const function = RareFunction(call, arguments, lanes).get();
    llvm::SmallVector<llvm::Value*> all(arguments);
    all.push_back(builder.CreateZExt(builder.CreateBitCast(&mask, builder.getIntNTy(lanes)), builder.getInt64Ty()));
    return builder.CreateCall(function, all);
}

}  // namespace polder::compiler::workgroup
