#include <host/host_kernel.h>
#include <host/worker_pool.h>

namespace polder::devices {

Result<std::unique_ptr<driver::LoadedKernel>> HostKernel::load(const driver::HostCode& code) {
    if (code.stack_bytes > WorkerPool::kernel_stack_bytes)
        return fail(Status::out_of_resources, "the kernel needs " + std::to_string(code.stack_bytes) +
                                                  " bytes of stack, at most " +
                                                  std::to_string(WorkerPool::kernel_stack_bytes) + " are there");
    return std::make_unique<HostKernel>(code);
}

} // namespace polder::devices
