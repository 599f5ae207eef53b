// The driver of the host processor: one device, which computes in host memory on every core that the process may use.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::cpu {

[[nodiscard]] std::unique_ptr<driver::Driver> make_driver();

} // namespace polder::cpu
