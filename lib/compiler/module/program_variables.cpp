// Three steps. variables_of finds the variables and the constants that hold their addresses. `place` assigns an offset to each and
// writes the initial contents, with a relocation for each address. replace_uses replaces each variable by an address
// computation from the base.
#include "program_variables.h"

#include "machine/retarget.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/ReplaceConstant.h>

namespace polder::compiler {
namespace {

// Not in local memory and not constant.
bool is_program_variable(const llvm::GlobalVariable& variable) {
    const unsigned space = variable.getAddressSpace();
    return variable.hasInitializer() && !variable.isConstant() && !variable.getName().starts_with("llvm.") &&
           space != spir64_address_spaces.local && space != spir64_address_spaces.constant;
}

// Whether `constant` mentions one of `variables`.
bool mentions(const llvm::Constant& constant, const llvm::SetVector<llvm::GlobalVariable*>& variables) {
    if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&constant))
        return variables.contains(const_cast<llvm::GlobalVariable*>(global));
    for (const llvm::Use& operand : constant.operands())
        if (mentions(*llvm::cast<llvm::Constant>(operand.get()), variables))
            return true;
    return false;
}

// Adds what `constant` mentions.
void add_mentioned(const llvm::Constant& constant, llvm::SetVector<llvm::GlobalVariable*>& variables) {
    if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&constant)) {
        if (global->hasInitializer())
            variables.insert(const_cast<llvm::GlobalVariable*>(global));
        return;
    }
    for (const llvm::Use& operand : constant.operands())
        add_mentioned(*llvm::cast<llvm::Constant>(operand.get()), variables);
}

// The variables of the program, and all constants that hold their addresses or whose addresses they hold, directly or through
// others. All of these are moved, so that relocations can set their addresses.
llvm::SetVector<llvm::GlobalVariable*> variables_of(llvm::Module& module) {
    llvm::SetVector<llvm::GlobalVariable*> variables;
    for (llvm::GlobalVariable& variable : module.globals())
        if (is_program_variable(variable))
            variables.insert(&variable);
    for (size_t before = 0; before != variables.size() && !variables.empty();) {
        before = variables.size();
        for (llvm::GlobalVariable& variable : module.globals())
            if (variable.hasInitializer() && mentions(*variable.getInitializer(), variables))
                variables.insert(&variable);
        for (size_t i = 0; i < variables.size(); ++i)
            add_mentioned(*variables[i]->getInitializer(), variables);
    }
    return variables;
}

class Extraction {
public:
    explicit Extraction(llvm::Module& module)
        : module_(module), layout_(module.getDataLayout()), variables_(variables_of(module)) {}

    Result<ProgramVariables> run() {
        place();
        for (llvm::GlobalVariable* variable : variables_)
            POLDER_TRY(write(*variable->getInitializer(), offsets_[variable]));
        for (llvm::GlobalVariable* variable : variables_)
            variable->setInitializer(llvm::Constant::getNullValue(variable->getValueType()));
        for (llvm::GlobalVariable* variable : variables_)
            replace_uses(*variable);
        for (llvm::GlobalVariable* variable : variables_) {
            variable->removeDeadConstantUsers();
            if (variable->use_empty())
                variable->eraseFromParent();
        }
        return std::move(result_);
    }

private:
    void place() {
        uint64_t size = 0;
        for (llvm::GlobalVariable* variable : variables_) {
            const llvm::Align alignment =
                std::max(variable->getAlign().valueOrOne(), layout_.getABITypeAlign(variable->getValueType()));
            size = llvm::alignTo(size, alignment);
            offsets_[variable] = size;
            size += layout_.getTypeAllocSize(variable->getValueType()).getFixedValue();
            result_.alignment = std::max(result_.alignment, alignment.value());
        }
        result_.image.assign(size, std::byte{0});
    }

    void put(uint64_t at, const llvm::APInt& bits, uint64_t bytes) {
        for (uint64_t i = 0; i < bytes && i * 8 < bits.getBitWidth(); ++i)
            result_.image[at + i] = static_cast<std::byte>(
                bits.extractBitsAsZExtValue(std::min<unsigned>(8, bits.getBitWidth() - i * 8), i * 8));
    }

    Result<void> write(const llvm::Constant& value, uint64_t at) {
        if (llvm::isa<llvm::ConstantAggregateZero, llvm::UndefValue, llvm::ConstantTargetNone>(value) ||
            llvm::isa<llvm::ConstantPointerNull>(value.stripPointerCasts()))
            return {};
        const uint64_t size = layout_.getTypeStoreSize(value.getType()).getFixedValue();
        if (const auto* integer = llvm::dyn_cast<llvm::ConstantInt>(&value);
            integer != nullptr && !value.getType()->isVectorTy()) {
            put(at, integer->getValue(), size);
            return {};
        }
        if (const auto* number = llvm::dyn_cast<llvm::ConstantFP>(&value);
            number != nullptr && !value.getType()->isVectorTy()) {
            put(at, number->getValueAPF().bitcastToAPInt(), size);
            return {};
        }
        if (value.getType()->isPointerTy() || llvm::isa<llvm::ConstantExpr>(value))
            return write_address(value, at);
        return write_elements(value, at);
    }

