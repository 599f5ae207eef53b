// Argument kinds, names and sizes come from Clang's kernel_arg_* metadata and the function's type; accesses from LLVM's argument
// attributes. The questions about the whole kernel (indirect pointers, program variables, work-groups, sub-groups) are
// computed by a walk over the call graph: each is true when an instruction that the kernel may reach makes it true.
#include "kernel_info.h"

#include "block_kernels.h"
#include "intrinsics.h"
#include "machine/retarget.h"
#include "program_variables.h"
#include "quick_kernels.h"

#include <algorithm>
#include <limits>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <optional>
#include <polder/image_abi.h>
#include <tuple>

namespace polder::compiler {
namespace {

using llvm::MDNode;

std::string string_at(const llvm::Function& function, const char* kind, unsigned index) {
    const MDNode* node = function.getMetadata(kind);
    if (node == nullptr || index >= node->getNumOperands())
        return {};
    const auto* text = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(index));
    return text != nullptr ? text->getString().str() : std::string{};
}

uint64_t number_at(const MDNode& node, unsigned index) {
    const auto* constant = llvm::mdconst::dyn_extract_or_null<llvm::ConstantInt>(node.getOperand(index));
    return constant != nullptr ? constant->getZExtValue() : 0;
}

AddressSpace address_space_of(const llvm::Function& kernel, unsigned index) {
    const MDNode* node = kernel.getMetadata("kernel_arg_addr_space");
    if (node == nullptr || index >= node->getNumOperands())
        return AddressSpace::private_;
    switch (number_at(*node, index)) {
    case spir64_address_spaces.global: return AddressSpace::global;
    case spir64_address_spaces.constant: return AddressSpace::constant;
    case spir64_address_spaces.local: return AddressSpace::local;
    default: return AddressSpace::private_;
    }
}

// A kernel may use an address without accessing the memory, as in `p != 0`, which captures the pointer. So `none` is only for an
// argument that is not captured either. Passing the pointer to a function that ignores it counts as a use.
Access access_of(const llvm::Argument& argument) {
    if (argument.use_empty() || (argument.hasAttribute(llvm::Attribute::ReadNone) && argument.hasNoCaptureAttr()))
        return Access::none;
    if (argument.onlyReadsMemory())
        return Access::read;
    return argument.hasAttribute(llvm::Attribute::WriteOnly) ? Access::write : Access::read_write;
}

bool has_word(const std::string& words, std::string_view word) { return words.find(word) != std::string::npos; }

bool starts_with(const std::string& text, std::string_view prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
}

// `image2d_t`, `sampler_t`, `pipe`, or a value.
ArgumentKind value_kind(const std::string& base_type, const std::string& qualifiers) {
    if (has_word(qualifiers, "pipe"))
        return ArgumentKind::pipe;
    if (base_type == "sampler_t")
        return ArgumentKind::sampler;
    if (base_type == "queue_t")
        return ArgumentKind::queue;
    return starts_with(base_type, "image") && base_type.size() > 2 &&
                   base_type.compare(base_type.size() - 2, 2, "_t") == 0 && base_type.find('*') == std::string::npos
               ? ArgumentKind::image
               : ArgumentKind::value;
}

ArgumentKind pointer_kind(AddressSpace space) {
    switch (space) {
    case AddressSpace::global: return ArgumentKind::global_pointer;
    case AddressSpace::constant: return ArgumentKind::constant_pointer;
    case AddressSpace::local: return ArgumentKind::local_pointer;
    case AddressSpace::private_: return ArgumentKind::value;
    }
    return ArgumentKind::value;
}

KernelArgument::ImageAccess image_access_of(const std::string& text) {
    using ImageAccess = KernelArgument::ImageAccess;
    if (text == "read_only")
        return ImageAccess::read_only;
    if (text == "write_only")
        return ImageAccess::write_only;
    return text == "read_write" ? ImageAccess::read_write : ImageAccess::none;
}

// How the code may access an image's elements; the argument itself points to the image's descriptor.
Access access_of(KernelArgument::ImageAccess access) {
    switch (access) {
    case KernelArgument::ImageAccess::read_only: return Access::read;
    case KernelArgument::ImageAccess::write_only: return Access::write;
    default: return Access::read_write;
    }
}

void set_size(KernelArgument& info, const llvm::Argument& argument) {
    const llvm::DataLayout& layout = argument.getParent()->getParent()->getDataLayout();
    llvm::Type* type = argument.getType();
    if (argument.hasByValAttr()) {
        type = argument.getParamByValType();
        info.alignment = static_cast<uint32_t>(argument.getParamAlign().valueOrOne().value());
    }
    info.alignment = std::max(info.alignment, static_cast<uint32_t>(layout.getABITypeAlign(type).value()));
    info.size = static_cast<uint32_t>(layout.getTypeAllocSize(type).getFixedValue());
}

KernelArgument argument_info(const llvm::Argument& argument) {
    const llvm::Function& kernel = *argument.getParent();
    const unsigned index = argument.getArgNo();
    KernelArgument info;
    info.address_space = address_space_of(kernel, index);
    info.name = string_at(kernel, "kernel_arg_name", index);
    info.type_name = string_at(kernel, "kernel_arg_type", index);
    const std::string qualifiers = string_at(kernel, "kernel_arg_type_qual", index);
    info.is_const = has_word(qualifiers, "const") || info.address_space == AddressSpace::constant;
    info.is_restrict = has_word(qualifiers, "restrict");
    info.is_volatile = has_word(qualifiers, "volatile");
    info.is_pipe = has_word(qualifiers, "pipe");
    const std::string base_type = string_at(kernel, "kernel_arg_base_type", index);
    const bool is_plain_pointer = argument.getType()->isPointerTy() && !argument.hasByValAttr();
    info.kind = value_kind(base_type, qualifiers);
    if (info.kind == ArgumentKind::value && is_plain_pointer)
        info.kind = pointer_kind(info.address_space);
    if (info.kind == ArgumentKind::image) {
        info.image_access = image_access_of(string_at(kernel, "kernel_arg_access_qual", index));
        info.image_type = base_type;
    }
    if (info.kind == ArgumentKind::image)
        info.access = argument.use_empty() ? Access::none : access_of(info.image_access);
    else if (info.kind == ArgumentKind::pipe)  // reading changes a pipe, too
        info.access = argument.use_empty() ? Access::none : Access::read_write;
    else if (is_plain_pointer)
        info.access = access_of(argument);
    if (const MDNode* limits = kernel.getMetadata(argument_bytes_max); limits != nullptr && is_plain_pointer)
        info.bytes_max = number_at(*limits, index);
    set_size(info, argument);
    return info;
}

uint32_t packed_bytes(const KernelArgument& argument) {
    return argument.kind == ArgumentKind::image ? sizeof(ImageDescriptor) : argument.size;
}

// "float4" for <4 x float>. LLVM's types have no sign; `is_signed` says which it is.
std::string opencl_type_name(llvm::Type* type, bool is_signed) {
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
        return opencl_type_name(vector->getElementType(), is_signed) + std::to_string(vector->getNumElements());
    if (type->isHalfTy())
        return "half";
    if (type->isFloatTy())
        return "float";
    if (type->isDoubleTy())
        return "double";
    const std::string prefix = is_signed ? "" : "u";
    switch (type->isIntegerTy() ? type->getIntegerBitWidth() : 32) {
    case 8: return prefix + "char";
    case 16: return prefix + "short";
    case 64: return prefix + "long";
    default: return prefix + "int";
    }
}

std::optional<std::array<uint64_t, 3>> size_of(const llvm::Function& kernel, const char* kind) {
    const MDNode* node = kernel.getMetadata(kind);
    if (node == nullptr || node->getNumOperands() != 3)
        return std::nullopt;
    return std::array{number_at(*node, 0), number_at(*node, 1), number_at(*node, 2)};
}

std::string size_attribute(const char* name, const std::optional<std::array<uint64_t, 3>>& size) {
    if (!size)
        return {};
    return std::string{name} + "(" + std::to_string((*size)[0]) + "," + std::to_string((*size)[1]) + "," +
           std::to_string((*size)[2]) + ")";
}

std::string vec_type_hint(const llvm::Function& kernel) {
    const MDNode* node = kernel.getMetadata("vec_type_hint");
    if (node == nullptr || node->getNumOperands() != 2)
        return {};
    const auto* value = llvm::dyn_cast_or_null<llvm::ValueAsMetadata>(node->getOperand(0));
    if (value == nullptr)
        return {};
    return "vec_type_hint(" + opencl_type_name(value->getType(), number_at(*node, 1) != 0) + ")";
}

std::optional<uint32_t> sub_group_size_of(const llvm::Function& kernel) {
    const MDNode* node = kernel.getMetadata("intel_reqd_sub_group_size");
    if (node == nullptr || node->getNumOperands() != 1)
        return std::nullopt;
    return static_cast<uint32_t>(number_at(*node, 0));
}

std::string sub_group_attribute(const std::optional<uint32_t>& size) {
    return size ? "intel_reqd_sub_group_size(" + std::to_string(*size) + ")" : std::string{};
}

std::string attributes_of(const llvm::Function& kernel, const KernelInfo& info) {
    std::string joined;
    for (const std::string& attribute :
         {vec_type_hint(kernel), size_attribute("work_group_size_hint", info.work_group_size_hint),
          size_attribute("reqd_work_group_size", info.reqd_work_group_size),
          sub_group_attribute(info.reqd_sub_group_size)})
        if (!attribute.empty())
            joined += (joined.empty() ? "" : " ") + attribute;
    return joined;
}

// Null when `instruction` is not a call, or calls through a pointer.
const llvm::Function* called_function(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call != nullptr ? call->getCalledFunction() : nullptr;
}

bool is_indirect_call(const llvm::Instruction& instruction) {
    return llvm::isa<llvm::CallBase>(instruction) && called_function(instruction) == nullptr;
}

using InstructionTest = bool(const llvm::Instruction& instruction);

// Calls `visit` for the instructions of the kernel and of the functions that it calls. A `visit` that returns true ends the walk. Returns whether
// one did.
template <class Visit>
bool walk_instructions(const llvm::Function& kernel, const Visit& visit) {
    llvm::SmallSetVector<const llvm::Function*, 16> reached;
    reached.insert(&kernel);
    for (size_t i = 0; i < reached.size(); ++i) {
        for (const llvm::Instruction& instruction : llvm::instructions(*reached[i])) {
            if (visit(instruction))
                return true;
            const llvm::Function* callee = called_function(instruction);
            if (callee != nullptr && !callee->isDeclaration())
                reached.insert(callee);
        }
    }
    return false;
}

// Whether the kernel, or a function that it calls, has an instruction for which `is_one` is true.
bool any_instruction(const llvm::Function& kernel, InstructionTest& is_one) {
    return walk_instructions(kernel, is_one);
}

// --- pointers that are loaded from memory or converted from integers ---

bool makes_indirect_pointer(const llvm::Instruction& instruction) {
    if (llvm::isa<llvm::LoadInst>(instruction))
        return instruction.getType()->isPtrOrPtrVectorTy();
    return llvm::isa<llvm::IntToPtrInst>(instruction) || is_indirect_call(instruction);
}

bool uses_program_variables(const llvm::Instruction& instruction) {
    const llvm::Function* callee = called_function(instruction);
    return callee != nullptr && callee->getName() == program_variables_function;
}

// --- dependence on the grouping of work-items; an uncertain case counts as dependent ---

bool is_same_in_all_groups(llvm::StringRef intrinsic) {
    return intrinsic == "_Z13get_global_idj" || intrinsic == "_Z15get_global_sizej" ||
           intrinsic == "_Z17get_global_offsetj" || intrinsic == "_Z20get_global_linear_idv" ||
           intrinsic == "_Z12get_work_dimv" || intrinsic == "_polder_launch_context" ||
           intrinsic == program_variables_function;
}

// A variable in local memory, or the address of one in an expression.
bool is_local_memory(const llvm::Value* value) {
    if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(value))
        return variable->hasAttribute(local_variable_attribute);
    const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    return constant != nullptr && !llvm::isa<llvm::GlobalValue>(constant) &&
           std::any_of(constant->value_op_begin(), constant->value_op_end(), is_local_memory);
}

