// The proxy driver in the conformance suite, over an OpenCL implementation of the tests.
#include "conformance.h"
#include "driver_named.h"

#include <fake_code.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() { return driver_named("proxy"); }

driver::KernelCode code_of(const driver::HostCode& code, Prints) { return fake_icd::code_of(code); }

} // namespace

POLDER_DRIVER_CONFORMANCE(ProxyFake,
                          testing::Values(DriverUnderTest{"proxy", make, "memory=256M,icd=" POLDER_FAKE_ICD, code_of}));

} // namespace polder::conformance
