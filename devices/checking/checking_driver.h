// A driver in front of any other one that holds both sides to the contract of polder/driver.h: the caller (valid ranges,
// sizes and waits, one submitter at a time, idle queues when they are destroyed) and the driver (values that grow by one,
// waits that return when they should, memory that is as large and as aligned as it must be).
//
// A violation is printed and ends the process, as a failed assertion does. For tests and debugging: each call costs a lock.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::devices {

[[nodiscard]] std::unique_ptr<driver::Driver> make_checking_driver(std::unique_ptr<driver::Driver> driver);

}  // namespace polder::devices
