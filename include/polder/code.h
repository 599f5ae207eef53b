// The code of kernels between compiler and driver: the kind of code that a device executes (CodeTarget), the code of one kernel
// (KernelCode), and the kernel's limits after it was loaded (KernelLimits).
//
// The compiler generates code for each distinct CodeTarget of a context's devices. Only lib/compiler uses LLVM; only a driver uses
// a vendor's compiler (CUDA's for PTX, another OpenCL's for SPIR-V or source).
//
// Plain data without locks. Sizes are in bytes.
#pragma once

#include <cstdint>
#include <polder/image_limits.h>
#include <polder/kernel_abi.h>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace polder::driver {

enum class CodeFormat : uint8_t {
    host_function,  // a work-group function in this process (kernel_abi.h)
    ptx,  // NVIDIA's assembly text (ptx_abi.h)
    spirv,  // a SPIR-V module
    opencl_c,  // a SourceProgram, for a driver that compiles it
};

// The properties of a device that its code depends on. Devices with equal targets share code.
struct CodeTarget {
    CodeFormat format = CodeFormat::host_function;
    // PTX: such as "sm_90". Host functions: empty, which means the processor that this process runs on.
    std::string processor;
    // The number of work-items in a sub-group. 0: the compiler chooses it.
    uint32_t sub_group_size = 0;
    // The local memory that a work-group can have. Building a kernel whose local variables need more fails.
    uint64_t local_memory_bytes = 0;

    friend bool operator==(const CodeTarget&, const CodeTarget&) = default;
};

// A work-group function, for devices that execute on the host.
struct HostCode {
    WorkGroupFunction function = nullptr;
    uint64_t local_bytes = 0;  // the kernel's own __local variables
    uint64_t scratch_bytes_per_work_item = 0;
    uint64_t stack_bytes = 0;
    uint64_t private_bytes_per_work_item = 0;
    uint64_t preferred_multiple = 1;  // the vector width
    bool flushes_subnormals = false;  // it may compute with zeros in their place (-cl-denorms-are-zero)
    std::string name;  // of the kernel, for messages
};

// One parameter of a kernel, for drivers that set them one by one.
struct KernelParameter {
    enum class Kind : uint8_t {
        value,
        global_pointer,
        constant_pointer,
        local_pointer,
        image,  // an ImageDescriptor (image_abi.h), whose rows are in the device's memory; all zeros when the kernel does not use it
        sampler,  // its bits (image_abi.h)
    } kind = Kind::value;
    uint32_t offset = 0;  // within the packed arguments
    uint32_t size = 0;
    // Of images.
    ImageType image_type = ImageType::image_2d;
    ImageUse image_use = ImageUse::read_write;
};

// Receives one finished printf text, which is not null-terminated.
using PrintText = void (*)(void* user, const char* text, size_t size);
// Formats the records that kernels wrote to a printf ring (ptx_abi.h): `records` are the bytes after the ring's header.
using PrintRing = void (*)(std::span<const std::byte> records, PrintText print, void* user);

// One translation unit of a program, for a driver that compiles it itself.
struct SourceUnit {
    enum class Language : uint8_t { opencl_c, spirv } language = Language::opencl_c;
    std::string text;  // the source; for SPIR-V, the bytes of the module
    std::string options;  // the build options that the application passed
    struct Header {
        std::string name;  // as #include names it
        std::string text;
    };
    std::vector<Header> headers;
    struct Constant {
        uint32_t id = 0;  // the SpecId of a specialization constant
        std::string value;
    };
    std::vector<Constant> constants;
};

// A program as the application passed it. The driver compiles it unit by unit, then links the units. The driver's compiler allocates the
// program-scope variables, so the driver must load all kernels with the same `id` from one build.
struct SourceProgram {
    uint64_t id = 0;  // unique in the process
    std::vector<SourceUnit> units;
    std::string link_options;
    // True: there is one unit, and clBuildProgram compiles and links it with the unit's options.
    bool is_build = false;
};

// Text or binary code with the kernel's name in it. What the members point to is valid during Device::load only.
struct TargetCode {
    CodeFormat format = CodeFormat::ptx;
    std::string_view code;
    const SourceProgram* program = nullptr;  // for opencl_c; `code` is that of ProgramBinaries then, or empty
    std::string entry;  // the name of the kernel in `code`
    std::span<const KernelParameter> parameters;
    uint32_t arguments_size = 0;  // bytes of the packed arguments, without the hidden arguments
    uint64_t local_bytes = 0;  // the kernel's own __local variables
    // How many of `local_bytes` the code expects in the local memory that the driver gives to each work-group, in front
    // of the __local arguments. The rest is reserved by the code itself.
    uint64_t dynamic_local_bytes = 0;
    // Set when the kernel prints: its launches need a ring.
    PrintRing print = nullptr;
    uint64_t preferred_multiple = 1;  // the number of work-items in a sub-group
};

using KernelCode = std::variant<HostCode, TargetCode>;

// The limits and needs of one kernel on one device.
struct KernelLimits {
    uint64_t max_work_group_size = 0;  // 0: as many work-items as the device allows
    uint64_t local_bytes = 0;  // the kernel's own __local variables
    uint64_t private_bytes_per_work_item = 0;
    uint32_t registers_per_work_item = 0;  // 0: not known
    uint64_t preferred_multiple = 1;  // CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE
};

}  // namespace polder::driver
