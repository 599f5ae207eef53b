#include "executable.h"
#include "module/module.h"

#include <base/sizes.h>
#include <compiler/machine_code.h>

#include <algorithm>

namespace polder::compiler {
namespace {

// Each argument has a place that suits any type.
constexpr uint32_t code_alignment = 128;

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
