// Kernels compute in the floating-point environment that OpenCL C demands, whatever that of the application's threads is. Threads
// inherit it from the thread that creates them, so the first test changes it before Polder has any.
#include "support/fixture.h"

#include <algorithm>
#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace polder::test {
namespace {

constexpr const char* source = R"(
kernel void compute(global const float* in, global float* out) {
    size_t i = get_global_id(0) * 4;
    out[i] = rint(in[0]);        // 1: nearest
    out[i + 1] = in[1] * in[2];  // subnormal
    out[i + 2] = in[3] / in[4];  // infinity, which may trap
    out[i + 3] = in[3] + in[5];  // 1: nearest, not upward
}
)";

// For its scope, on the calling thread.
class Environment {
public:
    explicit Environment(int rounding) {
        std::fegetenv(&before_);
        std::fesetround(rounding);
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() { std::fesetenv(&before_); }

private:
    std::fenv_t before_;
};

class FloatEnvironment : public ContextTest {
protected:
    void SetUp() override {}  // the context is made in the changed environment

    void check_results() {
        ContextTest::SetUp();
        program = build(source);
        // One work-group, which the waiting thread may execute, and many, which all threads do.
        for (const cl_device_id device : devices)
            for (const size_t count : {size_t{1}, size_t{1} << 16})
                check(device, count);
    }

private:
    void check(cl_device_id device, size_t count) {
        const OwnedQueue on = make_queue(device);
        std::vector<float> input{0.50048828125f, 0x1p-100f, 0x1p-40f, 1, 0, 0x1p-30f};
        const OwnedMem in = make_buffer(input.size() * sizeof(float), CL_MEM_COPY_HOST_PTR, input.data());
        const OwnedMem out = make_buffer(count * 4 * sizeof(float));
        const OwnedKernel kernel = make_kernel(program, "compute");
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), in.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
        const size_t local = std::min<size_t>(count, 64);
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &count, &local, 0, nullptr, nullptr), CL_SUCCESS);
        const auto found = read<cl_uint>(out, count * 4, on);
        size_t wrong = 0;
        for (size_t i = 0; i < found.size(); i += 4)
            wrong += found[i] != 0x3f800000 || found[i + 1] != 0x200 || found[i + 2] != 0x7f800000 ||
                     found[i + 3] != 0x3f800000;
        EXPECT_EQ(wrong, 0u) << std::hex << found[0] << ' ' << found[1] << ' ' << found[2] << ' ' << found[3];
    }

    OwnedProgram program;
};

// The first test: Polder's threads inherit this environment.
TEST_F(FloatEnvironment, RoundingTowardZero_OfTheThreadThatCreatesTheOthers_DoesNotReachKernels) {
    const Environment changed{FE_TOWARDZERO};
    check_results();
    EXPECT_EQ(std::fegetround(), FE_TOWARDZERO);
}

TEST_F(FloatEnvironment, RoundingUpward_DoesNotReachKernels_AndStaysTheApplications) {
    const Environment changed{FE_UPWARD};
    check_results();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

TEST_F(FloatEnvironment, FlushedSubnormalNumbers_DoNotReachKernels) {
#if defined(__x86_64__)
    const Environment changed{FE_TONEAREST};
    const unsigned flushing = _mm_getcsr() | 0x8040;  // FTZ and DAZ
    _mm_setcsr(flushing);
    check_results();
    EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u);
#else
    GTEST_SKIP() << "written for x86-64";
#endif
}

TEST_F(FloatEnvironment, Traps_DoNotReachKernels) {
    const Environment changed{FE_TONEAREST};
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_DIVBYZERO);
    check_results();
    EXPECT_EQ(fegetexcept(), FE_DIVBYZERO);
}

}  // namespace
}  // namespace polder::test
