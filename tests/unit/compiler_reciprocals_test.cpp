// Divisions that may be approximate: within the bound of OpenCL C, and right for divisors that are 0 or infinite.
#include "compiled_for_processor.h"
#include "compiler_support.h"
#include "targets/host/instructions/huge_reciprocals.h"
#include "targets/host/instructions/native_roots.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace polder::compiler::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Quotients by a kernel, by default with -cl-fast-relaxed-math and one work-item for each.
std::vector<float> quotients(const std::string& statement, const std::vector<float>& dividends,
                             const std::vector<float>& divisors, size_t items,
                             const char* options = "-cl-fast-relaxed-math") {
    const Outcome built = build("kernel void k(global const float* n, global const float* d, global float* out) {\n"
                                "  size_t i = get_global_id(0); " +
                                    statement + " }",
                                options);
    EXPECT_EQ(built.status, Status::success) << built.log;
    std::vector<float> out(dividends.size());
    Launch{built, "k"}.set(0, dividends.data()).set(1, divisors.data()).set(2, out.data()).run(items, items);
    return out;
}

TEST(Reciprocals, OfZeroAndInfinity_AreInfinityAndZero) {
    std::vector<float> divisors, dividends;
    for (size_t i = 0; i < 24; ++i) {
        constexpr float special[] = {0, infinity, -infinity, 2};
        divisors.push_back(special[i % 4]);
        dividends.push_back(i % 8 < 4 ? 1.0F : -3.0F);
    }
    const auto check = [&](const std::string& statement, size_t items) {
        SCOPED_TRACE(statement);
        const std::vector<float> out = quotients(statement, dividends, divisors, items);
        for (size_t i = 0; i < out.size(); ++i)
            if (divisors[i] == 2)
                EXPECT_NEAR(out[i], dividends[i] / 2, 1e-6) << i;
            else
                EXPECT_EQ(out[i], dividends[i] / divisors[i]) << i;
    };
    check("out[i] = n[i] / d[i];", 24);
    // Vectors of fewer and of more lanes than a register.
    check("vstore2(vload2(i, n) / vload2(i, d), i, out);", 12);
    check("vstore3(vload3(i, n) / vload3(i, d), i, out);", 8);
    check("vstore8(vload8(i, n) / vload8(i, d), i, out);", 3);
    check("float16 q = (float16)(vload8(i, n), vload8(i, n)) / (float16)(vload8(i, d), vload8(i, d));"
          " vstore8(q.hi, i, out);",
          3);
}

// The logistic function as networks compute it: exp(89) is infinite.
TEST(Reciprocals, LogisticFunctionIsZeroWhereTheExponentialIsInfinite) {
    const std::vector<float> x{-1000, -100, -89, 0, 89, 100, 1000, 0, -1000, -100, -89, 0, 89, 100, 1000, 0};
    const std::vector<float> out = quotients("out[i] = n[i] / (1.0f + exp(-d[i]));", x, x, x.size());
    const std::vector<float> once = quotients("out[i] = 1.0f / (1.0f + exp(-d[i]));", x, x, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        const double logistic = 1 / (1 + std::exp(-static_cast<double>(x[i])));
        EXPECT_NEAR(once[i], logistic, 1e-6) << x[i];
        EXPECT_NEAR(out[i], x[i] * logistic, 1e-6 * std::abs(x[i])) << x[i];
    }
}

TEST(Reciprocals, OfRootsOfZeroAndInfinity_AreInfinityAndZero) {
    std::vector<float> numbers, dividends;
    for (size_t i = 0; i < 24; ++i) {
        constexpr float special[] = {0, infinity, 4, -0.0F};
        numbers.push_back(special[i % 4]);
        dividends.push_back(i % 8 < 4 ? 1.0F : -3.0F);
    }
    const auto check = [&](const char* options, const std::string& statement, size_t items) {
        SCOPED_TRACE(statement + " " + options);
        const std::vector<float> out = quotients(statement, dividends, numbers, items, options);
        for (size_t i = 0; i < out.size(); ++i)
            if (numbers[i] == 4)
                EXPECT_NEAR(out[i], dividends[i] / 2, 1e-6) << i;
            else
                EXPECT_EQ(out[i], dividends[i] / std::sqrt(numbers[i])) << i;
    };
    for (const char* const options : {"-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations"}) {
        check(options, "out[i] = n[i] / sqrt(d[i]);", 24);
        check(options, "vstore3(vload3(i, n) / sqrt(vload3(i, d)), i, out);", 8);
        // Without lanes, so that the divisions are of single numbers.
        check(options, "for (size_t j = 0; j < 24; ++j) { if (out[j] == 77) break; out[j] = n[j] / sqrt(d[j]); }", 1);
    }
    // As in a search for the nearest: the limit, where the length is 0.
    const std::vector<float> zeros(16, 0);
    for (const float q : quotients("out[i] = min(1.0f / sqrt(d[i]), 1e6f);", zeros, zeros, 16))
        EXPECT_EQ(q, 1e6F);
}

