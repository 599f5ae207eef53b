// A copy that needs nothing of the host, as calls of CUDA on one stream: within GPUs, or from and to pinned memory. The GPU's context
// is current. Any thread.
#pragma once

#include <cuda/cuda_api.h>
#include <polder/driver.h>

namespace polder::cuda {

[[nodiscard]] Code enqueue_copy(const CudaApi& api, Stream stream, const driver::CopyOperation& copy);

}  // namespace polder::cuda
