#include <base/scope_exit.h>

#include <proxy/kernel_trial.h>
#include <proxy/machine_code.h>
#include <proxy/proxy_device.h>
#include <proxy/proxy_kernel.h>

namespace polder::proxy {

std::string ProxyDevice::machine_code_of(const driver::LoadedKernel& kernel) {
    return static_cast<const ProxyKernel&>(kernel).program().machine_code();
}

// The program is built, because some implementations crash when they are asked for the kernels of one that was not.
Result<driver::ProgramBinaries::Binary> ProxyDevice::read(std::span<const std::byte> bytes) {
    if (context_->is_lost())
        return fail(Status::invalid_binary, context_->name + " is lost");
    Binary binary;
    binary.machine_code = named_machine_code(*context_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    POLDER_ASSIGN(program, program_of(*context_, binary.machine_code, ""));
    const ScopeExit release([&] { context_->cl.clReleaseProgram(program); });
    POLDER_ASSIGN(names, kernel_names(*context_, program));
    for (const std::string& name : names) {
        POLDER_ASSIGN(kernel, examine(*context_, program, name));
        binary.kernels.push_back(std::move(kernel));
    }
    return binary;
}

}  // namespace polder::proxy
