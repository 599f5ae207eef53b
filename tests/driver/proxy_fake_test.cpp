// The proxy driver in the conformance suite, over an OpenCL implementation of the tests.
#include "conformance.h"

#include <devices/drivers.h>

#include <fake_code.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() {
    for (const devices::DriverEntry& entry : devices::all_drivers())
        if (entry.name == "proxy")
            return entry.make();
    return nullptr;
}

driver::KernelCode code_of(const driver::HostCode& code, Prints) { return fake_icd::code_of(code); }

} // namespace

INSTANTIATE_TEST_SUITE_P(ProxyFake, DriverConformance,
                         testing::Values(DriverUnderTest{"proxy", make, "memory=256M,icd=" POLDER_FAKE_ICD, code_of}),
                         testing::PrintToStringParamName());

} // namespace polder::conformance
