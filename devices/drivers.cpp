#include <devices/drivers.h>

#include <checking/checking_driver.h>
#include <cpu/cpu_driver.h>
#include <cuda/cuda_driver.h>
#include <discrete/discrete_driver.h>
#include <proxy/proxy_driver.h>

namespace polder::devices {

std::span<const DriverEntry> all_drivers() {
    static constexpr DriverEntry entries[] = {
        {"cpu", cpu::make_driver},
        {"discrete", discrete::make_driver},
        {"cuda", cuda::make_driver},
        {"proxy", proxy::make_driver},
    };
    return entries;
}

std::unique_ptr<driver::Driver> make_driver(const DriverEntry& entry) {
#ifdef NDEBUG
    return entry.make();
#else
    return make_checking_driver(entry.make());
#endif
}

} // namespace polder::devices
