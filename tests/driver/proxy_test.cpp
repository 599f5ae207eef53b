// The proxy driver in the conformance suite, over Debian's PoCL or the library that PROXY_TEST_ICD names.
#include "conformance.h"
#include "driver_named.h"
#include "proxy_kernels.h"

#include <cstdlib>
#include <dlfcn.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() { return driver_named("proxy"); }

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
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryDriver);
POLDER_DRIVER_CONFORMANCE(Proxy, testing::ValuesIn(subjects()));

} // namespace polder::conformance
