#include "executable.h"
#include "module/module.h"

#include <base/sizes.h>
#include <compiler/machine_code.h>

#include <algorithm>
#include <polder/image_abi.h>

namespace polder::compiler {
namespace {

// Each argument has a place that suits any type.
constexpr uint32_t code_alignment = 128;

static_assert(code_alignment >= sizeof(ImageDescriptor));

constexpr const char* name_of(driver::ImageType type) {
    using driver::ImageType;
    switch (type) {
    case ImageType::image_3d: return "image3d_t";
    case ImageType::array_2d: return "image2d_array_t";
    case ImageType::image_1d: return "image1d_t";
    case ImageType::array_1d: return "image1d_array_t";
    case ImageType::buffer_1d: return "image1d_buffer_t";
    default: return "image2d_t";
    }
}

void set_use(KernelArgument& argument, driver::ImageUse use) {
    using ImageAccess = KernelArgument::ImageAccess;
    switch (use) {
    case driver::ImageUse::read:
        argument.image_access = ImageAccess::read_only;
        argument.access = Access::read;
        break;
    case driver::ImageUse::write:
        argument.image_access = ImageAccess::write_only;
        argument.access = Access::write;
        break;
    default: argument.image_access = ImageAccess::read_write;
    }
}

KernelArgument argument_of(const driver::MachineCodeKernel::Parameter& parameter, uint32_t offset) {
    KernelArgument argument;
    argument.offset = offset;
    argument.size = parameter.size;
    argument.alignment = code_alignment;
    if (parameter.kind == driver::KernelParameter::Kind::global_pointer) {
        argument.kind = ArgumentKind::global_pointer;
        argument.address_space = AddressSpace::global;
    } else if (parameter.kind == driver::KernelParameter::Kind::local_pointer) {
        argument.kind = ArgumentKind::local_pointer;
        argument.address_space = AddressSpace::local;
    } else if (parameter.kind == driver::KernelParameter::Kind::image) {
        argument.kind = ArgumentKind::image;
        argument.image_type = name_of(parameter.image_type);
        set_use(argument, parameter.image_use);
    } else if (parameter.kind == driver::KernelParameter::Kind::sampler) {
        argument.kind = ArgumentKind::sampler;
    }
    return argument;
}

KernelInfo info_of(const driver::MachineCodeKernel& kernel) {
    KernelInfo info;
    info.name = kernel.name;
    for (const driver::MachineCodeKernel::Parameter& parameter : kernel.parameters) {
        info.arguments.push_back(argument_of(parameter, info.arguments_size));
        info.arguments_size = static_cast<uint32_t>(rounded_up(info.arguments_size + parameter.size, code_alignment));
    }
    if (kernel.reqd_work_group_size[0] != 0)
        info.reqd_work_group_size = std::to_array(kernel.reqd_work_group_size);
    return info;
}

}  // namespace

std::shared_ptr<const Module> make_module(std::span<const driver::MachineCodeKernel> kernels) {
    CompiledModule::Parts parts;
    parts.kind = ModuleKind::executable;
    std::ranges::transform(kernels, std::back_inserter(parts.kernels), info_of);
    return std::make_shared<const CompiledModule>(std::move(parts));
}

Result<std::shared_ptr<Executable>> open_with(std::string machine_code, std::shared_ptr<const Module> module,
                                              const Target& target) {
    if (machine_code.empty() || target.code.format != driver::CodeFormat::opencl_c)
        return Executable::open(std::move(module), target);
    return make_source_executable(std::move(module), target, std::move(machine_code));
}

}  // namespace polder::compiler
