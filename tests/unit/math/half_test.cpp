// Loads and stores of halves (OpenCL C 6.15.7): vload_half, vloada_half, vstore_half and vstorea_half of every
// width and rounding mode, of float and double.
#include "buffer.h"
#include "kernel_runner.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace polder {
namespace {

using test::KernelRunner;

constexpr int widths[] = {1, 2, 3, 4, 8, 16};
const char* const modes[] = {"", "_rte", "_rtz", "_rtp", "_rtn"};

double value_of_half(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const double fraction = bits & 0x3ff;
    double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31)
        magnitude = fraction == 0 ? INFINITY : NAN;
    return (bits & 0x8000) ? -magnitude : magnitude;
}

double round_by(double x, const std::string& mode) {
    if (mode == "_rtz")
        return std::trunc(x);
    if (mode == "_rtp")
        return std::ceil(x);
    return mode == "_rtn" ? std::floor(x) : std::nearbyint(x);
}

// x rounded to a half, as a double.
double half_of(double x, const std::string& mode) {
    if (std::isnan(x) || std::isinf(x) || x == 0)
        return x;
    const int exponent = std::max(std::ilogb(x), -14);
    const double unit = std::ldexp(1, exponent - 10);
    const double rounded = std::copysign(round_by(x / unit, mode) * unit, x);
    if (std::fabs(rounded) <= 65504)
        return rounded;
    const bool stays_finite = mode == "_rtz" || (mode == "_rtp" && x < 0) || (mode == "_rtn" && x > 0);
    return std::copysign(stays_finite ? 65504 : INFINITY, x);
}

template <class T>
Buffer<T> samples() {
    Buffer<T> values = {0,
                        -T(0),
                        1,
                        65504,
                        65519,
                        65520,
                        65536,
                        T(65519.996),
                        T(-65519.996),
                        T(-65520),
                        T(1e10),
                        T(-1e10),
                        T(6.1035156e-05),
                        T(6.0975552e-05),
                        T(5.9604645e-08),
                        T(2.9802322e-08),
                        T(2.98023e-08),
                        T(1e-20),
                        T(-1e-20),
                        T(2049),
                        T(2051),
                        T(-2049.5),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::lowest(),
                        std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::quiet_NaN()};
    std::mt19937_64 random{1999};
    while (values.size() < 1920) {  // a multiple of all widths
        const auto bits = static_cast<int64_t>(random());
        values.push_back(
            static_cast<T>(std::ldexp(static_cast<double>(bits), -63 - 28 + static_cast<int>(values.size() % 48))));
    }
    return values;
}

std::string suffix(int width) { return width == 1 ? "" : std::to_string(width); }

TEST(Half, EveryHalf_LoadsAsTheFloatItIs) {
    for (const int width : widths) {
        const std::string w = suffix(width);
        KernelRunner runner{
            "kernel void load(global const half* a, global float* out) {\n    size_t i = get_global_id(0);\n    " +
            std::string(width == 1 ? "out[i] = vload_half(i, a);"
                                   : "vstore" + w + "(vload_half" + w + "(i, a), i, out);") +
            "\n}\n"};
        Buffer<uint16_t> halves(65520);  // a multiple of 3 and 16; what is left out are NaNs
        for (size_t i = 0; i < halves.size(); ++i)
            halves[i] = static_cast<uint16_t>(i);
        Buffer<float> floats(halves.size());
        void* const pointers[] = {halves.data(), floats.data()};
        runner.run("load", pointers, halves.size() / static_cast<size_t>(width));
        for (size_t i = 0; i < halves.size(); ++i) {
            const double expected = value_of_half(halves[i]);
            ASSERT_TRUE(std::isnan(expected)
                            ? std::isnan(floats[i])
                            : floats[i] == expected && std::signbit(floats[i]) == std::signbit(expected))
                << "vload_half" << w << " of " << std::hex << halves[i];
        }
    }
}

// A kernel for each rounding mode that stores vectors of `type`.
std::string store_kernels(const std::string& function, const std::string& type, int width) {
    std::string source;
    for (const std::string mode : modes) {
        const std::string load = width == 1 ? "a[i]" : "vload" + suffix(width) + "(i, a)";
        source += "kernel void store" + mode + "(global const " + type +
                  "* a, global half* out) {\n    size_t i = get_global_id(0);\n    " + function + suffix(width) + mode +
                  "(" + load + ", i, out);\n}\n";
    }
    return source;
}

template <class T>
void expect_right_stores(const std::string& function, const std::string& type, int width) {
    KernelRunner runner{store_kernels(function, type, width)};
    Buffer<T> values = samples<T>();
    const auto count = static_cast<size_t>(width);
    // Aligned vectors of three lie four apart.
    const size_t stride = width == 3 && function == "vstorea_half" ? 4 : count;
    for (const std::string mode : modes) {
        Buffer<uint16_t> halves(values.size() / count * stride, 0xabcd);
        void* const pointers[] = {values.data(), halves.data()};
        runner.run("store" + mode, pointers, values.size() / count);
        for (size_t i = 0; i < values.size(); ++i) {
            const double expected = half_of(values[i], mode);
            const double stored = value_of_half(halves[i / count * stride + i % count]);
            ASSERT_TRUE(std::isnan(expected) ? std::isnan(stored)
                                             : stored == expected && std::signbit(stored) == std::signbit(expected))
                << function << suffix(width) << mode << " of " << type << " " << values[i] << ": " << stored << ", not "
                << expected;
        }
    }
}

TEST(Half, StoresOfFloats_RoundAsTheModeSays) {
    for (const int width : widths) {
        expect_right_stores<float>("vstore_half", "float", width);
        if (width > 1)
            expect_right_stores<float>("vstorea_half", "float", width);
    }
}

TEST(Half, StoresOfDoubles_RoundOnceAsTheModeSays) {
    for (const int width : widths) {
        expect_right_stores<double>("vstore_half", "double", width);
        if (width > 1)
            expect_right_stores<double>("vstorea_half", "double", width);
    }
}

} // namespace
} // namespace polder
