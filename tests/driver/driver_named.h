// The built-in drivers, for tests that need one of them.
#pragma once

#include <devices/drivers.h>

namespace polder::conformance {

// Null when there is none of that name.
[[nodiscard]] inline std::unique_ptr<driver::Driver> driver_named(std::string_view name) {
    for (const devices::DriverEntry& entry : devices::all_drivers())
        if (entry.name == name)
            return entry.make();
    return nullptr;
}

}  // namespace polder::conformance
