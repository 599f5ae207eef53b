// Every 251st float as the argument of each math function of one argument: the result has to agree with the function of doubles, which has
// other polynomials and which math_accuracy_test compares with references of 113 bits. POLDER_TEST_EVERY_FLOAT=1 takes all 2^32, in
// about 40 s for a function.
#include "kernel_runner.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <gtest/gtest.h>
#include <ostream>
#include <vector>

namespace polder::math {
namespace {

struct Case {
    const char* name;
    double
        bound;  // units in the last place, OpenCL C 3.0, table "ULP values for single precision built-in math functions"
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

const Case cases[] = {
    {"acos", 4},   {"acosh", 4}, {"acospi", 5}, {"asin", 4}, {"asinh", 4}, {"asinpi", 5}, {"atan", 5},    {"atanh", 5},
    {"atanpi", 5}, {"cbrt", 2},  {"cos", 4},    {"cosh", 4}, {"cospi", 4}, {"erf", 16},   {"erfc", 16},   {"exp", 3},
    {"exp10", 3},  {"exp2", 3},  {"expm1", 3},  {"log", 3},  {"log10", 3}, {"log1p", 2},  {"log2", 3},    {"rsqrt", 2},
    {"sin", 4},    {"sinh", 4},  {"sinpi", 4},  {"tan", 5},  {"tanh", 5},  {"tanpi", 6},  {"tgamma", 16},
};

constexpr unsigned items = 1U << 14;
constexpr unsigned step = 251;

// A work-item looks at `rounds` numbers and keeps the worst error, in units of the last place, with its argument. Differences of
// class and signs of zero count for more than any bound. Infinities are as good as 2^128.
std::string source_of(const std::string& name) {
    return R"(
float error(float r, double d) {
    if (isnan(d) || isnan(r))
        return isnan(d) && isnan(r) ? 0 : 1e9f;
    if (d == 0 && r == 0)
        return signbit(d) == signbit(r) ? 0 : 2e9f;
    if (isinf(d) || (isinf(r) && fabs(d) >= 0x1p128))
        return isinf(r) && (r > 0) == (d > 0) ? 0 : 3e9f;
    double value = isinf(r) ? copysign(0x1p128, (double)r) : (double)r;
    long exponent = clamp((as_long(fabs(d)) >> 52) - 1023, -126L, 127L) - 23;
    return (float)(fabs(value - d) * as_double((1023 - exponent) << 52));
}
kernel void worst(global float* errors, global uint* places, global const uint* numbers) {
    uint i = get_global_id(0), place = 0;
    float most = -1;
    for (uint k = 0; k < numbers[1]; ++k) {
        uint bits = (numbers[0] + k * (uint)get_global_size(0) + i) * numbers[2];
        float x = as_float(bits);
        float e = error()" +
           name + "(x), " + name + R"(((double)x));
        place = e > most ? bits : place;
        most = e > most ? e : most;
    }
    errors[i] = most;
    places[i] = place;
})";
}

class MathDense : public ::testing::TestWithParam<Case> {};

TEST_P(MathDense, FloatsFunction_AgreesWithTheDoublesFunction) {
    const bool is_every = std::getenv("POLDER_TEST_EVERY_FLOAT") != nullptr;
    test::KernelRunner runner{source_of(GetParam().name)};
    std::vector<float> errors(items);
    std::vector<unsigned> places(items);
    const uint64_t count = (uint64_t{1} << 32) / (is_every ? 1 : step);
    for (uint64_t base = 0; base < count; base += uint64_t{items} * 256) {
        unsigned numbers[] = {static_cast<unsigned>(base), 256, is_every ? 1 : step};
        void* const pointers[] = {errors.data(), places.data(), numbers};
        runner.run("worst", pointers, items);
        const auto most = std::max_element(errors.begin(), errors.end());
        ASSERT_LE(*most, GetParam().bound)
            << GetParam().name << "(" << std::bit_cast<float>(places[static_cast<size_t>(most - errors.begin())])
            << ")";
    }
}

INSTANTIATE_TEST_SUITE_P(All, MathDense, ::testing::ValuesIn(cases),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace polder::math
