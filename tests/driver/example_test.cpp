// The documentation's example driver in the conformance suite.
#include "conformance.h"

#include <example_driver.h>

namespace polder::conformance {

INSTANTIATE_TEST_SUITE_P(Example, DriverConformance,
                         testing::Values(DriverUnderTest{"example", example::make_driver, ""}),
                         testing::PrintToStringParamName());

} // namespace polder::conformance
