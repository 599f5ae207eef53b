// One class with a function for each family of instructions: types, scalar and composite constants (with the application's values
// of specialization constants), and variables.
#include "module_level.h"

#include "image.h"
#include "symbols.h"

#include <cstring>
#include <llvm/IR/Constants.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Constant;

class Globals {
public:
    Globals(Translation& translation, const Specialization& specialization)
        : translation_(translation), specialization_(specialization) {}

    void add(const Instruction& instruction) {
        switch (instruction.opcode) {
        case spv::OpTypeForwardPointer:
            types().add_forward_pointer(instruction.operand(0), static_cast<spv::StorageClass>(instruction.operand(1)));
            return;
        case spv::OpConstantTrue:
        case spv::OpConstantFalse:
        case spv::OpSpecConstantTrue:
        case spv::OpSpecConstantFalse: return add_truth(instruction);
        case spv::OpConstant:
        case spv::OpSpecConstant: return add_number(instruction);
        case spv::OpConstantComposite:
        case spv::OpSpecConstantComposite: return add_composite(instruction);
        case spv::OpSpecConstantOp: return define_constant_operation(translation_, instruction);
        case spv::OpConstantNull: return add_null(instruction);
        case spv::OpUndef: return add_undefined(instruction);
        case spv::OpVariable: return add_variable(instruction);
        case spv::OpConstantSampler: return add_sampler(instruction);
        case spv::OpConstantPipeStorage: return refuse(instruction, "this constant is not supported");
        default: break;
        }
        if (instruction.result != 0 && instruction.type == 0 && name_of(instruction.opcode).starts_with("OpType"))
            add_type(instruction);
    }

private:
    [[nodiscard]] Types& types() { return translation_.types(); }
    void refuse(const Instruction& instruction, const std::string& why) { translation_.refuse(instruction, why); }

    void add_type(const Instruction& instruction) {
        uint64_t length = 0;
        if (instruction.opcode == spv::OpTypeArray) {
            const auto known = translation_.integer(instruction.operand(1));
            if (!known)
                return refuse(instruction, "the length is not an integer constant");
            length = *known;
        }
        const bool is_packed = translation_.annotations().has(instruction.result, spv::DecorationCPacked);
        const auto added =
            types().add(instruction, length, is_packed, translation_.annotations().name(instruction.result));
        if (!added)
            refuse(instruction, std::string{added.error().detail()});
    }

    // The application's value for the constant, if there is one.
    [[nodiscard]] const std::vector<std::byte>* specialized(const Instruction& instruction) const {
        const auto id = translation_.annotations().decoration(instruction.result, spv::DecorationSpecId);
        const auto found = id ? specialization_.find(id->operand(0)) : specialization_.end();
        return found == specialization_.end() ? nullptr : &found->second;
    }

    [[nodiscard]] std::optional<uint64_t> specialized_bits(const Instruction& instruction) const {
        const std::vector<std::byte>* bytes = specialized(instruction);
        if (bytes == nullptr)
            return std::nullopt;
        uint64_t bits = 0;
        std::memcpy(&bits, bytes->data(), std::min(sizeof bits, bytes->size()));
        return bits;
    }

    void add_truth(const Instruction& instruction) {
        llvm::Type* type = types().llvm(instruction.type);
        if (type == nullptr || !type->isIntegerTy(1))
            return refuse(instruction, "the type is not that of a truth value");
        const bool value = instruction.opcode == spv::OpConstantTrue || instruction.opcode == spv::OpSpecConstantTrue;
        const auto bits = specialized_bits(instruction);
        translation_.define(instruction, llvm::ConstantInt::get(type, bits ? *bits != 0 : value));
    }

    void add_number(const Instruction& instruction) {
        llvm::Type* type = types().llvm(instruction.type);
        if (type == nullptr || (!type->isIntegerTy() && !type->isFloatingPointTy()))
            return refuse(instruction, "the type is not that of a number");
        const uint64_t literal = instruction.operand(0) | uint64_t{instruction.operand(1)} << 32;
        const llvm::APInt bits =
            llvm::APInt(64, specialized_bits(instruction).value_or(literal)).trunc(type->getScalarSizeInBits());
        if (type->isIntegerTy())
            translation_.define(instruction, llvm::ConstantInt::get(type, bits));
        else
            translation_.define(instruction, llvm::ConstantFP::get(type, llvm::APFloat(type->getFltSemantics(), bits)));
    }

    // Null when the types of the constituents are not those of the members.
    static Constant* composite(llvm::Type* type, llvm::ArrayRef<Constant*> parts) {
        const auto all_are = [&](llvm::Type* element) {
            return std::all_of(parts.begin(), parts.end(), [&](Constant* part) { return part->getType() == element; });
        };
        if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
            return parts.size() == vector->getNumElements() && all_are(vector->getElementType())
                       ? llvm::ConstantVector::get(parts)
                       : nullptr;
        if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
            return parts.size() == array->getNumElements() && all_are(array->getElementType())
                       ? llvm::ConstantArray::get(array, parts)
                       : nullptr;
        auto* structure = llvm::dyn_cast<llvm::StructType>(type);
        if (structure == nullptr || parts.size() != structure->getNumElements())
            return nullptr;
        for (unsigned i = 0; i < parts.size(); ++i)
            if (parts[i]->getType() != structure->getElementType(i))
                return nullptr;
        return llvm::ConstantStruct::get(structure, parts);
    }

