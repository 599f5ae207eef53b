// The driver that doc/drivers.md explains: a device with a memory of its own and one thread for each queue.
// Simple rather than fast; the conformance suite (tests/driver) runs over it like over every other driver.
#pragma once

#include <memory>
#include <polder/driver.h>

namespace polder::example {

[[nodiscard]] std::unique_ptr<driver::Driver> make_driver();

} // namespace polder::example
