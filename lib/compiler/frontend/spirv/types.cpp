// Each type instruction is checked and converted when it is met; pointers to structures that are declared later get LLVM's opaque
// pointer type at once.
#include "types.h"

#include <llvm/IR/DataLayout.h>

namespace polder::compiler::spirv {
namespace {

constexpr uint32_t depth_max = 255;  // SPIR-V specification 2.17, structure nesting depth
constexpr uint64_t bytes_max = uint64_t{1} << 40;  // more than any device has

Error refuse(const std::string& why) { return Error{Status::compile_program_failure, why}; }

// An upper estimate; bytes_max for what is larger.
uint64_t bytes_of(llvm::Type* type) {
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type)) {
        const uint64_t element = bytes_of(array->getElementType());
        const uint64_t count = array->getNumElements();
        return element != 0 && count > bytes_max / element ? bytes_max : element * count;
    }
    if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
        uint64_t sum = 0;
        for (llvm::Type* member : structure->elements())
            sum = std::min(bytes_max, sum + bytes_of(member) + 128);
        return sum;
    }
    return 256;
}

bool is_data(const Type& type) {
    return type.llvm != nullptr && !type.llvm->isVoidTy() && !type.llvm->isFunctionTy() && type.llvm->isSized();
}

// OpenCL's images: one to three dimensions or a buffer, one sample, an access. The operands are kept for the names of functions.
Result<void> make_image(llvm::LLVMContext& context, const Instruction& instruction, Type& type) {
    const uint32_t dimension = instruction.operand(1), is_array = instruction.operand(3),
                   samples = instruction.operand(4);
    const bool is_plain = dimension == spv::Dim1D || dimension == spv::Dim2D;
    const bool is_whole = dimension == spv::Dim3D || dimension == spv::DimBuffer;
    if (!is_plain && (!is_whole || is_array != 0))
        return fail(refuse("kernels have no images of this dimension"));
    if (samples != 0)
        return fail(refuse("kernels have no images of several samples"));
    if (instruction.operand(2) == 1 && dimension != spv::Dim2D)
        return fail(refuse("images of depth have two dimensions"));
    type.literals.assign(instruction.operands.begin(), instruction.operands.end());
    type.literals.resize(8);  // without an access, an image is read only
    type.llvm = llvm::TargetExtType::get(context, "spirv.Image", {llvm::Type::getVoidTy(context)},
                                         llvm::ArrayRef(type.literals).drop_front());
    return {};
}

// A pipe is read or written, never both.
Result<void> make_pipe(llvm::LLVMContext& context, const Instruction& instruction, Type& type) {
    const uint32_t access = instruction.operand(0);
    if (access > spv::AccessQualifierWriteOnly)
        return fail(refuse("kernels have no pipes that are both read and written"));
    type.literals = {access};
    type.llvm = llvm::TargetExtType::get(context, "spirv.Pipe", {}, {access});
    return {};
}

}  // namespace

llvm::Type* reservation_type(llvm::LLVMContext& context) {
    return llvm::TargetExtType::get(context, "spirv.ReserveId");
}

llvm::Type* queue_type(llvm::LLVMContext& context) { return llvm::TargetExtType::get(context, "spirv.Queue"); }

llvm::Type* device_event_type(llvm::LLVMContext& context) {
    return llvm::TargetExtType::get(context, "spirv.DeviceEvent");
}

std::optional<unsigned> address_space(spv::StorageClass storage) {
    switch (storage) {
    case spv::StorageClassFunction:
    case spv::StorageClassInput:
    case spv::StorageClassPrivate: return 0;
    case spv::StorageClassCrossWorkgroup: return 1;
    case spv::StorageClassUniformConstant: return 2;
    case spv::StorageClassWorkgroup: return 3;
    case spv::StorageClassGeneric: return 4;
    default: return std::nullopt;
    }
}

const Type& Types::get(uint32_t id) const {
    static const Type none;
    const auto found = types_.find(id);
    return found == types_.end() ? none : found->second;
}

void Types::add_forward_pointer(uint32_t id, spv::StorageClass storage) {
    Type type{.kind = spv::OpTypePointer, .storage = storage};
    if (make_pointer(type))
        types_[id] = type;
}

Result<void> Types::add(const Instruction& instruction, uint64_t length, bool is_packed, const std::string& name) {
    Type type{.kind = instruction.opcode};
    if (instruction.opcode == spv::OpTypeStruct)
        POLDER_TRY(make_structure(instruction, type, is_packed, name));
    else
        POLDER_TRY(make(instruction, type, length));
    if (type.kind == spv::OpTypePointer && points_to(type, instruction.result))
        return fail(refuse("the pointer points to itself, or through too many pointers"));
    types_[instruction.result] = std::move(type);
    return {};
}

// SPIR-V allows only pointers to structures to be declared before the type that they point to. This finds pointers that break the rule.
bool Types::points_to(const Type& pointer, uint32_t id) const {
    uint32_t steps = 0;
    for (uint32_t at = pointer.element; get(at).kind == spv::OpTypePointer; at = get(at).element)
        if (at == id || ++steps > depth_max)
            return true;
    return false;
}