    void add_composite(const Instruction& instruction) {
        llvm::SmallVector<Constant*, 16> parts;
        for (const uint32_t id : instruction.operands) {
            parts.push_back(llvm::dyn_cast_or_null<Constant>(translation_.known_value(id)));
            if (parts.back() == nullptr)
                return refuse(instruction, "%" + std::to_string(id) + " is not a constant");
        }
        llvm::Type* type = types().llvm(instruction.type);
        Constant* whole = type == nullptr ? nullptr : composite(type, parts);
        if (whole == nullptr)
            return refuse(instruction, "the constituents are not those of the type");
        translation_.define(instruction, whole);
    }

    void add_sampler(const Instruction& instruction) {
        const auto bits = sampler_bits(instruction);
        if (!bits || types().get(instruction.type).kind != spv::OpTypeSampler)
            return refuse(instruction, "OpenCL has no such sampler");
        // Only the bits are stored here. The body of a function makes a sampler of them.
        translation_.define(instruction.result, instruction.type,
                            llvm::ConstantInt::get(llvm::Type::getInt32Ty(translation_.context()), *bits));
    }

    [[nodiscard]] llvm::Type* data_type(const Instruction& instruction) {
        llvm::Type* type = types().llvm(instruction.type);
        const bool is_data = type != nullptr && !type->isVoidTy() && !type->isFunctionTy() && type->isSized();
        if (!is_data)
            refuse(instruction, "the type has no values");
        return is_data ? type : nullptr;
    }

    void add_null(const Instruction& instruction) {
        if (llvm::Type* type = data_type(instruction))
            translation_.define(instruction, Constant::getNullValue(type));
    }

    void add_undefined(const Instruction& instruction) {
        if (llvm::Type* type = data_type(instruction))
            translation_.define(instruction, llvm::UndefValue::get(type));
    }

    void add_variable(const Instruction& instruction) {
        const Type& pointer = types().get(instruction.type);
        if (const auto builtin = translation_.annotations().decoration(instruction.result, spv::DecorationBuiltIn)) {
            // Translators to SPIR-V 1.0 put built-in variables into the storage class of constants.
            if (!types().has(pointer.element) ||
                (pointer.storage != spv::StorageClassInput && pointer.storage != spv::StorageClassUniformConstant))
                return refuse(instruction, "a built-in variable is of storage class Input");
            translation_.note_type(instruction);
            translation_.define_builtin_variable(instruction.result, static_cast<spv::BuiltIn>(builtin->operand(0)));
            return;
        }
        llvm::Type* type = types().llvm(pointer.element);
        if (pointer.storage != spv::StorageClassCrossWorkgroup && pointer.storage != spv::StorageClassWorkgroup &&
            pointer.storage != spv::StorageClassUniformConstant)
            return refuse(instruction, "a program's variables are in global, constant or local memory");
        if (type == nullptr || !type->isSized())
            return refuse(instruction, "the variable's type has no size");
        make_variable(instruction, pointer, type);
    }

    [[nodiscard]] Constant* initial_value(const Instruction& instruction, const Type& pointer, llvm::Type* type) {
        if (pointer.storage == spv::StorageClassWorkgroup)
            return llvm::UndefValue::get(type);
        if (instruction.operands.size() < 2)
            return Constant::getNullValue(type);
        auto* given = llvm::dyn_cast_or_null<Constant>(translation_.known_value(instruction.operand(1)));
        if (given == nullptr || given->getType() != type) {
            refuse(instruction, "the initial value is not a constant of the variable's type");
            return Constant::getNullValue(type);
        }
        return given;
    }

    void make_variable(const Instruction& instruction, const Type& pointer, llvm::Type* type) {
        const Symbol symbol = symbol_of(translation_, instruction, "variable");
        const bool is_imported = symbol.linkage == llvm::GlobalValue::ExternalLinkage && symbol.is_imported;
        auto* variable = new llvm::GlobalVariable(
            translation_.module(), type, pointer.storage == spv::StorageClassUniformConstant, symbol.linkage,
            is_imported ? nullptr : initial_value(instruction, pointer, type), symbol.name, nullptr,
            llvm::GlobalValue::NotThreadLocal, *address_space(pointer.storage));
        const auto alignment = translation_.annotations().decoration(instruction.result, spv::DecorationAlignment);
        const llvm::Align natural = translation_.module().getDataLayout().getABITypeAlign(type);
        const bool is_aligned =
            alignment && llvm::isPowerOf2_32(alignment->operand(0)) && alignment->operand(0) <= 4096;
        variable->setAlignment(is_aligned ? std::max(natural, llvm::Align(alignment->operand(0))) : natural);
        translation_.define(instruction, variable);
    }

    Translation& translation_;
    const Specialization& specialization_;
};

}  // namespace

void define_globals(Translation& translation, const Specialization& specialization) {
    Globals globals(translation, specialization);
    for (const Instruction& instruction : translation.binary().instructions()) {
        if (instruction.opcode == spv::OpFunction || translation.failed())
            return;
        globals.add(instruction);
    }
}

}  // namespace polder::compiler::spirv