// Where all divisors are `divisor`.
void expect_nan(const std::string& statement, float divisor) {
    const std::vector<float> ones(16, 1), divisors(16, divisor);
    for (const float q : quotients(statement, ones, divisors, 16))
        EXPECT_TRUE(std::isnan(q)) << q;
}

TEST(Reciprocals, OfRootsOfNegativeNumbers_AreNaN) { expect_nan("out[i] = n[i] / sqrt(d[i]);", -1); }

// 2.5 ULP of the division and 3 of the root.
TEST(Reciprocals, OfRoots_AreWithinTheirBound) {
    std::mt19937 random(8);
    std::vector<float> dividends, numbers;
    for (size_t i = 0; i < 16384; ++i) {
        const auto bits = static_cast<uint32_t>(random());
        dividends.push_back(std::bit_cast<float>((bits & 0x807FFFFFU) | ((100 + bits % 50) << 23U)));
        numbers.push_back(std::bit_cast<float>(1 + static_cast<uint32_t>(random()) % 0x7F7FFFFEU) + 0x1p-126F);
    }
    const std::vector<float> out = quotients("out[i] = n[i] / sqrt(d[i]);", dividends, numbers, numbers.size());
    double worst = 0;
    for (size_t i = 0; i < out.size(); ++i) {
        const double exact = static_cast<double>(dividends[i]) / std::sqrt(static_cast<double>(numbers[i]));
        const auto near = static_cast<float>(std::abs(exact));
        if (near < 0x1p-125F || near > 0x1p126F)
            continue;
        const double ulp = static_cast<double>(std::nextafter(near, infinity)) - static_cast<double>(near);
        worst = std::max(worst, std::abs(static_cast<double>(out[i]) - exact) / ulp);
    }
    EXPECT_LE(worst, 5.5);
}

// The largest error of 1 / sqrt(x) in units of the last place, from normal numbers of all sizes.
template <typename T>
double worst_reciprocal_root(const std::string& expression, const char* options) {
    const std::string type = std::is_same_v<T, float> ? "float" : "double";
    const Outcome built = build("kernel void k(global const " + type + "* x, global " + type +
                                    "* out) { size_t i = get_global_id(0); out[i] = " + expression + "; }",
                                options);
    EXPECT_EQ(built.status, Status::success) << built.log;
    std::mt19937_64 random(9);
    std::vector<T> x, out(65536);
    constexpr int exponent_max = std::numeric_limits<T>::max_exponent;
    for (size_t i = 0; i < out.size(); ++i)
        x.push_back(std::ldexp(static_cast<T>(1 + static_cast<double>(random() >> 11U) * 0x1p-53),
                               static_cast<int>(random() % (2 * exponent_max - 3)) - exponent_max + 2));
    Launch{built, "k"}.set(0, x.data()).set(1, out.data()).run(out.size(), 256);
    double worst = 0;
    for (size_t i = 0; i < out.size(); ++i) {
        const long double exact = 1 / std::sqrt(static_cast<long double>(x[i]));
        const T near = static_cast<T>(exact);
        const long double ulp = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
        worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(out[i]) - exact) / ulp));
    }
    return worst;
}

TEST(Reciprocals, OfRootsByTheLibrary_AreWithinTheirBound) {
    EXPECT_LE(worst_reciprocal_root<float>("rsqrt(x[i])", ""), 2);
    EXPECT_LE(worst_reciprocal_root<double>("rsqrt(x[i])", ""), 2);
    EXPECT_LE(worst_reciprocal_root<double>("1 / sqrt(x[i])", "-cl-fast-relaxed-math"), 2);
    EXPECT_LE(worst_reciprocal_root<double>("3 / (3 * sqrt(x[i]))", "-cl-unsafe-math-optimizations"), 3);
}

