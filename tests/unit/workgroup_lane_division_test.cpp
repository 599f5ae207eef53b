// Division of lanes: exact, without a division for each lane.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <type_traits>

namespace polder::compiler::workgroup::test {
namespace {

// The ends of the range, powers of two and their neighbours, and others.
template <class T>
std::vector<T> divisible_edges() {
    using Unsigned = std::make_unsigned_t<T>;
    std::vector<T> values;
    for (int bit = 0; bit < std::numeric_limits<Unsigned>::digits; ++bit)
        for (int near = -1; near <= 1; ++near) {
            const auto value = static_cast<Unsigned>((Unsigned{1} << bit) + static_cast<Unsigned>(near));
            values.push_back(static_cast<T>(value));
            values.push_back(static_cast<T>(Unsigned{0} - value));
        }
    std::mt19937_64 random(23);
    for (int i = 0; i < 40; ++i)
        values.push_back(static_cast<T>(random() >> (i % 60)));
    // Products and the numbers before them, so that quotients are next to whole numbers.
    for (int i = 0; i < 20; ++i) {
        const auto divisor = static_cast<Unsigned>(random() >> (random() % 64)),
                   times = static_cast<Unsigned>(random() >> (random() % 64));
        for (const Unsigned before : {Unsigned{0}, Unsigned{1}})
            values.push_back(static_cast<T>(divisor * times - before));
        values.push_back(static_cast<T>(divisor));
    }
    // The compiler guards divisors that trap (division_guard), which work-group functions alone do not.
    std::erase(values, T{0});
    if (std::is_signed_v<T> && sizeof(T) >= sizeof(int))
        std::erase(values, static_cast<T>(-1));
    return values;
}

// Each number by each divisor. `out` has the quotients and the remainders of all numbers by the first divisor, then by the second, and so on.
template <class T>
void expect_exact_lanes(const std::vector<T>& values, const std::vector<T>& quotients,
                        const std::vector<T>& remainders) {
    for (size_t d = 0; d < values.size(); ++d)
        for (size_t i = 0; i < values.size(); ++i) {
            const size_t at = d * values.size() + i;
            const auto expected = static_cast<T>(values[i] / values[d]);
            ASSERT_EQ(quotients[at], expected) << +values[i] << " / " << +values[d];
            ASSERT_EQ(remainders[at], static_cast<T>(values[i] % values[d])) << +values[i] << " % " << +values[d];
        }
}

template <class T>
void expect_exact_lanes(const std::string& type) {
    const std::vector<T> values = divisible_edges<T>();
    const uint64_t count = values.size();
    std::vector<T> numbers, divisors, quotients(count * count), remainders(count * count);
    for (const T divisor : values)
        for (const T number : values) {
            numbers.push_back(number);
            divisors.push_back(divisor);
        }
    Compiled program("kernel void own(global const " + type + "* n, global const " + type + "* d, global " + type +
                     "* q, global " + type +
                     "* r) { size_t i = get_global_id(0); q[i] = n[i] / d[i]; r[i] = n[i] % d[i]; }"
                     "kernel void shared(global const " +
                     type + "* n, global const " + type + "* d, global " + type + "* q, global " + type +
                     "* r, int count) { int i = get_global_id(0); for (int j = 0; j < count; ++j) {"
                     " q[j * count + i] = n[i] / d[j]; r[j * count + i] = n[i] % d[j]; } }");
    ASSERT_EQ(program.prepare("own"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    program.run({1, {count * count, 1, 1}, {64, 1, 1}},
                Arguments().add(numbers.data()).add(divisors.data()).add(quotients.data()).add(remainders.data()));
    expect_exact_lanes(values, quotients, remainders);

    std::ranges::fill(quotients, T{0});
    std::ranges::fill(remainders, T{0});
    ASSERT_EQ(program.prepare("shared"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    program.run({1, {count, 1, 1}, {64, 1, 1}}, Arguments()
                                                    .add(values.data())
                                                    .add(values.data())
                                                    .add(quotients.data())
                                                    .add(remainders.data())
                                                    .add(static_cast<int>(count)));
    expect_exact_lanes(values, quotients, remainders);
}

TEST(LaneDivision, NumbersOf8And16Bits_AreDividedExactly) {
    expect_exact_lanes<int8_t>("char");
    expect_exact_lanes<uint8_t>("uchar");
    expect_exact_lanes<int16_t>("short");
    expect_exact_lanes<uint16_t>("ushort");
}

TEST(LaneDivision, NumbersOf32Bits_AreDividedExactly) {
    expect_exact_lanes<int32_t>("int");
    expect_exact_lanes<uint32_t>("uint");
}

TEST(LaneDivision, NumbersOf64Bits_AreDividedExactly) {
    expect_exact_lanes<int64_t>("long");
    expect_exact_lanes<uint64_t>("ulong");
}

TEST(LaneDivision, OfEachLane_IsAVectorOfFloatingPointNumbers) {
    const std::string source = "kernel void k(global uint* a, global const uint* d) {"
                               " size_t i = get_global_id(0); a[i] = a[i] * 3 / (d[i] | 1); }";
    Compiled program(source, processor_with_256_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.optimised().find(" udiv "), std::string::npos) << program.optimised();
    EXPECT_NE(program.optimised().find(" fdiv <8 x double>"), std::string::npos) << program.optimised();
}

// Once for a round of the loop, and a product for each lane.
TEST(LaneDivision, ByANumberThatAllLanesShare_IsOneDivision) {
    const std::string source = R"(
        kernel void k(global uint* a, int n) {
            uint x = a[get_global_id(0)], sum = 0;
            for (uint d = 3; d < n; d += 2) sum += x % d;
            a[get_global_id(0)] = sum;
        })";
    Compiled program(source, processor_with_256_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.optimised().find(" urem "), std::string::npos) << program.optimised();
    EXPECT_EQ(program.optimised().find(" fdiv <"), std::string::npos) << program.optimised();
    EXPECT_NE(program.optimised().find(" fdiv double"), std::string::npos) << program.optimised();
    EXPECT_EQ(program.optimised().find(" fptoui "), std::string::npos) << "eight instructions without AVX-512";
}

// A binary search: lanes leave its loop one by one. Where a lane has left, the divisor is the constant, too.
TEST(LaneDivision, ByAConstantInADivergentLoop_IsByTheConstant) {
    const std::string source = R"(
        kernel void k(global const float* sorted, global const float* x, global int* out, int n) {
            float value = x[get_global_id(0)];
            int low = 0, high = n - 1;
            while (high - low > 1) {
                int middle = (low + high) / 2;
                if (sorted[middle] > value) high = middle; else low = middle;
            }
            out[get_global_id(0)] = low;
        })";
    Compiled program(source, processor_with_256_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    EXPECT_EQ(program.optimised().find(" fdiv "), std::string::npos) << program.optimised();
    EXPECT_NE(program.optimised().find("sdiv <8 x i32>"), std::string::npos) << program.optimised();
    EXPECT_NE(program.optimised().find(", splat (i32 2)"), std::string::npos) << program.optimised();
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
