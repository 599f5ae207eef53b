// Division by a value that is the same for the whole work-group: the exact result for all types and edges, without a division.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <type_traits>

namespace polder::compiler::workgroup::test {
namespace {

bool has_division(const Compiled& program, const std::string& type) {
    for (const char* name : {"udiv ", "sdiv ", "urem ", "srem "})
        if (program.optimised().find(name + type) != std::string::npos)
            return true;
    return false;
}

// Powers of two and their neighbours, small numbers, the ends of the range, and others.
template <class T>
std::vector<T> edges() {
    using Unsigned = std::make_unsigned_t<T>;
    std::vector<T> values;
    for (int bit = 0; bit < std::numeric_limits<Unsigned>::digits; ++bit)
        for (int near = -1; near <= 1; ++near) {
            const auto value = static_cast<Unsigned>((Unsigned{1} << bit) + static_cast<Unsigned>(near));
            values.push_back(static_cast<T>(value));
            values.push_back(static_cast<T>(Unsigned{0} - value));
        }
    std::mt19937_64 random(17);
    for (int i = 0; i < 40; ++i)
        values.push_back(static_cast<T>(random() >> (i % 60)));
    return values;
}

template <class T>
T quotient(T dividend, T divisor) {
    if constexpr (std::is_signed_v<T>)
        if (divisor == -1)
            return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(dividend));
    return static_cast<T>(dividend / divisor);
}

template <class T>
void expect_exact(const std::string& type) {
    Compiled program("kernel void k(global const " + type + "* in, global " + type + "* q, global " + type + "* r, " +
                     type + " d) { size_t i = get_global_id(0); q[i] = in[i] / d; r[i] = in[i] % d; }");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has_division(program, "<")) << program.optimised();
    const std::vector<T> values = edges<T>();
    std::vector<T> quotients(values.size()), remainders(values.size());
    for (const T divisor : values) {
        program.run({1, {values.size(), 1, 1}, {37, 1, 1}},
                    Arguments().add(values.data()).add(quotients.data()).add(remainders.data()).add(divisor));
        if (divisor == 0)
            continue;  // the result is undefined; the kernel must only end
        for (size_t i = 0; i < values.size(); ++i) {
            const bool overflows = std::is_signed_v<T> && sizeof(T) >= 4 &&
                                   values[i] == std::numeric_limits<T>::min() && divisor == static_cast<T>(-1);
            if (overflows)
                continue;
            const T expected = quotient(values[i], divisor);
            ASSERT_EQ(quotients[i], expected) << +values[i] << " / " << +divisor;
            ASSERT_EQ(remainders[i], static_cast<T>(values[i] - expected * divisor)) << +values[i] << " % " << +divisor;
        }
    }
}

TEST(UniformDivision, NumbersOf8And16Bits_AreDividedExactly) {
    expect_exact<int8_t>("char");
    expect_exact<uint8_t>("uchar");
    expect_exact<int16_t>("short");
    expect_exact<uint16_t>("ushort");
}

TEST(UniformDivision, NumbersOf32Bits_AreDividedExactly) {
    expect_exact<int32_t>("int");
    expect_exact<uint32_t>("uint");
}

TEST(UniformDivision, NumbersOf64Bits_AreDividedExactly) {
    expect_exact<int64_t>("long");
    expect_exact<uint64_t>("ulong");
}

TEST(UniformDivision, VectorsOfTheProgram_AreDividedExactly) {
    Compiled program(R"(
        kernel void k(global const uint4* in, global uint4* q, uint4 d) {
            q[get_global_id(0)] = in[get_global_id(0)] / d + in[get_global_id(0)] % d.yxwz;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    struct alignas(16) Four {
        uint32_t of[4];
    };
    const Four divisors{{1, 7, 641, 0x80000001}};
    std::vector<Four> in(21), out(21);
    std::mt19937 random(3);
    for (Four& four : in)
        for (uint32_t& value : four.of)
            value = random();
    program.run({1, {21, 1, 1}, {21, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(divisors));
    for (size_t i = 0; i < in.size(); ++i)
        for (size_t e = 0; e < 4; ++e)
            EXPECT_EQ(out[i].of[e], in[i].of[e] / divisors.of[e] + in[i].of[e] % divisors.of[e ^ 1]);
}

TEST(UniformDivision, DivisorThatIsComputedOnceBehindABarrier_IsRightThere) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, int a, int b) {
            int i = get_global_id(0), l = get_local_id(0);
            local int staged[32];
            staged[l] = in[i] / (a + b);
            barrier(CLK_LOCAL_MEM_FENCE);
            out[i] = staged[31 - l] % (a + b) + in[i] / (a * b);
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has_division(program, "<")) << program.optimised();
    std::vector<int> in(96), out(96);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<int>(i * 7919) - 300000;
    program.run({1, {96, 1, 1}, {32, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(-9).add(4));
    for (size_t i = 0; i < in.size(); ++i)
        EXPECT_EQ(out[i], in[i / 32 * 32 + 31 - i % 32] / -5 % -5 + in[i] / -36) << i;
}

TEST(UniformDivision, DivisorsOfSingleWorkItems_AndOfFew_AreDividedBy) {
    Compiled own("kernel void k(global uint* a, global const uint* d) {"
                 " size_t i = get_global_id(0); a[i] /= d[i] | 1; }");
    ASSERT_EQ(own.prepare("k"), "");
    EXPECT_TRUE(has_division(own, "")) << own.optimised();
    // 64 bits, because lanes divide smaller numbers in floating point.
    Compiled few("kernel void k(global ulong* a, ulong d) { size_t i = get_global_id(0); a[i] /= d | 1; }");
    ASSERT_EQ(few.prepare("k", true, {4, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_TRUE(has_division(few, "")) << few.optimised();
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
