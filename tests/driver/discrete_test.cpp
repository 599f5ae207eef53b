// The discrete driver in the conformance suite: with a link that takes no time, with a slow one, and with unified memory.
#include "conformance.h"

#include <devices/drivers.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() {
    for (const devices::DriverEntry& entry : devices::all_drivers())
        if (entry.name == "discrete")
            return entry.make();
    return nullptr;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Discrete, DriverConformance,
                         testing::Values(DriverUnderTest{"discrete", make, "memory=128M"},
                                         DriverUnderTest{"slow", make, "memory=64M,bandwidth=2G,latency=20us"},
                                         DriverUnderTest{"mapped", make, "memory=64M,unified=mapped"}),
                         testing::PrintToStringParamName());

}  // namespace polder::conformance
