// Kernels' metadata: Clang's forms (kernel_arg_…, reqd_work_group_size, vec_type_hint), read by module/kernel_info.cpp.
#include "functions.h"
#include "image.h"
#include "module/kernel_info.h"

#include <algorithm>
#include <limits>
#include <llvm/IR/Constants.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Metadata;
using Numbers = llvm::SmallVector<uint32_t, 3>;

template <class Number>
Metadata* number_metadata(llvm::LLVMContext& context, Number value) {
    return llvm::ConstantAsMetadata::get(
        llvm::ConstantInt::get(llvm::IntegerType::get(context, sizeof value * 8), value));
}

template <class List>
void set_numbers(llvm::Function& kernel, const char* kind, const List& values) {
    llvm::SmallVector<Metadata*, 8> operands;
    for (const auto value : values)
        operands.push_back(number_metadata(kernel.getContext(), value));
    kernel.setMetadata(kind, llvm::MDNode::get(kernel.getContext(), operands));
}

void set_strings(llvm::Function& kernel, const char* kind, llvm::ArrayRef<std::string> values) {
    llvm::SmallVector<Metadata*, 8> operands;
    for (const std::string& value : values)
        operands.push_back(llvm::MDString::get(kernel.getContext(), value));
    kernel.setMetadata(kind, llvm::MDNode::get(kernel.getContext(), operands));
}

// Splits a text such as "float*,uint4,", in which LLVM and its translator keep the types of the source.
std::vector<std::string> split_types(const std::string& text) {
    std::vector<std::string> types;
    std::string type;
    for (const char character : text)
        if (character == ',')
            types.push_back(std::exchange(type, {}));
        else
            type += character;
    if (!type.empty())
        types.push_back(type);
    return types;
}

// The three numbers of a mode, as literals or constants. Anything else is an error, and the result is empty.
std::optional<Numbers> sizes(Translation& translation, const Instruction& head, const ExecutionMode& mode) {
    Numbers numbers;
    for (const uint32_t operand : mode.operands) {
        const auto value = mode.are_ids ? translation.integer(operand) : std::optional<uint64_t>{operand};
        if (!value || *value > UINT32_MAX) {
            translation.refuse(head, "a size among the execution modes is not a constant");
            return std::nullopt;
        }
        numbers.push_back(static_cast<uint32_t>(*value));
    }
    return numbers;
}

// SPIR-V specification 3.6, Vec Type Hint: the element's type in the low half, the number of elements in the high one.
void set_vector_hint(llvm::Function& kernel, uint32_t hint) {
    llvm::LLVMContext& context = kernel.getContext();
    llvm::Type* const elements[] = {llvm::Type::getInt8Ty(context),  llvm::Type::getInt16Ty(context),
                                    llvm::Type::getInt32Ty(context), llvm::Type::getInt64Ty(context),
                                    llvm::Type::getHalfTy(context),  llvm::Type::getFloatTy(context),
                                    llvm::Type::getDoubleTy(context)};
    const uint32_t element = hint & 0xffff;
    const uint32_t count = hint >> 16;
    if (element >= std::size(elements) || count > 16)
        return;
    llvm::Type* type = elements[element];
    if (count > 1)
        type = llvm::FixedVectorType::get(type, count);
    kernel.setMetadata("vec_type_hint",
                       llvm::MDNode::get(context, {llvm::ConstantAsMetadata::get(llvm::UndefValue::get(type)),
                                                   number_metadata(context, 1)}));
}

void apply_mode(Translation& translation, const Instruction& head, llvm::Function& kernel, const ExecutionMode& mode) {
    const auto set_size = [&](const char* kind, size_t count) {
        const auto numbers = sizes(translation, head, mode);
        if (numbers && numbers->size() == count)
            set_numbers(kernel, kind, *numbers);
    };
    switch (mode.kind) {
    case spv::ExecutionModeLocalSize:
    case spv::ExecutionModeLocalSizeId: return set_size("reqd_work_group_size", 3);
    case spv::ExecutionModeLocalSizeHint:
    case spv::ExecutionModeLocalSizeHintId: return set_size("work_group_size_hint", 3);
    case spv::ExecutionModeSubgroupSize: return set_size("intel_reqd_sub_group_size", 1);
    case spv::ExecutionModeVecTypeHint:
        return set_vector_hint(kernel, mode.operands.empty() ? 0 : mode.operands.front());
    // Modes that are handled elsewhere, or that the host follows anyway.
    case spv::ExecutionModeContractionOff:
    case spv::ExecutionModeDenormPreserve:
    case spv::ExecutionModeSignedZeroInfNanPreserve:
    case spv::ExecutionModeRoundingModeRTE: return;
    default: translation.refuse(head, "execution mode " + std::to_string(mode.kind) + " is not supported");
    }
}

// A constant decorated as the built-in WorkgroupSize is the size for all kernels, and takes precedence over any mode.
void apply_constant_size(Translation& translation, llvm::Function& kernel) {
    for (const Instruction& instruction : translation.binary().instructions()) {
        const auto decoration = translation.annotations().decoration(instruction.result, spv::DecorationBuiltIn);
        auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(translation.known_value(instruction.result));
        if (instruction.result == 0 || !decoration || decoration->operand(0) != spv::BuiltInWorkgroupSize ||
            constant == nullptr || llvm::isa<llvm::GlobalValue>(constant))
            continue;
        Numbers numbers;
        for (unsigned i = 0; i < 3; ++i)
            if (const auto* size = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(i)))
                numbers.push_back(static_cast<uint32_t>(size->getZExtValue()));
        if (numbers.size() == 3)
            set_numbers(kernel, "reqd_work_group_size", numbers);
    }
}

