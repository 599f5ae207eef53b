// ProgramBinaries: an optional ability of a device whose driver compiles programs itself (CodeFormat::opencl_c). Its machine code can be stored
// in program binaries, and the application may pass binaries that it got from the implementation behind the driver.
//
// Machine code says who made it, so that another version of the implementation refuses it. Any thread.
#pragma once

#include <polder/driver.h>

namespace polder::driver {

// A kernel in machine code, as far as the implementation reports it.
struct MachineCodeKernel {
    struct Parameter {
        KernelParameter::Kind kind = KernelParameter::Kind::value;
        uint32_t size = 0;  // for clSetKernelArg
        // Of images.
        ImageType image_type = ImageType::image_2d;
        ImageUse image_use = ImageUse::read_write;
    };
    std::string name;
    std::vector<Parameter> parameters;
    uint64_t reqd_work_group_size[3] = {};  // zeros: any
};

class ProgramBinaries {
public:
    virtual ~ProgramBinaries() = default;
    // The machine code of the program that `kernel`, one of this device's, is a part of. A later process may pass it to Device::load as
    // TargetCode::code: together with the program, which the driver compiles when it cannot use the machine code; or, if it is that of
    // `read`, with a program without units. Empty when the implementation gives none.
    [[nodiscard]] virtual std::string machine_code_of(const LoadedKernel& kernel) = 0;
    struct Binary {
        std::string machine_code;
        std::vector<MachineCodeKernel> kernels;  // sorted by name
    };
    // Examines bytes that the application got from the implementation itself. invalid_binary when it refuses them, or when a kernel takes
    // parameters that cannot be found out.
    [[nodiscard]] virtual Result<Binary> read(std::span<const std::byte> bytes) = 0;
};

}  // namespace polder::driver
