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
    std::vector<std::byte> parameter;
    uint64_t dynamic_bytes;
};
struct PeerCopyWork {
    DevicePointer from;
    DevicePointer to;
    uint64_t size;
};

struct Operation {
    uint64_t value = 0;
    std::vector<driver::Timepoint> waits;  // complete on the host before the operation is pushed
    std::vector<Event> events;             // complete on the GPU before the operation executes
    std::vector<uint64_t> own_waits;       // of the same queue: must have succeeded
    bool has_failed_wait = false;
    driver::OperationTimes* times = nullptr;
    std::variant<MarkerWork, driver::CopyOperation, FillWork, LaunchWork, PeerCopyWork, driver::HostOperation> work;
};

} // namespace polder::cuda
