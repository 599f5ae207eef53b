// A driver that wraps another one and checks the contract of polder/driver.h. It checks the caller (valid ranges,
// sizes and waits, one submitter at a time, idle queues when they are destroyed) and the driver (values that grow by one,
// waits that return only when the timepoint is complete, memory of sufficient size and alignment).
//
// A violation is printed and ends the process, like a failed assertion. For tests and debugging: each call takes a lock.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::devices {

[[nodiscard]] std::unique_ptr<driver::Driver> make_checking_driver(std::unique_ptr<driver::Driver> driver);

}  // namespace polder::devices
