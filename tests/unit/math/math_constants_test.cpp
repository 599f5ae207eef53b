// Arguments that the compiler knows give what the same arguments from a buffer give: nothing that a built-in function computes on
// its way may be undefined, because the compiler would then choose the result. And results that depend on subnormal numbers.
#include "kernel_runner.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace polder::math {
namespace {

using test::KernelRunner;

constexpr const char* unary[] = {"acos",  "acosh", "acospi", "asin",  "asinh", "asinpi", "atan",  "atanh", "atanpi",
                                 "cbrt",  "cos",   "cosh",   "cospi", "erf",   "erfc",   "exp",   "exp10", "exp2",
                                 "expm1", "log",   "log10",  "log1p", "log2",  "logb",   "rsqrt", "sin",   "sinh",
                                 "sinpi", "sqrt",  "tan",    "tanh",  "tanpi", "tgamma"};
constexpr const char* binary[] = {"atan2", "atan2pi", "fmod", "hypot", "nextafter", "pow", "powr", "remainder"};
constexpr const char* with_integer[] = {"ldexp", "pown", "rootn"};
constexpr const char* numbers[] = {"NAN", "INFINITY", "-INFINITY", "0.0", "2.5", "-3.0"};
constexpr const char* integers[] = {"1", "-1", "0"};

struct Calls {
    std::vector<std::string> names;
    std::string source;  // of a kernel that writes each call's result with constants, then with arguments from buffers
};

Calls calls_of(const std::string& type) {
    Calls calls;
    const auto constant = [&](const char* number) { return "(" + type + ")(" + number + ")"; };
    const auto add = [&](const char* function, const std::string& constants, const std::string& from_buffers) {
        const std::string at = std::to_string(2 * calls.names.size());
        calls.names.push_back(function + ("(" + constants + ")"));
        calls.source += "    out[" + at + "] = " + function + "(" + constants + ");\n    out[" + at +
                        " + 1] = " + function + "(" + from_buffers + ");\n";
    };
    for (size_t i = 0; i < std::size(numbers); ++i) {
        const std::string x = "x[" + std::to_string(i) + "]";
        for (const char* function : unary)
            add(function, constant(numbers[i]), x);
        for (const char* function : binary)
            for (size_t j = 0; j < std::size(numbers); ++j)
                add(function, constant(numbers[i]) + ", " + constant(numbers[j]), x + ", x[" + std::to_string(j) + "]");
        for (const char* function : with_integer)
            for (size_t j = 0; j < std::size(integers); ++j)
                add(function, constant(numbers[i]) + ", " + integers[j], x + ", n[" + std::to_string(j) + "]");
    }
    calls.source = "kernel void call(global " + type + "* out, global const " + type + "* x, global const int* n) {\n" +
                   calls.source + "}\n";
    return calls;
}

template <class T>
void expect_constants_change_nothing(const std::string& type) {
    const Calls calls = calls_of(type);
    KernelRunner runner{calls.source};
    constexpr T infinity = std::numeric_limits<T>::infinity(), epsilon = std::numeric_limits<T>::epsilon();
    T x[] = {std::numeric_limits<T>::quiet_NaN(), infinity, -infinity, 0, T(2.5), -3};
    int32_t n[] = {1, -1, 0};
    std::vector<T> out(2 * calls.names.size());
    void* const pointers[] = {out.data(), x, n};
    runner.run("call", pointers, 1);
    for (size_t i = 0; i < calls.names.size(); ++i) {
        const T known = out[2 * i], read = out[2 * i + 1];
        // Powers with a known exponent are products and roots, with another last digit.
        const bool are_close = std::isfinite(read) && std::abs(known - read) <= 4 * epsilon * std::abs(read);
        const bool are_same = std::memcmp(&known, &read, sizeof(T)) == 0 || (std::isnan(known) && std::isnan(read));
        EXPECT_TRUE(are_same || (are_close && known != 0))
            << calls.names[i] << ": " << known << " and, from a buffer, " << read;
    }
}

TEST(Constants, OfFloatsChangeNoResult) { expect_constants_change_nothing<float>("float"); }
TEST(Constants, OfDoublesChangeNoResult) { expect_constants_change_nothing<double>("double"); }

TEST(Subnormals, AnglesOfThemAreExact) {
    KernelRunner runner{R"(
        kernel void angles(global const float* f, global float* of, global const double* d, global double* od) {
            of[0] = atan2(f[0], f[1]); of[1] = atan2(f[0], -f[1]); of[2] = atan2pi(f[1], f[0]);
            od[0] = atan2(d[0], d[1]); od[1] = atan2(d[0], -d[1]); od[2] = atan2pi(d[1], d[0]);
        })"};
    float f[] = {0x1p-149F, 0x1p-148F}, of[3];
    double d[] = {0x1p-1074, 0x1p-1073}, od[3];
    void* const pointers[] = {f, of, d, od};
    runner.run("angles", pointers, 1);
    const double pi = std::acos(-1.0), expected[] = {std::atan2(1, 2), std::atan2(1, -2), std::atan2(2, 1) / pi};
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(of[i], expected[i], 2e-7) << i;
        EXPECT_NEAR(od[i], expected[i], 4e-16) << i;
    }
}

TEST(Subnormals, LdexpRoundsOnce) {
    KernelRunner runner{"kernel void scale(global const double* x, global const int* n, global double* out) {"
                        " size_t i = get_global_id(0); out[i] = ldexp(x[i], n[i]); }"};
    double x[] = {0x1.0ap-100, 0x1.fffffffffffffp-60, 0x1.8p-52, 0x1.8p1000, -0x1.0000000000001p-1, 0x1p-1074};
    int32_t n[] = {-970, -1000, -1022, -2074, -1022, 2097};
    double out[6];
    void* const pointers[] = {x, n, out};
    runner.run("scale", pointers, 6);
    for (size_t i = 0; i < 6; ++i)
        EXPECT_EQ(out[i], std::ldexp(x[i], n[i])) << i;
}

}  // namespace
}  // namespace polder::math