bool sees_work_groups(const llvm::Instruction& instruction) {
    const llvm::Function* callee = called_function(instruction);
    const bool asks = callee != nullptr && is_work_group_intrinsic(std::string_view{callee->getName()}) &&
                      !is_same_in_all_groups(callee->getName());
    return asks || is_indirect_call(instruction) ||
           std::any_of(instruction.value_op_begin(), instruction.value_op_end(), is_local_memory);
}

bool uses_sub_groups(const llvm::Instruction& instruction) {
    const llvm::Function* callee = called_function(instruction);
    return callee != nullptr && callee->getName().starts_with("_polder_sub_group_");
}

bool is_barrier(const llvm::Instruction& instruction) {
    const llvm::Function* callee = called_function(instruction);
    return callee != nullptr && is_barrier_intrinsic(std::string_view{callee->getName()});
}

// Small variables are most often in registers once the kernel is optimized.
constexpr uint64_t large_variable_bytes = 1024;

uint64_t large_variables(const llvm::Function& kernel) {
    const llvm::DataLayout& layout = kernel.getParent()->getDataLayout();
    uint64_t sum = 0;
    static_cast<void>(walk_instructions(kernel, [&](const llvm::Instruction& instruction) {
        const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
        const auto size = variable != nullptr ? variable->getAllocationSize(layout) : std::nullopt;
        const uint64_t bytes = size && !size->isScalable() ? size->getFixedValue() : 0;
        if (bytes >= large_variable_bytes && __builtin_add_overflow(sum, bytes, &sum))
            sum = std::numeric_limits<uint64_t>::max();
        return sum == std::numeric_limits<uint64_t>::max();
    }));
    return sum;
}

