#include "compiled.h"

#include <utility>

namespace torch_opencl {

GeneratedKernel::GeneratedKernel(std::string source)
    : source_(std::move(source)), kernels_(Platform::get().devices().size()) {}

Kernel& GeneratedKernel::kernel_for(const Device& device) {
    std::atomic<Kernel*>& place = kernels_[static_cast<size_t>(device.index)];
    Kernel* kernel = place.load(std::memory_order_acquire);
    if (!kernel) [[unlikely]] {
        kernel = &kernel_of(device, source_, "generated", [&] { return source_; });
        place.store(kernel, std::memory_order_release);
    }
    return *kernel;
}

void GeneratedKernel::launch(c10::ArrayRef<void*> addresses, c10::ArrayRef<int64_t> values,
                             std::array<size_t, 3> global, std::array<size_t, 3> local) {
    const Device& device = Platform::get().device(current_device());
    Launch launch(device, kernel_for(device));
    for (const void* address : addresses)
        launch.address(address);
    for (const int64_t value : values)
        launch.value(value);
    launch.run(global, local);
}

}  // namespace torch_opencl
