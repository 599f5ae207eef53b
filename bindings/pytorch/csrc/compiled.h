// Kernels that torch.compile generated. python/calls.cpp makes Python objects of them. Any thread.
#pragma once

#include "program.h"

#include <atomic>
#include <c10/util/ArrayRef.h>

namespace torch_opencl {

// The source of one kernel, named `generated`, and the kernels that were made from it, by device. Lives as long as the process.
class [[gnu::visibility("default")]] GeneratedKernel {
public:
    explicit GeneratedKernel(std::string source);
    // Launches on the current device and stream, without waiting. The values are parameters of the type long. Local sizes of 0 are chosen by
    // the implementation.
    void launch(c10::ArrayRef<void*> addresses, c10::ArrayRef<int64_t> values, std::array<size_t, 3> global,
                std::array<size_t, 3> local);

private:
    Kernel& kernel_for(const Device& device);
    std::string source_;
    std::vector<std::atomic<Kernel*>> kernels_;
};

}  // namespace torch_opencl
