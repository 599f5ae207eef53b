// fmin and fmax (OpenCL C 6.15.2) with one argument that is a NaN, in code without lanes: the other argument is returned, also where the
// compiler knows that it is no NaN.
#include "buffer.h"
#include "kernel_runner.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>

namespace polder::math {
namespace {

using test::KernelRunner;

// One work-item does all, so nothing is in lanes. The NaN and the integers are known at run time alone.
constexpr const char* body = R"(
kernel void k(global const T* nans, global const int* numbers, global T* out) {
    if (get_global_id(0) != 0)
        return;
    const T n = nans[0];
    int at = 0;
    for (int i = 0; i < 4; ++i) {
        const T x = (T)numbers[i];
        out[at++] = fmin(x, n);
        out[at++] = fmin(n, x);
        out[at++] = fmax(x, n);
        out[at++] = fmax(n, x);
        out[at++] = fmin(x, n * n);
        out[at++] = fmin(fmax(x, (T)1), n);
        const V v = fmax((V)(n), (V)(x));
        out[at++] = v.x;
        out[at++] = v.w;
    }
    T least = n;
    for (int i = 0; i < 4; ++i)
        least = fmin(least, (T)numbers[i]);
    out[at++] = least;
})";

template <class T>
void expect_numbers(const std::string& type) {
    KernelRunner runner("typedef " + type + " T;\ntypedef " + type + "4 V;\n" + body);
    Buffer<T> nans{std::numeric_limits<T>::quiet_NaN()};
    const Buffer<int32_t> numbers{3, 0, -5, 70};
    Buffer<T> out(33, T(-1000));
    runner.run("k", {{nans.data(), const_cast<int32_t*>(numbers.data()), out.data()}}, 64);
    for (size_t i = 0; i < 4; ++i)
        for (size_t form = 0; form < 8; ++form) {
            const T x = T(numbers[i]);
            EXPECT_EQ(out[i * 8 + form], form == 5 ? std::max(x, T(1)) : x) << type << ", form " << form << " of " << x;
        }
    EXPECT_EQ(out[32], T(-5)) << type;
}

TEST(MinimumNumber, OfANaNAndANumber_IsTheNumber) {
    expect_numbers<float>("float");
    expect_numbers<double>("double");
}

TEST(MinimumNumber, OfHalves_IsTheNumber) {
    KernelRunner runner(
        std::string("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\ntypedef half T;\ntypedef half4 V;\n") + body);
    Buffer<uint16_t> nans{0x7e00};
    Buffer<int32_t> numbers{3, 0, -5, 70};
    const uint16_t halves[] = {0x4200, 0, 0xc500, 0x5460}, one = 0x3c00;
    Buffer<uint16_t> out(33, uint16_t{0x1234});
    runner.run("k", {{nans.data(), numbers.data(), out.data()}}, 64);
    for (size_t i = 0; i < 4; ++i)
        for (size_t form = 0; form < 8; ++form)
            EXPECT_EQ(out[i * 8 + form], form == 5 && numbers[i] < 1 ? one : halves[i])
                << "form " << form << " of " << numbers[i];
    EXPECT_EQ(out[32], halves[2]);
}

}  // namespace
}  // namespace polder::math
