// NVIDIA's GPUs through the CUDA driver API. There are as many devices as the CUDA driver lists (CUDA_VISIBLE_DEVICES
// applies). Without libcuda.so.1, without a GPU or with a driver that is too old there are none, and POCL_DEBUG=driver
// reports the reason.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::cuda {

[[nodiscard]] std::unique_ptr<driver::Driver> make_driver();

} // namespace polder::cuda
