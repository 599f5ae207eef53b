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

} // namespace polder::devices
