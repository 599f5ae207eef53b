// Volatile variables of one work-item, which no other work-item sees.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

constexpr std::array all_lanes{Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible};

// Each work-item has a number of rounds of its own, so that lanes leave the loop at different times.
constexpr const char* constant_in_loop = R"(
    kernel void k(global const int* in, global int* out, int size) {
        volatile int scale = 3;
        int sum = 0;
        for (int i = get_global_id(0); i < size; i += 8 + get_global_id(0)) sum += in[i] * scale;
        out[get_global_id(0)] = sum;
    })";

TEST(PrivateVolatiles, OfConstants_AreValues) {
    Compiled program(constant_in_loop, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    EXPECT_EQ(count(program, "volatile"), 0U) << program.optimised();
    EXPECT_GT(program.result().lanes.loops, 0) << program.result().lanes.reason;
}

TEST(PrivateVolatiles, OfConstants_HaveTheLastOne) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out) {
            const int id = get_global_id(0);
            volatile int chosen = 5;
            volatile float share = 0.25f;
            if (in[id] > 100) chosen = 7;
            int sum = chosen;
            if (in[id] > 150) { chosen = 11; share = 2.0f; }
            out[id] = sum * chosen + (int)(share * in[id]);
        })");
    std::vector<int> in(200), out(in.size()), expected;
    std::iota(in.begin(), in.end(), 0);
    for (const int each : in)
        expected.push_back((each > 100 ? 7 : 5) * (each > 150   ? 11
                                                   : each > 100 ? 7
                                                                : 5) +
                           static_cast<int>((each > 150 ? 2.0F : 0.25F) * static_cast<float>(each)));
    for (const Lanes lanes : all_lanes) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0);
        program.run({1, {in.size(), 1, 1}, {50, 1, 1}}, Arguments().add(in.data()).add(out.data()));
        EXPECT_EQ(out, expected);
    }
}

// A counter that passes time, and a number that must be rounded before it is used.
TEST(PrivateVolatiles, OfOtherNumbers_StayVolatile) {
    Compiled counter(R"(
        kernel void k(global int* out, int n) {
            for (volatile int i = 0; i < n; ++i) {}
            out[get_global_id(0)] = n;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(counter.prepare("k"), "");
    EXPECT_GT(count(counter, "load volatile"), 0U) << counter.optimised();
    Compiled product(R"(
        kernel void k(global const float* in, global float* out) {
            const float x = in[get_global_id(0)];
            volatile float square = x * x;
            out[get_global_id(0)] = square + x;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(product.prepare("k"), "");
    EXPECT_GT(count(product, "load volatile"), 0U) << product.optimised();
}

constexpr const char* counted_in_loop = R"(
    kernel void k(global const int* in, global int* out) {
        const int id = get_global_id(0);
        volatile int sum = 1;
        for (int i = 0; i < in[id]; ++i) sum = sum * 3 + i;
        out[id] = sum;
    })";

TEST(PrivateVolatiles, InLoopsThatLanesLeaveAtDifferentTimes_AreNoWaits) {
    Compiled program(counted_in_loop, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GT(program.result().lanes.loops, 0) << program.result().lanes.reason;
}

TEST(PrivateVolatiles, InLoopsThatLanesLeaveAtDifferentTimes_AreRight) {
    Compiled program(counted_in_loop);
    std::vector<int> in(200), out(in.size()), expected;
    for (size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<int>(i * 7 % 19);
        unsigned sum = 1;
        for (int round = 0; round < in[i]; ++round)
            sum = sum * 3 + static_cast<unsigned>(round);
        expected.push_back(static_cast<int>(sum));
    }
    for (const Lanes lanes : all_lanes) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0);
        program.run({1, {in.size(), 1, 1}, {50, 1, 1}}, Arguments().add(in.data()).add(out.data()));
        EXPECT_EQ(out, expected);
    }
}

// Another work-item may change what a volatile pointer leads to.
TEST(PrivateVolatiles, WhereOthersSeeTheMemory_MayWait) {
    Compiled program(R"(
        kernel void k(volatile global const int* rounds, global int* out) {
            const int id = get_global_id(0);
            int sum = 0;
            while (sum < rounds[id]) ++sum;
            out[id] = sum;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.loops, 0);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
