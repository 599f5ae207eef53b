// The CPU driver in the conformance suite.
#include "conformance.h"

#include <devices/drivers.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() {
    for (const devices::DriverEntry& entry : devices::all_drivers())
        if (entry.name == "cpu")
            return entry.make();
    return nullptr;
}

} // namespace

INSTANTIATE_TEST_SUITE_P(Cpu, DriverConformance, testing::Values(DriverUnderTest{"cpu", make, ""}),
                         testing::PrintToStringParamName());

} // namespace polder::conformance