// Also of subnormal numbers, and where the reciprocal is one.
TEST(Reciprocals, NativeOnes_AreNearAllQuotients) {
    std::vector<float> divisors{0,         -0.0F,     infinity,  -infinity, 0x1p-149F, -0x1p-130F,  0x1p-128F,
                                0x1p-127F, 0x1p-126F, 0x1p+126F, 0x1p+127F, 3,         0x1.8p+127F, -7};
    std::mt19937 random(3);
    while (divisors.size() < 4096)
        divisors.push_back(std::bit_cast<float>(static_cast<uint32_t>(random()) & 0xfeffffffU));
    const std::vector<float> dividends(divisors.size(), 1.0F);
    for (const std::string call : {"native_recip(d[i])", "half_recip(d[i])", "native_divide(n[i], d[i])"}) {
        const std::vector<float> out = quotients("out[i] = " + call + ";", dividends, divisors, divisors.size(), "");
        for (size_t i = 0; i < out.size(); ++i) {
            const double exact = 1 / static_cast<double>(divisors[i]);
            const auto near = static_cast<float>(exact);
            if (std::isinf(near) || near == 0)
                EXPECT_EQ(out[i], near) << call << " " << divisors[i];
            else
                EXPECT_NEAR(out[i], exact, std::max(3e-7 * std::abs(exact), 3 * 0x1p-149))
                    << call << " " << divisors[i];
        }
    }
}

TEST(Reciprocals, OfRootsOfSpecialDoubles_AreThoseOfExactOperations) {
    constexpr double large = std::numeric_limits<double>::infinity();
    const std::vector<double> special{0,
                                      -0.0,
                                      large,
                                      4,
                                      -1,
                                      0x1p-1074,
                                      0x1.8p-1030,
                                      -0x1p-1074,
                                      std::numeric_limits<double>::max(),
                                      std::numeric_limits<double>::quiet_NaN(),
                                      1,
                                      16};
    for (const char* const expression : {"rsqrt(x[i])", "n[i] / sqrt(x[i])"})
        for (const double dividend : {1.0, -3.0, large}) {
            if (expression[0] == 'r' && dividend != 1)
                continue;
            SCOPED_TRACE(std::string(expression) + " " + std::to_string(dividend));
            const Outcome built =
                build(std::string("kernel void k(global const double* x, global const double* n, global "
                                  "double* out) { size_t i = get_global_id(0); out[i] = ") +
                          expression + "; }",
                      "-cl-unsafe-math-optimizations");
            ASSERT_EQ(built.status, Status::success) << built.log;
            const std::vector<double> n(special.size(), dividend);
            std::vector<double> out(special.size());
            Launch{built, "k"}.set(0, special.data()).set(1, n.data()).set(2, out.data()).run(out.size(), out.size());
            for (size_t i = 0; i < out.size(); ++i) {
                const double exact = dividend / std::sqrt(special[i]);
                if (std::isnan(exact))
                    EXPECT_TRUE(std::isnan(out[i])) << special[i];
                else if (std::isinf(exact) || exact == 0 || std::isinf(special[i]))
                    EXPECT_EQ(std::abs(out[i]), std::abs(exact)) << special[i];
                else
                    EXPECT_NEAR(out[i] / exact, 1, 1e-15) << special[i];
            }
        }
}

