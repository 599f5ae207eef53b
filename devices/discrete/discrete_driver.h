// A device with a memory of its own on this machine: see discrete_device.h. There is any number of them, as
// many as POCL_DEVICES names; none is opened unasked.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::discrete {

[[nodiscard]] std::unique_ptr<driver::Driver> make_driver();

} // namespace polder::discrete
