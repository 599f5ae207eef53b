// An id that is used before its definition gets a placeholder value of its type; the definition replaces it.
#include "translation.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>

namespace polder::compiler::spirv {

Translation::~Translation() {
    for (auto& [id, stand_in] : stand_ins_) {
        stand_in->replaceAllUsesWith(llvm::PoisonValue::get(stand_in->getType()));
        delete stand_in;
    }
}

void Translation::refuse(const Instruction& instruction, const std::string& why) {
    if (failed())
        return;
    problem_ = "error: SPIR-V, instruction " + std::to_string(instruction.number) + ", " + name_of(instruction.opcode);
    if (instruction.result != 0) {
        problem_ += " %" + std::to_string(instruction.result);
        if (const std::string name = annotations_.name(instruction.result); !name.empty())
            problem_ += " (" + name + ")";
    }
    problem_ += ": " + why + "\n";
}

void Translation::define(const Instruction& instruction, llvm::Value* value) {
    if (value->getType() != types_.llvm(instruction.type))
        refuse(instruction, "the value is not of the result's type");
    define(instruction.result, instruction.type, value);
}

void Translation::define(uint32_t id, uint32_t type, llvm::Value* value) {
    values_[id] = value;
    value_types_[id] = type;
    const auto found = stand_ins_.find(id);
    if (found == stand_ins_.end())
        return;
    if (found->second->getType() == value->getType())
        found->second->replaceAllUsesWith(value);
    else
        found->second->replaceAllUsesWith(llvm::PoisonValue::get(found->second->getType()));
    delete found->second;
    stand_ins_.erase(found);
}

llvm::Value* Translation::value(const Instruction& user, uint32_t id) {
    if (llvm::Value* known = values_.lookup(id)) {
        if (llvm::isa<llvm::Function>(known))
            refuse(user, "pointers to functions are not supported");
        return known;
    }
    if (const auto found = stand_ins_.find(id); found != stand_ins_.end())
        return found->second;
    llvm::Type* type = types_.llvm(type_of(id));
    if (type == nullptr || type->isVoidTy() || type->isFunctionTy()) {
        refuse(user, "%" + std::to_string(id) + " is not a value");
        return llvm::PoisonValue::get(llvm::Type::getInt32Ty(context()));
    }
    return stand_ins_[id] = new llvm::Argument(type);
}

std::optional<uint64_t> Translation::integer(uint32_t id) const {
    const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(values_.lookup(id));
    if (constant == nullptr || constant->getBitWidth() > 64)
        return std::nullopt;
    return constant->getZExtValue();
}

void Translation::finish_stand_ins(const Instruction& last) {
    if (!stand_ins_.empty())
        refuse(last, "%" + std::to_string(stand_ins_.begin()->first) + " is used in the function and defined nowhere");
}

std::optional<spv::BuiltIn> Translation::builtin_variable(uint32_t id) const {
    const auto found = builtin_variables_.find(id);
    return found == builtin_variables_.end() ? std::nullopt : std::optional{found->second};
}

llvm::CallInst* Translation::call_builtin(Builder& builder, const std::string& mangled_name, llvm::Type* result,
                                          llvm::ArrayRef<llvm::Value*> arguments, Effect effect) {
    llvm::SmallVector<llvm::Type*, 4> parameters;
    for (const llvm::Value* argument : arguments)
        parameters.push_back(argument->getType());
    auto* type = llvm::FunctionType::get(result, parameters, false);
    llvm::FunctionCallee callee = module_.getOrInsertFunction(mangled_name, type);
    llvm::CallInst* call = builder.CreateCall(callee, arguments);
    if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee());
        function != nullptr && function->isDeclaration()) {
        function->setCallingConv(llvm::CallingConv::SPIR_FUNC);
        function->addFnAttr(llvm::Attribute::Convergent);
        function->addFnAttr(llvm::Attribute::NoUnwind);
        if (effect != Effect::any)
            function->addFnAttr(llvm::Attribute::WillReturn);
        if (effect == Effect::none)
            function->setDoesNotAccessMemory();
        if (effect == Effect::reads)
            function->setOnlyReadsMemory();
    }
    call->setCallingConv(llvm::CallingConv::SPIR_FUNC);
    call->addFnAttr(llvm::Attribute::Convergent);
    call->addFnAttr(llvm::Attribute::NoUnwind);
    return call;
}

} // namespace polder::compiler::spirv
