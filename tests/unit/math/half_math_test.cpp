// Every math function on halves against correctly rounded references: functions of one argument for all 65,536, the others for a grid
// of numbers that covers all exponents, for random ones, and for the special ones.
#include "buffer.h"
#include "check.h"
#include "functions.h"
#include "kernel_runner.h"
#include "opencl_types.h"

#include <climits>
#include <gtest/gtest.h>
#include <random>

namespace polder::math {
namespace {

constexpr size_t all_halves = 65536;

bool takes_one_half(Signature signature) {
    return signature == Signature::t_from_t || signature == Signature::n_from_t || signature == Signature::t_and_t ||
           signature == Signature::t_and_n;
}

// Every 131st bit pattern, which is odd and not a multiple of a power of two: 501 numbers of both signs with all exponents.
std::vector<Half> grid() {
    std::vector<Half> numbers;
    for (unsigned bits = 0; bits < all_halves; bits += 131)
        numbers.push_back(Half::of_bits(static_cast<uint16_t>(bits)));
    for (const unsigned bits : {0x0000U, 0x0001U, 0x03ffU, 0x0400U, 0x3800U, 0x3bffU, 0x3c00U, 0x3c01U, 0x4000U,
                                0x4200U, 0x7bffU, 0x7c00U, 0x7e00U})
        for (const unsigned sign : {0U, 0x8000U})
            numbers.push_back(Half::of_bits(static_cast<uint16_t>(bits | sign)));
    return numbers;
}

class Samples {
public:
    explicit Samples(const Function& function) {
        const std::vector<Half> numbers = grid();
        if (takes_one_half(function.signature))
            for (unsigned bits = 0; bits < all_halves; ++bits)
                add(Half::of_bits(static_cast<uint16_t>(bits)), 0, 0, 0);
        else if (function.signature == Signature::t_from_tn)
            for (const Half a : numbers)
                for (const int n :
                     {0, 1, -1, 2, -2, 3, -3, 5, 7, -8, 10, 15, -24, 25, -30, 31, 64, -64, 1023, INT_MAX, INT_MIN})
                    add(a, 0, 0, n);
        else
            for (const Half a : numbers)
                for (const Half b : numbers)
                    add(a, b, any(), 0);
        if (function.signature == Signature::t_from_ttt)
            add_cancelling();
        while (inputs_.a.size() % 48 != 0)  // a multiple of all widths
            add(any(), any(), any(), 1);
    }
    [[nodiscard]] Inputs<Half>& get() { return inputs_; }

private:
    Half any() { return Half::of_bits(static_cast<uint16_t>(random_())); }
    void add(Half a, Half b, Half c, int n) {
        inputs_.a.push_back(a);
        inputs_.b.push_back(b);
        inputs_.c.push_back(c);
        inputs_.n.push_back(n);
    }
    // a * b + c where nearly nothing is left, where c is next to half a unit of the product, and the other way round.
    void add_cancelling() {
        for (int i = 0; i < 100000; ++i) {
            const Half a = any(), b = any();
            const float product = static_cast<float>(a) * static_cast<float>(b);
            add(a, b, -product, 0);
            add(a, b, std::ldexp(product, -11 - static_cast<int>(random_() % 3)), 0);
            add(a, b, std::ldexp(product, 10 + static_cast<int>(random_() % 4)), 0);
        }
    }

