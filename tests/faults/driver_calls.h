// DriverCalls: the calls of the tests' own libcuda (tests/driver/fake_cuda), when POCL_DEVICES names its GPUs. Each of them can be made to fail.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fake_cuda.h>

namespace polder::test {

class DriverCalls {
public:
    // Once the platform's devices are there.
    DriverCalls() {
        const char* const named = std::getenv("POCL_DEVICES");
        void* const library =
            named && std::strstr(named, "cuda") ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : nullptr;
        if (!library)
            return;
        fail_ = reinterpret_cast<fake_cuda::FailCall>(dlsym(library, "fake_cuda_fail_call"));
        failed_ = reinterpret_cast<fake_cuda::FailedCall>(dlsym(library, "fake_cuda_failed_call"));
    }
    [[nodiscard]] bool are_there() const { return fail_ != nullptr; }
    // Call number `n` from now on, of all threads; -1: none.
    void fail(int64_t n, int code) const { fail_(n, code); }
    // Its name; null: it has not been made.
    [[nodiscard]] const char* failed() const { return failed_(); }

private:
    fake_cuda::FailCall fail_ = nullptr;
    fake_cuda::FailedCall failed_ = nullptr;
};

}  // namespace polder::test