// Whether the runtime can set the parameter: an address in memory that the host knows, or bytes. The host has no events of the device.
bool is_parameter(const llvm::Argument& argument) {
    if (!argument.getType()->isPointerTy())
        return argument.getType()->isSized() && argument.getType() != device_event_type(argument.getContext());
    const unsigned space = argument.getType()->getPointerAddressSpace();
    return argument.hasByValAttr() ? space == 0 : space >= 1 && space <= 3;
}

std::string type_name(Translation& translation, uint32_t type) {
    const Type& of = translation.types().get(type);
    switch (of.kind) {
    case spv::OpTypeInt:
    case spv::OpTypeFloat:
    case spv::OpTypeVector: return opencl_name(translation.types(), type, Sign::is_signed);
    case spv::OpTypePointer: return type_name(translation, of.element).append("*");
    case spv::OpTypeImage:
    case spv::OpTypeSampler: return image_type_name(of);
    case spv::OpTypeQueue: return "queue_t";
    default: return "structure";
    }
}

std::string access_name(const Type& type) {
    if (type.kind != spv::OpTypePipe)
        return image_access_name(type);
    return is_pipe_to(type, spv::AccessQualifierReadOnly) ? "read_only" : "write_only";
}

std::string qualifiers(Translation& translation, uint32_t id) {
    const Annotations& annotations = translation.annotations();
    std::string text;
    const auto add = [&](bool has_it, const char* word) {
        if (has_it)
            text += (text.empty() ? "" : " ") + std::string{word};
    };
    add(annotations.has_function_attribute(id, spv::FunctionParameterAttributeNoAlias), "restrict");
    add(annotations.has_function_attribute(id, spv::FunctionParameterAttributeNoWrite), "const");
    add(annotations.has(id, spv::DecorationVolatile), "volatile");
    add(translation.types().get(translation.type_of(id)).kind == spv::OpTypePipe, "pipe");
    return text;
}

// MaxByteOffset and MaxByteOffsetId: no byte of the parameter's memory beyond it is accessed, so larger memory is an error. Several
// declarations all hold.
uint64_t memory_bytes_max(Translation& translation, const Instruction& head, uint32_t id) {
    uint64_t least = std::numeric_limits<uint64_t>::max();
    for (const Decoration& each : translation.annotations().decorations(id)) {
        if (each.kind != spv::DecorationMaxByteOffset && each.kind != spv::DecorationMaxByteOffsetId)
            continue;
        const auto value = each.kind == spv::DecorationMaxByteOffset ? std::optional<uint64_t>{each.operand(0)}
                                                                     : translation.integer(each.operand(0));
        if (value)
            least = std::min(least, *value);
        else
            translation.refuse(head, "the operand of MaxByteOffsetId is not a constant");
    }
    return least;
}

}  // namespace

void describe_kernel(Translation& translation, const Instruction& head, llvm::Function& kernel,
                     std::span<const uint32_t> parameters) {
    Numbers spaces;
    std::vector<std::string> access, types, names, all_qualifiers;
    llvm::SmallVector<uint64_t, 8> limits;
    for (const llvm::Argument& argument : kernel.args()) {
        const uint32_t id = parameters[argument.getArgNo()];
        if (!is_parameter(argument))
            return translation.refuse(head, "parameter " + std::to_string(argument.getArgNo()) +
                                                " is of a type that a kernel's parameter cannot have");
        const bool is_pointer = argument.getType()->isPointerTy();
        const Type& type = translation.types().get(translation.type_of(id));
        const unsigned space = type.kind == spv::OpTypeImage || type.kind == spv::OpTypePipe ? 1 : 0;
        spaces.push_back(is_pointer ? argument.getType()->getPointerAddressSpace() : space);
        access.push_back(access_name(type));
        types.push_back(type_name(translation, translation.type_of(id)));
        names.push_back(translation.annotations().name(id));
        all_qualifiers.push_back(qualifiers(translation, id));
        limits.push_back(memory_bytes_max(translation, head, id));
    }
    set_numbers(kernel, "kernel_arg_addr_space", spaces);
    set_strings(kernel, "kernel_arg_access_qual", access);
    set_strings(kernel, "kernel_arg_base_type", types);
    set_strings(kernel, "kernel_arg_type_qual", all_qualifiers);
    // The types of the source, if they were kept; clGetKernelArgInfo reports them.
    if (const auto kept =
            translation.annotations().string_with_prefix("kernel_arg_type." + kernel.getName().str() + "."))
        if (std::vector<std::string> of_source = split_types(*kept); of_source.size() == types.size()) {
            types = std::move(of_source);
            set_strings(kernel, "kernel_arg_name", names);
        }
    set_strings(kernel, "kernel_arg_type", types);
    if (std::ranges::any_of(limits, [](uint64_t limit) { return limit != std::numeric_limits<uint64_t>::max(); }))
        set_numbers(kernel, argument_bytes_max, limits);
    for (const ExecutionMode& mode : translation.annotations().execution_modes(head.result))
        apply_mode(translation, head, kernel, mode);
    apply_constant_size(translation, kernel);
}

}  // namespace polder::compiler::spirv
