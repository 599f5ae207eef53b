// Math functions of subnormal arguments: how many instructions for a vector of lanes take an Intel processor long (subnormal_traps.h). Where the result is
// subnormal, one is needed.
#include "kernel_runner.h"
#include "subnormal_traps.h"

#include <compiler/compiler.h>

#include <array>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace polder::math {
namespace {

constexpr size_t items = 256;

struct Call {
    const char* text;  // x is subnormal; y is usual
    unsigned floats, doubles;  // how many such instructions
};

constexpr std::array calls = {
    Call{"acosh(x + 2)", 0, 0}, Call{"cbrt(x)", 0, 0},     Call{"cosh(x)", 0, 0}, Call{"cospi(x)", 0, 0},
    Call{"erf(x)", 1, 1},       Call{"erfc(x)", 0, 0},     Call{"log(x)", 0, 0},  Call{"log2(x)", 0, 0},
    Call{"log10(x)", 0, 0},     Call{"rootn(x, 3)", 0, 0}, Call{"sinh(x)", 0, 0}, Call{"tanh(x)", 0, 0},
    Call{"cos(x)", 0, 2},       Call{"exp2(x)", 3, 5},
};

// How many such instructions the kernel executes.
template <class T>
unsigned counted(const std::string& call, const std::string& type) {
    std::string source = "kernel void k(global T* out, global const T* a, global const T* b) {\n"
                         "size_t i = get_global_id(0); T x = a[i], y = b[i]; out[i] = " +
                         call + " + y; }";
    for (size_t at = 0; (at = source.find('T', at)) != std::string::npos;)
        source.replace(at, 1, type);
    test::KernelRunner runner(source);
    std::vector<T> out(items), a(items), b(items);
    for (size_t i = 0; i < items; ++i) {
        a[i] = std::numeric_limits<T>::denorm_min() * static_cast<T>(1 + i * 12345);
        b[i] = static_cast<T>(1 + static_cast<double>(i) / items);
    }
    void* const pointers[] = {out.data(), a.data(), b.data()};
    runner.run("k", pointers, items);  // makes the code
    const SubnormalCounts counts = count_subnormals([&] { runner.run("k", pointers, items); });
    return counts.products + counts.scalings;
}

// How many vectors of lanes the work-items are.
unsigned vectors_of_floats() { return counted<float>("x / y", "float"); }
unsigned vectors_of_doubles() { return counted<double>("x / y", "double"); }
bool has_wide_registers() { return vectors_of_floats() == items / 16; }
bool has_fused_products() { return vectors_of_floats() <= items / 8; }

class FunctionsOfSubnormals : public ::testing::TestWithParam<Call> {};

TEST_P(FunctionsOfSubnormals, NeedFewSlowInstructions) {
    if (!can_count_subnormals())
        GTEST_SKIP() << "the exceptions of this processor are not counted";
    const Call& call = GetParam();
    if (!has_fused_products())
        GTEST_SKIP() << "fused products are computed by several instructions";
    EXPECT_LE(counted<float>(call.text, "float"), call.floats * vectors_of_floats()) << call.text << " of floats";
    EXPECT_LE(counted<double>(call.text, "double"), call.doubles * vectors_of_doubles()) << call.text << " of doubles";
}

INSTANTIATE_TEST_SUITE_P(All, FunctionsOfSubnormals, ::testing::ValuesIn(calls));

TEST(SubnormalArguments, OfVectors_AreScaledByTheirBits) {
    if (!can_count_subnormals() || !has_wide_registers())
        GTEST_SKIP() << "only counted for AVX-512";
    // Four squares, of which both operands are subnormal: those take their usual time.
    EXPECT_LE(counted<float>("normalize((T4)(x, x, x, x)).x", "float"), 4 * vectors_of_floats());
    EXPECT_LE(counted<float>("length((T4)(x, x, x, x))", "float"), 4 * vectors_of_floats());
    EXPECT_LE(counted<double>("length((T4)(x, x, x, x))", "double"), 4 * vectors_of_doubles());
    EXPECT_LE(counted<float>("hypot(x, y * 0)", "float"), 3 * vectors_of_floats());
}

// Lanes compute both sides of a short branch, and squares of usual numbers that were scaled down would be subnormal.
TEST(SubnormalArguments, AreNotMadeOfUsualVectors) {
    if (!can_count_subnormals())
        GTEST_SKIP() << "the exceptions of this processor are not counted";
    for (const std::string call : {"length((T4)(y, y, y, y))", "distance((T4)(y, y, y, y), (T4)(5, 4, 3, y))",
                                   "distance((T2)(y, y), (T2)(5, 4))", "normalize((T4)(y, 1, 2, y)).x"}) {
        EXPECT_EQ(counted<float>(call, "float"), 0U) << call;
        EXPECT_EQ(counted<double>(call, "double"), 0U) << call;
    }
}

struct alignas(64) Sixteen {
    std::array<float, 16> elements;
    bool operator==(const Sixteen&) const = default;
};

// Vectors whose elements are in one register have no branch around what tiny numbers do not need.
TEST(SubnormalArguments, OfLongVectors_AreNotComputedWith) {
    if (!can_count_subnormals())
        GTEST_SKIP() << "the exceptions of this processor are not counted";
    for (const std::string call : {"tanh", "sinh"}) {
        test::KernelRunner runner("kernel void k(global float16* out, global const float16* a) {\n"
                                  "size_t i = get_global_id(0); out[i] = " +
                                  call + "(a[i]); }");
        std::vector<Sixteen> out(items), a(items);
        for (size_t i = 0; i < items; ++i)
            for (size_t element = 0; element < 16; ++element)
                a[i].elements[element] =
                    std::numeric_limits<float>::denorm_min() * static_cast<float>(1 + (16 * i + element) * 1234);
        void* const pointers[] = {out.data(), a.data()};
        runner.run("k", pointers, items);  // makes the code
        const SubnormalCounts counts = count_subnormals([&] { runner.run("k", pointers, items); });
        EXPECT_EQ(counts.products + counts.scalings, 0U) << call;
        EXPECT_TRUE(out == a) << call;
    }
}

TEST(SubnormalResults, OfPowersThatAreZero_AreNotComputed) {
    if (!can_count_subnormals() || !has_wide_registers())
        GTEST_SKIP() << "only forms for AVX-512 are without them";
    EXPECT_EQ(counted<float>("pow(x, y + 3)", "float"), 0U);
    EXPECT_EQ(counted<double>("powr(x, y + 3)", "double"), 0U);
}

TEST(SubnormalCounts, SeeProductsQuotientsAndRoots) {
    if (!can_count_subnormals())
        GTEST_SKIP() << "the exceptions of this processor are not counted";
    EXPECT_GE(vectors_of_floats(), items / 16);
    EXPECT_EQ(counted<float>("x * 3 + sqrt(x)", "float"), 2 * vectors_of_floats());
    EXPECT_EQ(counted<float>("x + y", "float"), 0U);
}

}  // namespace
}  // namespace polder::math
