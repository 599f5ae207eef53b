// The CUDA driver in the conformance suite, over a fake libcuda.
#include "conformance.h"
#include "driver_named.h"

#include <fake_kernels.h>

namespace polder::conformance {
namespace {

std::unique_ptr<driver::Driver> make() { return driver_named("cuda"); }

driver::KernelCode code_of(const driver::HostCode& code, Prints prints) {
    return fake_cuda::code_of(code, prints == Prints::yes ? fake_cuda::print_records : nullptr);
}

// A GPU, unlike the fake one.
bool is_real() { return fake_cuda::find<fake_cuda::CountCalls>("fake_cuda_calls") == nullptr; }

bool is_fake() { return !is_real(); }

}  // namespace

POLDER_DRIVER_CONFORMANCE(Cuda, testing::Values(DriverUnderTest{"cuda", make, "", code_of, is_real, is_fake}));

} // namespace polder::conformance
