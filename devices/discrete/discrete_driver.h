// Devices with memories of their own, simulated on this machine: see discrete_device.h. There are as many as POCL_DEVICES
// names; when the variable is not set, there is none.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::discrete {

[[nodiscard]] std::unique_ptr<driver::Driver> make_driver();

}  // namespace polder::discrete
