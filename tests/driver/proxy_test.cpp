// The proxy driver in the conformance suite, over Debian's PoCL or the library that PROXY_TEST_ICD names.
#include "conformance.h"
#include "proxy_kernels.h"

#include <devices/drivers.h>

#include <cstdlib>
#include <dlfcn.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() {
    for (const devices::DriverEntry& entry : devices::all_drivers())
        if (entry.name == "proxy")
            return entry.make();
    return nullptr;
}

driver::KernelCode code_of(const driver::HostCode& code, Prints prints) {
    return source_of(code, prints == Prints::yes);
}

// Without the library every test is skipped.
std::vector<DriverUnderTest> subjects() {
    const char* const named = std::getenv("PROXY_TEST_ICD");
    const std::string library = named ? named : "libpocl.so.2";
    if (!dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL))
        return {};
    return {{"proxy", make, "memory=256M,icd=" + library, code_of}};
}

} // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DriverConformance);
INSTANTIATE_TEST_SUITE_P(Proxy, DriverConformance, testing::ValuesIn(subjects()), testing::PrintToStringParamName());

} // namespace polder::conformance
