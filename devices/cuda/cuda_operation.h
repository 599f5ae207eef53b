// One submitted operation of a CudaQueue.
#pragma once

#include <cuda/cuda_kernel.h>
#include <foreign/foreign_operation.h>

namespace polder::cuda {

struct LaunchWork {
    const CudaKernel* kernel;
    CudaKernel::Parameter parameter;
    uint64_t dynamic_bytes;
};
// Copies from another GPU's memory, none of which needs the host.
using PeerCopies = std::vector<driver::CopyOperation>;

using Operation = devices::ForeignOperation<Event, LaunchWork, PeerCopies>;

}  // namespace polder::cuda
