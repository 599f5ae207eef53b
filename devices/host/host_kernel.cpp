#include <host/host_kernel.h>
#include <host/worker_pool.h>

namespace polder::devices {

Result<std::unique_ptr<driver::LoadedKernel>> HostKernel::load(const driver::HostCode& code) {
    // The stack that the executor itself needs, in addition to that of the work-group function.
    constexpr uint64_t own_stack_bytes = uint64_t{256} << 10;
    if (code.stack_bytes + own_stack_bytes > WorkerPool::stack_bytes)
        return fail(Status::out_of_resources,
                    "the kernel needs " + std::to_string(code.stack_bytes) + " bytes of stack, at most " +
                        std::to_string(WorkerPool::stack_bytes - own_stack_bytes) + " are there");
    return std::make_unique<HostKernel>(code);
}

} // namespace polder::devices
