// The drivers that are built in, in the order in which their devices are listed by default.
#pragma once

#include <memory>
#include <polder/driver.h>
#include <span>
#include <string_view>

namespace polder::devices {

struct DriverEntry {
    std::string_view name;  // as in POCL_DEVICES
    std::unique_ptr<driver::Driver> (*make)();
};

[[nodiscard]] std::span<const DriverEntry> all_drivers();

// As the platform uses it: in builds with assertions, behind the driver that checks the contract (devices/checking).
[[nodiscard]] std::unique_ptr<driver::Driver> make_driver(const DriverEntry& entry);

} // namespace polder::devices