// r * sqrt(r) for forces between bodies: the root of r * r * r, which LLVM computes, is infinite from 2^43 on.
TEST(Reciprocals, OfProductsWithRoots_AreThoseOfExactOperations) {
    std::vector<float> numbers, dividends;
    for (size_t i = 0; i < 32; ++i) {
        constexpr float special[] = {0, infinity, 4, 1e22F, 1e-16F, 1e38F, 2e-38F, 2};
        numbers.push_back(special[i % 8]);
        dividends.push_back(i % 16 < 8 ? 1.0F : -3.0F);
    }
    struct Case {
        const char* expression;
        float (*exact)(float, float);
    };
    const Case cases[] = {
        {"n[i] / (sqrt(d[i]) * d[i])", [](float n, float d) { return n / (std::sqrt(d) * d); }},
        {"1 / (d[i] * sqrt(d[i]))", [](float, float d) { return 1 / (std::sqrt(d) * d); }},
        {"n[i] / (fabs(n[i]) * sqrt(d[i]))", [](float n, float d) { return n / (std::abs(n) * std::sqrt(d)); }},
        {"3 / (n[i] * n[i] * sqrt(d[i]))", [](float n, float d) { return 3 / (n * n * std::sqrt(d)); }},
        {"min(1 / (sqrt(d[i]) * d[i]), 100.0f)",
         [](float, float d) { return std::min(1 / (std::sqrt(d) * d), 100.0F); }},
    };
    for (const char* const options : {"-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations"})
        for (const Case& one : cases)
            for (const bool lanes : {true, false}) {
                SCOPED_TRACE(std::string(one.expression) + " " + options + (lanes ? "" : ", a loop"));
                const std::string statement = std::string("out[i] = ") + one.expression + ";";
                const std::vector<float> out =
                    lanes ? quotients(statement, dividends, numbers, 32, options)
                          : quotients("for (i = 0; i < 32; ++i) { if (out[i] == 77) break; " + statement + " }",
                                      dividends, numbers, 1, options);
                for (size_t i = 0; i < out.size(); ++i) {
                    const float exact = one.exact(dividends[i], numbers[i]);
                    if (std::isinf(exact) || exact == 0)
                        EXPECT_EQ(out[i], exact) << numbers[i];
                    else
                        EXPECT_NEAR(out[i] / exact, 1, 1e-6) << numbers[i];
                }
            }
}

// The reciprocal is infinite, and on GPUs, which take such divisors for 0. So do the estimates of processors without AVX-512.
TEST(Reciprocals, OfTheSmallestNumbers_AreInfinite) {
    const std::vector<float> ones(16, 1);
    std::vector<float> divisors(16, 1e-40F);
    divisors[3] = -1e-45F;
    const std::vector<float> out = quotients("out[i] = n[i] / d[i];", ones, divisors, 16);
    for (size_t i = 0; i < out.size(); ++i)
        EXPECT_EQ(out[i], i == 3 ? -infinity : infinity) << i;
}

TEST(Reciprocals, OfNaNAreNaN) { expect_nan("out[i] = n[i] / d[i];", std::numeric_limits<float>::quiet_NaN()); }

// OpenCL C: 2.5 ULP for divisors from 2^-126 to 2^126.
TEST(Reciprocals, QuotientsAreWithinTheirBound) {
    std::mt19937 random(7);
    std::vector<float> dividends, divisors;
    for (size_t i = 0; i < 65536; ++i) {
        const auto number = [&](uint32_t exponent) {
            const uint32_t bits = static_cast<uint32_t>(random());
            return std::bit_cast<float>((bits & 0x807FFFFFU) | (exponent << 23U));
        };
        dividends.push_back(number(100 + static_cast<uint32_t>(random()) % 50));
        divisors.push_back(number(30 + static_cast<uint32_t>(random()) % 190));
    }
    double worst = 0;
    constexpr size_t once = 4096;
    for (size_t first = 0; first < dividends.size(); first += once) {
        const auto part = [&](const std::vector<float>& all) {
            return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                      all.begin() + static_cast<std::ptrdiff_t>(first + once));
        };
        const std::vector<float> n = part(dividends), d = part(divisors);
        const std::vector<float> out = quotients("out[i] = n[i] / d[i];", n, d, once);
        for (size_t i = 0; i < once; ++i) {
            const double exact = static_cast<double>(n[i]) / static_cast<double>(d[i]);
            const auto near = static_cast<float>(std::abs(exact));
            if (near < 0x1p-125F || near > 0x1p126F)
                continue;
            const double ulp = static_cast<double>(std::nextafter(near, infinity)) - static_cast<double>(near);
            worst = std::max(worst, std::abs(static_cast<double>(out[i]) - exact) / ulp);
        }
    }
    EXPECT_LE(worst, 2.5);
    EXPECT_GT(worst, 0.5) << "the division was exact";
}

