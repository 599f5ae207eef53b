// The CUDA driver in the conformance suite, over a fake libcuda.
#include "conformance.h"

#include <devices/drivers.h>

#include <fake_kernels.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() {
    for (const devices::DriverEntry& entry : devices::all_drivers())
        if (entry.name == "cuda")
            return entry.make();
    return nullptr;
}

driver::KernelCode code_of(const driver::HostCode& code, Prints prints) {
    return fake_cuda::code_of(code, prints == Prints::yes ? fake_cuda::print_records : nullptr);
}

} // namespace

INSTANTIATE_TEST_SUITE_P(Cuda, DriverConformance, testing::Values(DriverUnderTest{"cuda", make, "", code_of}),
                         testing::PrintToStringParamName());

} // namespace polder::conformance
