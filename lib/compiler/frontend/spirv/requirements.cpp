// Tables list the capabilities and extensions that the translation supports, with the device extension that each needs. Each
// requirement of the module is looked up; the first one without support is reported.
#include "requirements.h"

#include <compiler/spirv.h>

#include <algorithm>
#include <array>

namespace polder::compiler::spirv {
namespace {

// Whether a device reports a capability, or modules may declare it although the device does not have all of it.
enum class Offer : uint8_t { reported, tolerated };

// A capability, and the device's extension or feature that it follows from; empty: every device has it.
struct Capability {
    spv::Capability capability;
    std::string_view needs;
    Offer offer = Offer::reported;
};

constexpr std::array capabilities{
    Capability{spv::CapabilityAddresses, ""},
    Capability{spv::CapabilityLinkage, ""},
    Capability{spv::CapabilityKernel, ""},
    Capability{spv::CapabilityVector16, ""},
    Capability{spv::CapabilityFloat16Buffer, ""},
    // LLVM's backend declares it for vload_half and vstore_half, which every device has; arithmetic needs the extension.
    Capability{spv::CapabilityFloat16, "", Offer::tolerated},
    Capability{spv::CapabilityFloat16, "cl_khr_fp16"},
    Capability{spv::CapabilityFloat64, "cl_khr_fp64"},
    Capability{spv::CapabilityInt64, ""},
    Capability{spv::CapabilityInt64Atomics, "cl_khr_int64_base_atomics"},
    Capability{spv::CapabilityInt16, ""},
    Capability{spv::CapabilityInt8, ""},
    Capability{spv::CapabilityGroups, ""},
    Capability{spv::CapabilityPipes, "__opencl_c_pipes"},
    Capability{spv::CapabilityDeviceEnqueue, "__opencl_c_device_enqueue"},
    Capability{spv::CapabilityGenericPointer, "__opencl_c_generic_address_space"},
    Capability{spv::CapabilityImageBasic, "__opencl_c_images"},
    Capability{spv::CapabilityLiteralSampler, "__opencl_c_images"},
    Capability{spv::CapabilitySampled1D, "__opencl_c_images"},
    Capability{spv::CapabilityImage1D, "__opencl_c_images"},
    Capability{spv::CapabilitySampledBuffer, "__opencl_c_images"},
    Capability{spv::CapabilityImageBuffer, "__opencl_c_images"},
    Capability{spv::CapabilityImageReadWrite, "__opencl_c_read_write_images"},
    Capability{spv::CapabilitySubgroupDispatch, "__opencl_c_subgroups"},
    Capability{spv::CapabilityUniformDecoration, ""},  // a hint, which the translation does not use
    Capability{spv::CapabilityDenormPreserve, ""},
    Capability{spv::CapabilitySignedZeroInfNanPreserve, ""},
    Capability{spv::CapabilityRoundingModeRTE, ""},
    Capability{spv::CapabilityExpectAssumeKHR, "cl_khr_expect_assume"},
    Capability{spv::CapabilityBitInstructions, "cl_khr_extended_bit_ops"},
    Capability{spv::CapabilityDotProduct, "cl_khr_integer_dot_product"},
    Capability{spv::CapabilityDotProductInputAll, "cl_khr_integer_dot_product"},
    Capability{spv::CapabilityDotProductInput4x8Bit, "cl_khr_integer_dot_product"},
    Capability{spv::CapabilityDotProductInput4x8BitPacked, "cl_khr_integer_dot_product"},
    Capability{spv::CapabilityAtomicFloat16AddEXT, "__opencl_c_ext_fp16_global_atomic_add"},
    Capability{spv::CapabilityAtomicFloat16MinMaxEXT, "__opencl_c_ext_fp16_global_atomic_min_max"},
    Capability{spv::CapabilityAtomicFloat32AddEXT, "cl_ext_float_atomics"},
    Capability{spv::CapabilityAtomicFloat64AddEXT, "cl_ext_float_atomics"},
    Capability{spv::CapabilityAtomicFloat32MinMaxEXT, "cl_ext_float_atomics"},
    Capability{spv::CapabilityAtomicFloat64MinMaxEXT, "cl_ext_float_atomics"},
    Capability{spv::CapabilitySubgroupShuffleINTEL, "cl_intel_subgroups"},
    Capability{spv::CapabilitySubgroupBufferBlockIOINTEL, "cl_intel_subgroups"},
    Capability{spv::CapabilitySubgroupImageBlockIOINTEL, "cl_intel_subgroups"},
    Capability{spv::CapabilityOptNoneINTEL, ""},
    Capability{spv::CapabilityFPFastMathModeINTEL, ""},
    Capability{spv::CapabilityMemoryAccessAliasingINTEL, ""},
    Capability{spv::CapabilityGroupUniformArithmeticKHR, "cl_khr_work_group_uniform_arithmetic"},
    Capability{spv::CapabilityShaderClockKHR, "cl_khr_kernel_clock"},
    Capability{spv::CapabilityGroupNonUniform, "cl_khr_subgroup_non_uniform_vote"},
    Capability{spv::CapabilityGroupNonUniformVote, "cl_khr_subgroup_non_uniform_vote"},
    Capability{spv::CapabilityGroupNonUniformArithmetic, "cl_khr_subgroup_non_uniform_arithmetic"},
    Capability{spv::CapabilityGroupNonUniformBallot, "cl_khr_subgroup_ballot"},
    Capability{spv::CapabilityGroupNonUniformShuffle, "cl_khr_subgroup_shuffle"},
    Capability{spv::CapabilityGroupNonUniformShuffleRelative, "cl_khr_subgroup_shuffle_relative"},
    Capability{spv::CapabilityGroupNonUniformClustered, "cl_khr_subgroup_clustered_reduce"},
    Capability{spv::CapabilityGroupNonUniformRotateKHR, "cl_khr_subgroup_rotate"},
};

// An extension that adds nothing but capabilities (checked above), decorations that may be ignored, or instructions that are
// translated; and the device's extension that its capabilities follow from.
struct SpirvExtension {
    const char* name;
    std::string_view needs;
};

constexpr std::array extensions{
    SpirvExtension{"SPV_KHR_no_integer_wrap_decoration", "cl_khr_spirv_no_integer_wrap_decoration"},
    SpirvExtension{"SPV_KHR_linkonce_odr", "cl_khr_spirv_linkonce_odr"},
    SpirvExtension{"SPV_KHR_expect_assume", "cl_khr_expect_assume"},
    SpirvExtension{"SPV_KHR_float_controls", ""},
    SpirvExtension{"SPV_KHR_bit_instructions", "cl_khr_extended_bit_ops"},
    SpirvExtension{"SPV_KHR_integer_dot_product", "cl_khr_integer_dot_product"},
    SpirvExtension{"SPV_KHR_subgroup_rotate", "cl_khr_subgroup_rotate"},
    SpirvExtension{"SPV_KHR_uniform_group_instructions", "cl_khr_work_group_uniform_arithmetic"},
    SpirvExtension{"SPV_KHR_shader_clock", "cl_khr_kernel_clock"},
    SpirvExtension{"SPV_KHR_non_semantic_info", ""},
    SpirvExtension{"SPV_EXT_shader_atomic_float_add", "cl_ext_float_atomics"},
    SpirvExtension{"SPV_EXT_shader_atomic_float16_add", "__opencl_c_ext_fp16_global_atomic_add"},
    SpirvExtension{"SPV_INTEL_subgroups", "cl_intel_spirv_subgroups"},
    SpirvExtension{"SPV_INTEL_optnone", ""},
    SpirvExtension{"SPV_EXT_relaxed_printf_string_address_space", ""},
    SpirvExtension{"SPV_EXT_shader_atomic_float_min_max", "cl_ext_float_atomics"},
    SpirvExtension{"SPV_INTEL_fp_fast_math_mode", ""},
    SpirvExtension{"SPV_INTEL_memory_access_aliasing", ""},
    SpirvExtension{"SPV_KHR_16bit_storage", ""},
};

constexpr std::array<const char*, 2> instruction_sets{"OpenCL.std", "OpenCL.DebugInfo.100"};

bool has(const Target& target, std::string_view name) {
    return name.empty() ||
           std::find(target.extensions.begin(), target.extensions.end(), name) != target.extensions.end() ||
           std::find(target.features.begin(), target.features.end(), name) != target.features.end();
}

// Why the capability is not supported; empty when it is.
std::string missing_capability(uint32_t number, const Target& target) {
    const auto found = std::find_if(capabilities.begin(), capabilities.end(), [&](const Capability& each) {
        return static_cast<uint32_t>(each.capability) == number;
    });
    if (found == capabilities.end())
        return "the capability " + std::to_string(number) + " is not supported";
    if (!has(target, found->needs))
        return "the capability " + std::to_string(number) + " needs " + std::string{found->needs} +
               ", which the device does not have";
    return {};
}

std::string missing_model(const Instruction& instruction) {
    if (instruction.operand(0) != spv::AddressingModelPhysical64)
        return "the addressing model must be Physical64: the device's addresses have 64 bits";
    return instruction.operand(1) == spv::MemoryModelOpenCL ? "" : "the memory model must be OpenCL";
}

std::string missing_extension(const std::string& name) {
    const bool is_known = std::ranges::find(extensions, name, &SpirvExtension::name) != extensions.end();
    return is_known ? "" : "the extension " + name + " is not supported";
}

std::string missing_instruction_set(const std::string& name) {
    const bool is_known =
        std::ranges::find(instruction_sets, name) != instruction_sets.end() || name.starts_with("NonSemantic.");
    return is_known ? "" : "the instruction set " + name + " is not supported";
}

// SubgroupDispatch, which devices without queues have, too, brings these instructions with it.
bool is_device_enqueue(spv::Op opcode) {
    return (opcode >= spv::OpEnqueueMarker && opcode <= spv::OpBuildNDRange) ||
           opcode == spv::OpGetKernelLocalSizeForSubgroupCount || opcode == spv::OpGetKernelMaxNumSubgroups;
}

std::string missing(const Instruction& instruction, const Target& target) {
    if (is_device_enqueue(instruction.opcode) && !has(target, "__opencl_c_device_enqueue"))
        return "the device has no queues of its own";
    switch (instruction.opcode) {
    case spv::OpCapability: return missing_capability(instruction.operand(0), target);
    case spv::OpMemoryModel: return missing_model(instruction);
    case spv::OpExtension: return missing_extension(instruction.text(0));
    case spv::OpExtInstImport: return missing_instruction_set(instruction.text(0));
    case spv::OpEntryPoint:
        return instruction.operand(0) == spv::ExecutionModelKernel ? "" : "the execution model must be Kernel";
    default: return {};
    }
}

}  // namespace

Result<void> check_requirements(const Binary& binary, const Target& target, std::string& log) {
    bool is_complete = true;
    for (const Instruction& instruction : binary.instructions()) {
        const std::string why = missing(instruction, target);
        if (why.empty())
            continue;
        log += "error: SPIR-V, instruction " + std::to_string(instruction.number) + ", " + name_of(instruction.opcode) +
               ": " + why + "\n";
        is_complete = false;
    }
    return is_complete ? Result<void>{} : fail(Status::compile_program_failure);
}

}  // namespace polder::compiler::spirv

namespace polder::compiler {

std::span<const char* const> spirv_instruction_sets() { return spirv::instruction_sets; }

std::vector<const char*> spirv_extensions(const Target& target) {
    std::vector<const char*> names;
    for (const spirv::SpirvExtension& extension : spirv::extensions)
        if (spirv::has(target, extension.needs))
            names.push_back(extension.name);
    return names;
}

std::vector<uint32_t> spirv_capabilities(const Target& target) {
    std::vector<uint32_t> numbers;
    for (const spirv::Capability& each : spirv::capabilities)
        if (each.offer == spirv::Offer::reported && spirv::has(target, each.needs))
            numbers.push_back(static_cast<uint32_t>(each.capability));
    return numbers;
}

}  // namespace polder::compiler
