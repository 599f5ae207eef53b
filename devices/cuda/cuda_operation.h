// One submitted operation of a CudaQueue, with copies of everything that the caller's pointed to.
#pragma once

#include <cuda/cuda_kernel.h>
#include <polder/driver.h>
#include <variant>
#include <vector>

namespace polder::cuda {

struct MarkerWork {};
struct FillWork {
    DevicePointer to;
    uint64_t size;
    std::vector<std::byte> pattern;
};
struct LaunchWork {
    const CudaKernel* kernel;
    CudaKernel::Parameter parameter;
    uint64_t dynamic_bytes;
};

struct Operation {
    uint64_t value = 0;
    SmallVector<driver::Timepoint, 2> waits{};  // complete on the host before the operation is pushed
    SmallVector<Event, 4> events{};  // complete on the GPU before the operation executes
    SmallVector<uint64_t, 4> own_waits{};  // of the same queue: must have succeeded
    bool has_failed_wait = false;
    driver::OperationTimes* times = nullptr;
    std::variant<MarkerWork, driver::CopyOperation, FillWork, LaunchWork, driver::HostOperation> work;
};

} // namespace polder::cuda