Result<void> Types::make(const Instruction& instruction, Type& type, uint64_t length) {
    switch (instruction.opcode) {
    case spv::OpTypeVoid: type.llvm = llvm::Type::getVoidTy(context_); return {};
    case spv::OpTypeBool: type.llvm = llvm::Type::getInt1Ty(context_); return {};
    case spv::OpTypeInt:
    case spv::OpTypeFloat: type.width = instruction.operand(0); return make_scalar(type);
    case spv::OpTypeVector:
    case spv::OpTypeArray:
        type.element = instruction.operand(0);
        type.count = instruction.opcode == spv::OpTypeVector ? instruction.operand(1) : length;
        return make_array(type);
    case spv::OpTypePointer:
        type.storage = static_cast<spv::StorageClass>(instruction.operand(0));
        type.element = instruction.operand(1);
        return make_pointer(type);
    case spv::OpTypeFunction: return make_function(instruction, type);
    case spv::OpTypeImage: return make_image(context_, instruction, type);
    case spv::OpTypeSampler: type.llvm = llvm::TargetExtType::get(context_, "spirv.Sampler"); return {};
    case spv::OpTypeSampledImage: {
        type.element = instruction.operand(0);
        if (get(type.element).kind != spv::OpTypeImage)
            return fail(refuse("the type is not that of an image"));
        llvm::Type* sampler = llvm::TargetExtType::get(context_, "spirv.Sampler");
        type.llvm = llvm::StructType::get(context_, {get(type.element).llvm, sampler});
        return {};
    }
    case spv::OpTypeEvent: type.llvm = llvm::TargetExtType::get(context_, "spirv.Event"); return {};
    case spv::OpTypePipe: return make_pipe(context_, instruction, type);
    case spv::OpTypeReserveId: type.llvm = reservation_type(context_); return {};
    case spv::OpTypeQueue: type.llvm = queue_type(context_); return {};
    case spv::OpTypeDeviceEvent: type.llvm = device_event_type(context_); return {};
    case spv::OpTypeOpaque: type.llvm = llvm::StructType::create(context_, instruction.text(0)); return {};
    default: return fail(refuse("this type is not supported"));
    }
}

Result<void> Types::make_scalar(Type& type) {
    if (type.kind == spv::OpTypeInt) {
        if (type.width != 8 && type.width != 16 && type.width != 32 && type.width != 64)
            return fail(refuse("integers of " + std::to_string(type.width) + " bits are not supported"));
        type.llvm = llvm::Type::getIntNTy(context_, type.width);
        return {};
    }
    switch (type.width) {
    case 16: type.llvm = llvm::Type::getHalfTy(context_); return {};
    case 32: type.llvm = llvm::Type::getFloatTy(context_); return {};
    case 64: type.llvm = llvm::Type::getDoubleTy(context_); return {};
    default: return fail(refuse("floating-point numbers of " + std::to_string(type.width) + " bits are not supported"));
    }
}

Result<void> Types::make_array(Type& type) {
    const Type& element = get(type.element);
    type.depth = element.depth + 1;
    if (!is_data(element) || type.depth > depth_max)
        return fail(refuse("the element's type cannot be that of an element, or is nested too deeply"));
    if (type.kind == spv::OpTypeVector) {
        if (type.count < 2 || type.count > 16 || !llvm::VectorType::isValidElementType(element.llvm))
            return fail(refuse("a vector has 2 to 16 numbers or pointers"));
        type.llvm = llvm::FixedVectorType::get(element.llvm, static_cast<unsigned>(type.count));
        return {};
    }
    if (type.count > bytes_max / std::max<uint64_t>(1, bytes_of(element.llvm)))
        return fail(refuse("the array is larger than any memory"));
    type.llvm = llvm::ArrayType::get(element.llvm, type.count);
    return {};
}

Result<void> Types::make_structure(const Instruction& instruction, Type& type, bool is_packed,
                                   const std::string& name) {
    std::vector<llvm::Type*> elements;
    for (const uint32_t id : instruction.operands) {
        const Type& member = get(id);
        type.depth = std::max(type.depth, member.depth + 1);
        if (!is_data(member))
            return fail(
                refuse("the type of member " + std::to_string(elements.size()) + " cannot be that of a member"));
        type.members.push_back(id);
        elements.push_back(member.llvm);
    }
    auto* structure = llvm::StructType::create(context_, elements, name.empty() ? "structure" : name, is_packed);
    if (type.depth > depth_max || bytes_of(structure) >= bytes_max)
        return fail(refuse("the structure is nested too deeply, or larger than any memory"));
    type.llvm = structure;
    return {};
}

Result<void> Types::make_pointer(Type& type) {
    const auto space = address_space(type.storage);
    if (!space)
        return fail(refuse("kernels have no pointers of storage class " + std::to_string(type.storage)));
    type.llvm = llvm::PointerType::get(context_, *space);
    return {};
}

Result<void> Types::make_function(const Instruction& instruction, Type& type) {
    type.element = instruction.operand(0);
    std::vector<llvm::Type*> parameters;
    for (const uint32_t id : instruction.operands.subspan(std::min<size_t>(1, instruction.operands.size()))) {
        if (!is_data(get(id)))
            return fail(refuse("the type of parameter " + std::to_string(parameters.size()) + " is not one of data"));
        type.members.push_back(id);
        parameters.push_back(llvm(id));
    }
    llvm::Type* result = llvm(type.element);
    if (result == nullptr || (!result->isVoidTy() && !is_data(get(type.element))))
        return fail(refuse("the type of the result is not one of data"));
    type.llvm = llvm::FunctionType::get(result, parameters, false);
    return {};
}

}  // namespace polder::compiler::spirv