    Result<void> write_elements(const llvm::Constant& value, uint64_t at) {
        llvm::Type* type = value.getType();
        const llvm::StructLayout* structure = nullptr;
        uint64_t stride = 0;
        uint64_t count = 0;
        if (auto* as_struct = llvm::dyn_cast<llvm::StructType>(type)) {
            structure = layout_.getStructLayout(as_struct);
            count = as_struct->getNumElements();
        } else if (auto* as_array = llvm::dyn_cast<llvm::ArrayType>(type)) {
            stride = layout_.getTypeAllocSize(as_array->getElementType()).getFixedValue();
            count = as_array->getNumElements();
        } else if (auto* as_vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
            stride = layout_.getTypeStoreSize(as_vector->getElementType()).getFixedValue();
            count = as_vector->getNumElements();
        }
        for (uint64_t i = 0; i < count; ++i) {
            const llvm::Constant* element = value.getAggregateElement(static_cast<unsigned>(i));
            if (element == nullptr)
                return refuse();
            const uint64_t offset = structure != nullptr
                                        ? structure->getElementOffset(static_cast<unsigned>(i)).getFixedValue()
                                        : i * stride;
            POLDER_TRY(write(*element, at + offset));
        }
        return {};
    }

    // The address of a variable, with an offset, as a pointer or as an integer.
    Result<void> write_address(const llvm::Constant& value, uint64_t at) {
        const llvm::Value* pointer = &value;
        if (const auto* as_integer = llvm::dyn_cast<llvm::PtrToIntOperator>(&value))
            pointer = as_integer->getPointerOperand();
        llvm::APInt offset(64, 0);
        const auto* base =
            llvm::dyn_cast<llvm::GlobalVariable>(pointer->stripAndAccumulateConstantOffsets(layout_, offset, true));
        const auto found = offsets_.find(const_cast<llvm::GlobalVariable*>(base));
        if (base == nullptr || found == offsets_.end() ||
            layout_.getTypeStoreSize(value.getType()).getFixedValue() != 8)
            return refuse();
        put(at, llvm::APInt(64, found->second) + offset, 8);
        result_.relocations.push_back(at);
        return {};
    }

    static tl::unexpected<Error> refuse() {
        return fail(Status::link_program_failure,
                    "error: the initializer of a program-scope variable holds an address that is not a variable's");
    }

    void replace_uses(llvm::GlobalVariable& variable) {
        llvm::convertUsersOfConstantsToInstructions({&variable});
        llvm::DenseMap<llvm::Function*, llvm::Value*> addresses;
        for (llvm::Use& use : llvm::make_early_inc_range(variable.uses())) {
            auto* instruction = llvm::dyn_cast<llvm::Instruction>(use.getUser());
            if (instruction == nullptr)
                continue;
            llvm::Value*& address = addresses[instruction->getFunction()];
            if (address == nullptr)
                address = address_in(*instruction->getFunction(), variable);
            use.set(address);
        }
    }

    // A constant that holds an address moves to global memory, too, but code still expects it in its own space.
    llvm::Value* address_in(llvm::Function& function, llvm::GlobalVariable& variable) {
        llvm::IRBuilder<> builder(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
        llvm::CallInst* base = builder.CreateCall(base_function());
        llvm::Value* address = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), base, offsets_[&variable]);
        return address->getType() == variable.getType() ? address
                                                        : builder.CreateAddrSpaceCast(address, variable.getType());
    }

    llvm::FunctionCallee base_function() {
        auto* pointer = llvm::PointerType::get(module_.getContext(), spir64_address_spaces.global);
        llvm::FunctionCallee callee = module_.getOrInsertFunction(program_variables_function, pointer);
        auto* function = llvm::cast<llvm::Function>(callee.getCallee());
        function->setMemoryEffects(llvm::MemoryEffects::none());
        function->setDoesNotThrow();
        function->addFnAttr(llvm::Attribute::WillReturn);
        return callee;
    }

    llvm::Module& module_;
    const llvm::DataLayout& layout_;
    const llvm::SetVector<llvm::GlobalVariable*> variables_;
    llvm::DenseMap<llvm::GlobalVariable*, uint64_t> offsets_;
    ProgramVariables result_;
};

}  // namespace

bool has_program_variables(const llvm::Module& module) { return llvm::any_of(module.globals(), is_program_variable); }

Result<ProgramVariables> extract_program_variables(llvm::Module& module) { return Extraction{module}.run(); }

}  // namespace polder::compiler