// native_recip, a program's own quotients, vectors, a constant, and a root, which is never huge.
constexpr const char* reciprocals = R"(
target triple = "x86_64-unknown-linux-gnu"
define float @native(float %x) {
  %r = fdiv arcp float 1.0, %x
  ret float %r
}
define float @exact(float %x) {
  %r = fdiv float 1.0, %x
  ret float %r
}
define float @relaxed(float %x) {
  %r = fdiv fast float 1.0, %x
  ret float %r
}
define float @quotient(float %x, float %y) {
  %r = fdiv arcp float %x, %y
  ret float %r
}
define <4 x float> @vector(<4 x float> %x) {
  %r = fdiv arcp <4 x float> splat (float 1.0), %x
  ret <4 x float> %r
}
define float @constant() {
  %r = fdiv arcp float 1.0, 0x47EFFFFFE0000000
  ret float %r
}
define float @root(float %x) {
  %root = call float @llvm.sqrt.f32(float %x)
  %r = fdiv arcp float 1.0, %root
  ret float %r
}
)";

TEST(Reciprocals, OfOneHugeNumber_AreZeroWhereSubnormalResultsTakeLong) {
    const auto choices = [](const char* processor) {
        return after_pass<unsigned>(reciprocals, processor, flush_huge_reciprocals,
                                    [](unsigned& count, const llvm::Instruction& instruction) {
                                        count += llvm::isa<llvm::SelectInst>(instruction) ? 1 : 0;
                                    });
    };
    std::map<std::string, unsigned> expected{{"native", 1}, {"exact", 0},    {"relaxed", 0}, {"quotient", 0},
                                             {"vector", 0}, {"constant", 0}, {"root", 0}};
    EXPECT_EQ(choices("sapphirerapids"), expected);
    EXPECT_EQ(choices("haswell"), expected);
    expected["native"] = 0;
    EXPECT_EQ(choices("znver4"), expected);
}

// native_sqrt of vectors, of a number; native_rsqrt; a program's own roots, with and without relaxed mathematics; of doubles.
constexpr const char* roots = R"(
target triple = "x86_64-unknown-linux-gnu"
define <16 x float> @native(<16 x float> %x) {
  %r = call arcp <16 x float> @llvm.sqrt.v16f32(<16 x float> %x)
  ret <16 x float> %r
}
define <20 x float> @long(<20 x float> %x) {
  %r = call arcp contract <20 x float> @llvm.sqrt.v20f32(<20 x float> %x)
  ret <20 x float> %r
}
define float @number(float %x) {
  %r = call arcp float @llvm.sqrt.f32(float %x)
  ret float %r
}
define <16 x float> @exact(<16 x float> %x) {
  %r = call <16 x float> @llvm.sqrt.v16f32(<16 x float> %x)
  ret <16 x float> %r
}
define <16 x float> @relaxed(<16 x float> %x) {
  %r = call fast <16 x float> @llvm.sqrt.v16f32(<16 x float> %x)
  ret <16 x float> %r
}
define <16 x float> @inverse(<16 x float> %x) {
  %root = call arcp <16 x float> @llvm.sqrt.v16f32(<16 x float> %x)
  %r = fdiv arcp <16 x float> splat (float 1.0), %root
  ret <16 x float> %r
}
define <8 x double> @doubles(<8 x double> %x) {
  %r = call arcp <8 x double> @llvm.sqrt.v8f64(<8 x double> %x)
  ret <8 x double> %r
}
)";

TEST(Reciprocals, OfNativeRoots_AreEstimatedWhereRootsTakeLong) {
    const auto products = [](const char* processor) {
        return after_pass<unsigned>(roots, processor, estimate_native_roots,
                                    [](unsigned& count, const llvm::Instruction& instruction) {
                                        count += instruction.getOpcode() == llvm::Instruction::FMul ? 1 : 0;
                                    });
    };
    std::map<std::string, unsigned> expected{{"native", 1},  {"long", 1},    {"number", 0}, {"exact", 0},
                                             {"relaxed", 0}, {"inverse", 0}, {"doubles", 0}};
    EXPECT_EQ(products("sapphirerapids"), expected);
    expected["native"] = expected["long"] = 0;
    EXPECT_EQ(products("znver4"), expected);
    EXPECT_EQ(products("haswell"), expected);
}

}  // namespace
}  // namespace polder::compiler::test
