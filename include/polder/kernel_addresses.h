// An optional ability of a driver::Device, found by dynamic_cast: kernels on it see other addresses than the runtime.
// What a launch is given as an argument, the driver translates; this is for pointers that are stored in memory.
// Any thread.
#pragma once

#include <polder/types.h>

namespace polder::driver {

class KernelAddresses {
public:
    virtual ~KernelAddresses() = default;
    // What a kernel has to be given for `address`, which is one of this device's memory.
    [[nodiscard]] virtual DeviceAddress kernel_address(DeviceAddress address) const = 0;
};

} // namespace polder::driver
