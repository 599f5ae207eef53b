// The driver of devices that other OpenCL implementations (ICDs) have; see doc/proxy.md.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::proxy {

[[nodiscard]] std::unique_ptr<driver::Driver> make_driver();

} // namespace polder::proxy
