// The documentation's example driver in the conformance suite.
#include "conformance.h"

#include <example_driver.h>

namespace polder::conformance {

POLDER_DRIVER_CONFORMANCE(Example, testing::Values(DriverUnderTest{"example", example::make_driver, ""}));

} // namespace polder::conformance