    std::mt19937 random_{16};
    Inputs<Half> inputs_;
};

Outputs<Half> evaluate(test::KernelRunner& runner, const std::string& kernel, Inputs<Half>& inputs, int width) {
    const size_t count = inputs.a.size();
    Outputs<Half> outputs{Buffer<Half>(count), Buffer<Half>(count), Buffer<int>(count)};
    void* const pointers[] = {inputs.a.data(),    inputs.b.data(),       inputs.c.data(),     inputs.n.data(),
                              outputs.out.data(), outputs.second.data(), outputs.out_n.data()};
    runner.run(kernel, pointers, count / static_cast<size_t>(width));
    return outputs;
}

size_t differences(const Outputs<Half>& one, const Outputs<Half>& other) {
    const auto is_same = [](Half a, Half b) { return a.bits() == b.bits() || (std::isnan(a) && std::isnan(b)); };
    size_t count = 0;
    for (size_t i = 0; i < one.out.size(); ++i)
        count += is_same(one.out[i], other.out[i]) && is_same(one.second[i], other.second[i]) &&
                         one.out_n[i] == other.out_n[i]
                     ? 0
                     : 1;
    return count;
}

class HalfMath : public ::testing::TestWithParam<Function> {};

TEST_P(HalfMath, ResultsOfAllWidths_StayWithinTheSpecificationsBound) {
    const Function& function = GetParam();
    Samples arguments{function};
    Inputs<Half>& inputs = arguments.get();
    std::string source;
    for (const int width : all_widths)
        source += kernel_source(function, Precision::half, width);
    test::KernelRunner runner{source};
    const std::string kernel = std::string{function.name} + "_half";
    const Outputs<Half> scalars = evaluate(runner, kernel, inputs, 1);
    const Verdict verdict = check(function, inputs, scalars);
    EXPECT_EQ(verdict.failures, 0U) << kernel << ": " << verdict.failures << " of " << inputs.a.size()
                                    << " results are out of bounds, the worst by " << verdict.worst_ulp << " ulp\n"
                                    << verdict.first_failures;
    RecordProperty("worst_ulp_" + kernel, std::to_string(verdict.worst_ulp));
    // Vectors of 8 and 16 have other forms of the float functions on some processors, and round otherwise where a result lies between two halves.
    for (const int width : all_widths) {
        const Outputs<Half> vectors = evaluate(runner, kernel + width_suffix(width), inputs, width);
        EXPECT_EQ(check(function, inputs, vectors).failures, 0U) << width;
        EXPECT_LE(differences(scalars, vectors), width < 8 ? 0U : inputs.a.size() / 1000) << width;
    }
}

std::vector<Function> functions_of_halves() {
    std::vector<Function> list;
    for (const Function& function : functions())
        if (function.ulp_double >= 0)
            list.push_back(function);
    return list;
}

INSTANTIATE_TEST_SUITE_P(All, HalfMath, ::testing::ValuesIn(functions_of_halves()),
                         [](const auto& instance) { return std::string{instance.param.name}; });

// +, -, *, / and unary minus are rounded once; mad may be rounded twice.
TEST(HalfArithmetic, OperatorsOfAllWidths_RoundOnce) {
    constexpr std::array operators = {'+', '-', '*', '/'};
    std::vector<Half> numbers = grid();
    Buffer<Half> a, b;
    for (const Half x : numbers)
        for (const Half y : numbers) {
            a.push_back(x);
            b.push_back(y);
        }
    while (a.size() % 48 != 0) {
        a.push_back(1);
        b.push_back(3);
    }
    for (const int width : {1, 4, 16})
        for (const char operation : operators) {
            test::KernelRunner runner{kernel_for(width) +
                                      "k(global const half* a, global const half* b, global half* out) {\n" +
                                      "size_t i = get_global_id(0);\n" +
                                      store(load("a", width) + operation + load("b", width), "out", width) + "\n}\n"};
            Buffer<Half> out(a.size());
            void* const pointers[] = {a.data(), b.data(), out.data()};
            runner.run("k", pointers, a.size() / static_cast<size_t>(width));
            for (size_t i = 0; i < a.size(); ++i) {
                const double x = a[i], y = b[i];
                const Half exact = operation == '+'   ? Half(x + y)
                                   : operation == '-' ? Half(x - y)
                                   : operation == '*' ? Half(x * y)
                                                      : Half(Real(x) / Real(y));
                ASSERT_TRUE(exact.bits() == out[i].bits() || (std::isnan(exact) && std::isnan(out[i])))
                    << x << " " << operation << " " << y << " gives " << out[i] << ", not " << exact << ", width "
                    << width;
            }
        }
}

TEST(HalfConstants, OfTheHeader_AreTheNearestHalves) {
    test::KernelRunner runner{R"(
kernel void k(global half* out) {
    half list[] = {HALF_MAX, HALF_MIN, HALF_EPSILON, M_E_H, M_LOG2E_H, M_LOG10E_H, M_LN2_H, M_LN10_H, M_PI_H, M_PI_2_H, M_PI_4_H,
                   M_1_PI_H, M_2_PI_H, M_2_SQRTPI_H, M_SQRT2_H, M_SQRT1_2_H, HALF_DIG, HALF_MANT_DIG, HALF_MAX_10_EXP,
                   HALF_MAX_EXP, HALF_MIN_10_EXP, HALF_MIN_EXP, HALF_RADIX, nan((ushort)5)};
    for (int i = 0; i < sizeof(list) / sizeof(half); ++i)
        out[i] = list[i];
}
)"};
    const std::vector<double> expected = {65504, 0x1p-14, 0x1p-10, M_E,    M_LOG2E, M_LOG10E,   M_LN2,   M_LN10,
                                          M_PI,  M_PI_2,  M_PI_4,  M_1_PI, M_2_PI,  M_2_SQRTPI, M_SQRT2, M_SQRT1_2,
                                          3,     11,      4,       16,     -4,      -13,        2};
    Buffer<Half> out(expected.size() + 1);
    void* const pointers[] = {out.data()};
    runner.run("k", pointers, 1);
    for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(out[i].bits(), Half(expected[i]).bits()) << i;
    EXPECT_EQ(out.back().bits(), 0x7e05);
}

}  // namespace
}  // namespace polder::math
