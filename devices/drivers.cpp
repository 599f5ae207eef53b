#include <devices/drivers.h>

#include <cpu/cpu_driver.h>
#include <cuda/cuda_driver.h>
#include <discrete/discrete_driver.h>

namespace polder::devices {

std::span<const DriverEntry> all_drivers() {
    static constexpr DriverEntry entries[] = {
        {"cpu", cpu::make_driver},
        {"discrete", discrete::make_driver},
        {"cuda", cuda::make_driver},
    };
    return entries;
}

} // namespace polder::devices
