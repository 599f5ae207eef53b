// Enqueues a copy that does not need the host to one stream: within a GPU, between GPUs, or from and to pinned memory. The caller has made the
// GPU's context current. Any thread.
#pragma once

#include <cuda/cuda_api.h>
#include <polder/driver.h>

namespace polder::cuda {

[[nodiscard]] Code enqueue_copy(const CudaApi& api, Stream stream, const driver::CopyOperation& copy);

}  // namespace polder::cuda
