// The discrete driver in the conformance suite: with a link that takes no time, with a slow one, and with unified memory.
#include "conformance.h"
#include "driver_named.h"

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() { return driver_named("discrete"); }

}  // namespace

POLDER_DRIVER_CONFORMANCE(Discrete,
                          testing::Values(DriverUnderTest{"discrete", make, "memory=128M"},
                                          DriverUnderTest{"slow", make, "memory=64M,bandwidth=2G,latency=20us"},
                                          DriverUnderTest{"mapped", make, "memory=64M,unified=mapped"}));

}  // namespace polder::conformance