bool enqueues_blocks(const llvm::Instruction& instruction) {
    const llvm::Function* callee = called_function(instruction);
    return callee != nullptr && is_device_enqueue(callee->getName());
}

bool takes_local_memory(const KernelInfo& info) {
    return std::any_of(info.arguments.begin(), info.arguments.end(),
                       [](const KernelArgument& argument) { return argument.kind == ArgumentKind::local_pointer; });
}

// Code for images is made for their formats.
bool has_objects(const KernelInfo& info) {
    return std::any_of(info.arguments.begin(), info.arguments.end(), [](const KernelArgument& argument) {
        return argument.kind == ArgumentKind::image || argument.kind == ArgumentKind::sampler ||
               argument.kind == ArgumentKind::pipe || argument.kind == ArgumentKind::queue;
    });
}

KernelInfo kernel_info(const llvm::Function& kernel) {
    KernelInfo info;
    info.name = kernel.getName().str();
    uint64_t offset = 0;
    for (const llvm::Argument& argument : kernel.args()) {
        info.arguments.push_back(argument_info(argument));
        KernelArgument& packed = info.arguments.back();
        offset = llvm::alignTo(offset, packed.alignment);
        packed.offset = static_cast<uint32_t>(offset);
        offset += packed_bytes(packed);
    }
    info.arguments_size = static_cast<uint32_t>(offset);
    info.reqd_work_group_size = size_of(kernel, "reqd_work_group_size");
    info.work_group_size_hint = size_of(kernel, "work_group_size_hint");
    info.reqd_sub_group_size = sub_group_size_of(kernel);
    info.attributes = attributes_of(kernel, info);
    // Clang keeps the names for -cl-kernel-arg-info only.
    info.has_argument_info = kernel.getMetadata("kernel_arg_name") != nullptr;
    info.enqueues_blocks = any_instruction(kernel, enqueues_blocks);
    // A kernel that enqueues blocks may enqueue any block of the program, so it counts as doing everything that a block may do.
    info.uses_indirect_pointers = info.enqueues_blocks || any_instruction(kernel, makes_indirect_pointer);
    info.uses_program_variables = info.enqueues_blocks || any_instruction(kernel, uses_program_variables);
    info.uses_sub_groups = any_instruction(kernel, uses_sub_groups);
    if (info.uses_sub_groups || any_instruction(kernel, is_barrier))
        info.private_bytes_over_barriers = large_variables(kernel);
    info.sees_work_groups = takes_local_memory(info) || any_instruction(kernel, sees_work_groups);
    if (!info.uses_sub_groups && !info.enqueues_blocks && !has_objects(info))
        std::tie(info.quick_work, info.quick_factors) = quick_work(kernel);
    return info;
}

}  // namespace

bool is_kernel(const llvm::Function& function) {
    return !function.isDeclaration() && function.hasFnAttribute(kernel_attribute);
}

namespace {

std::vector<KernelInfo> infos_of(const llvm::Module& module, bool (*is_wanted)(const llvm::Function&)) {
    std::vector<KernelInfo> infos;
    for (const llvm::Function& function : module)
        if (is_kernel(function) && is_wanted(function))
            infos.push_back(kernel_info(function));
    std::sort(infos.begin(), infos.end(), [](const KernelInfo& a, const KernelInfo& b) { return a.name < b.name; });
    return infos;
}

bool is_block(const llvm::Function& function) { return function.hasFnAttribute(block_attribute); }

}  // namespace

std::vector<KernelInfo> kernel_infos(const llvm::Module& module) {
    return infos_of(module, [](const llvm::Function& function) { return !is_block(function); });
}

std::vector<KernelInfo> block_infos(const llvm::Module& module) { return infos_of(module, is_block); }

}  // namespace polder::compiler
