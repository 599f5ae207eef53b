// CudaKernel: one kernel of a module that CUDA compiled from PTX text, and the layout of its launches
// (include/polder/ptx_abi.h).
//
// Kernels of one program share a module, found by the text. Immutable after load. Any thread.
#pragma once

#include <base/mutex.h>
#include <base/small_vector.h>

#include <cuda/cuda_context.h>
#include <map>
#include <polder/driver.h>
#include <polder/ptx_abi.h>
#include <vector>

namespace polder::cuda {

class LoadedModule {
public:
    // out_of_resources with the compiler's log as detail when it refuses the code.
    [[nodiscard]] static Result<std::shared_ptr<LoadedModule>> load(CudaContext& context, std::string_view code);
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;
    ~LoadedModule();
    [[nodiscard]] Module handle() const { return handle_; }

private:
    LoadedModule(CudaContext& context, Module handle) : context_(context), handle_(handle) {}
    CudaContext& context_;
    const Module handle_;
};

class ModuleCache {
public:
    [[nodiscard]] Result<std::shared_ptr<LoadedModule>> load(CudaContext& context, std::string_view code);

private:
    Mutex mutex_;
    std::map<std::string, std::weak_ptr<LoadedModule>, std::less<>> modules_ POLDER_GUARDED_BY(mutex_);
};

class CudaKernel final : public driver::LoadedKernel {
public:
    [[nodiscard]] static Result<std::unique_ptr<driver::LoadedKernel>> load(CudaContext& context, ModuleCache& modules,
                                                                            const driver::TargetCode& code);

    [[nodiscard]] driver::PrintRing print() const { return print_; }
    // The kernel's whole parameter: arguments and what follows them. Few kernels need memory from the heap for it.
    using Parameter = SmallVector<std::byte, 256>;
    // Without a printf ring.
    [[nodiscard]] Parameter parameter_of(const driver::LaunchOperation& operation) const;
    void set_print_ring(Parameter& parameter, DevicePointer ring) const;
    [[nodiscard]] uint64_t dynamic_bytes_of(const driver::LaunchOperation& operation) const {
        return dynamic_local_bytes_ + operation.local_argument_bytes;
    }
    // Launches all work-groups: several grids where the range exceeds the GPU's limits.
    [[nodiscard]] Code launch(Stream stream, Parameter& parameter, uint64_t dynamic_bytes) const;

private:
    CudaKernel(CudaContext& context, std::shared_ptr<LoadedModule> module, Function function,
               const driver::TargetCode& code, const driver::KernelLimits& limits)
        : LoadedKernel(limits), context_(context), module_(std::move(module)), function_(function), print_(code.print),
          arguments_size_(code.arguments_size), dynamic_local_bytes_(code.dynamic_local_bytes) {}

    CudaContext& context_;
    const std::shared_ptr<LoadedModule> module_;
    const Function function_;
    const driver::PrintRing print_;
    const uint32_t arguments_size_;
    const uint64_t dynamic_local_bytes_;
};

} // namespace polder::cuda
