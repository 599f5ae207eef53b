// Atomic exchanges, and loops that repeat one until it succeeds.

#include "workgroup_harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// Each adds to a number of its own bin what takes some work to compute.
std::string adding(const std::string& space, const std::string& add) {
    return "void add(volatile " + space + " float* p, float x) {" + add + R"(}
        kernel void k(global const float* in, global const int* bins, global float* sums, int n) {
            local float own[16];
            )" +
           space + " float* const at = " + (space == "local" ? "own" : "sums") + R"(;
            const int i = get_global_id(0), l = get_local_id(0);
            if (l < 16) own[l] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            float x = in[i];
            for (int j = 0; j < 8; ++j) x = fma(x, 0.5f, j);
            if (i < n) add(at + bins[i], floor(x * 4));
            barrier(CLK_LOCAL_MEM_FENCE);
            if (l < 16) sums[16 + get_group_id(0) * 16 + l] = own[l];
        })";
}

const std::string loaded_each_time = R"(
    union { uint bits; float number; } old, sum;
    do { old.number = *p; sum.number = old.number + x; }
    while (atomic_cmpxchg((volatile SPACE uint*)p, old.bits, sum.bits) != old.bits);)";
const std::string found_by_the_exchange = R"(
    uint found = as_uint(*p), expected;
    do { expected = found; found = atomic_cmpxchg((volatile SPACE uint*)p, expected, as_uint(as_float(expected) + x)); }
    while (found != expected);)";
const std::string left_early = R"(
    int old = as_int(*p);
    while (as_float(old) < x) {
        const int found = atomic_cmpxchg((volatile SPACE int*)p, old, as_int(x));
        if (found == old) break;
        old = found;
    })";

std::string in_space(std::string text, const std::string& space) {
    for (size_t at = 0; (at = text.find("SPACE")) != std::string::npos;)
        text.replace(at, 5, space);
    return text;
}

class ExchangeLoops : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(ExchangeLoops, LeaveTheOtherCodeItsLanes) {
    const auto& [space, add] = GetParam();
    constexpr int32_t items = 192, group = 64, n = 187, bins = 16;
    std::vector<float> in(items);
    std::vector<int32_t> bin(items);
    std::vector<float> expected(bins * (1 + items / group));
    for (int32_t i = 0; i < items; ++i) {
        in[i] = static_cast<float>(i % 29);
        bin[i] = i % 7 * (i % 3);
        float x = in[i];
        for (int j = 0; j < 8; ++j)
            x = x * 0.5F + static_cast<float>(j);
        x = std::floor(x * 4);
        float& sum = expected[bin[i] + (space == "local" ? bins * (1 + i / group) : 0)];
        if (i < n)
            sum = add == left_early ? std::max(sum, x) : sum + x;
    }
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        Compiled program(adding(space, in_space(add, space)));
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        if (lanes == Lanes::wherever_possible) {
            EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
        }
        EXPECT_EQ(program.optimised().find("cmpxchg") != std::string::npos, space == "global");
        std::vector<float> sums(expected.size());
        program.run({1, {items, 1, 1}, {group, 1, 1}},
                    Arguments().add(in.data()).add(bin.data()).add(sums.data()).add(n));
        EXPECT_EQ(sums, expected);
    }
}

INSTANTIATE_TEST_SUITE_P(AddToBins, ExchangeLoops,
                         testing::Values(std::pair{"global", loaded_each_time}, std::pair{"local", loaded_each_time},
                                         std::pair{"global", found_by_the_exchange},
                                         std::pair{"local", found_by_the_exchange}, std::pair{"global", left_early},
                                         std::pair{"local", left_early}));

// LLVM compares the first exchange's results behind the branch: both members of its result leave their block together.
TEST(ExchangeLoops, WhoseFirstExchangeStandsBefore_ExchangeOnceEach) {
    Compiled program(R"(
        float add(global float* const address, const float value) {
            uint old, sum, found;
            *(float*)&old = *address;
            *(float*)&sum = *(float*)&old + value;
            while ((found = atomic_cmpxchg((global uint*)address, old, sum)) != old) {
                old = found;
                *(float*)&sum = *(float*)&old + value;
            }
            return *(float*)&old;
        }
        kernel void k(global const int* starts, global const int* places, global const float* x, global float* sums) {
            const int i = get_global_id(0);
            const int start = starts[i], end = starts[i + 1];
            for (int edge = start; edge < end; ++edge) add(&sums[places[edge]], x[i] / (float)(end - start));
        })");
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        size_t followed = 0;
        const std::string code = program.optimised();
        for (size_t at = 0; (at = code.find("cmpxchg ptr", at + 1)) != std::string::npos;) {
            const size_t next = code.find("cmpxchg ptr", at + 1);
            const std::string between = code.substr(at, next == std::string::npos ? 0 : next - at);
            followed += next != std::string::npos && between.find("br ") == std::string::npos ? 1 : 0;
        }
        EXPECT_EQ(followed, 0U) << code;
    }
}

// A work-item waits until another one has left the loop and releases the lock behind it. Neither loop may run for lanes in step.
TEST(ExchangeLoops, ThatWaitForAnotherWorkItem_HaveNoLanes) {
    for (const std::string take :
         {"while (atomic_cmpxchg(lock, 0, 1) != 0);",
          "int old; do { old = *lock; } while (old != 0 || atomic_cmpxchg(lock, old, 1) != old);",
          "int old; do { old = atomic_cmpxchg(lock, *lock, 1); } while (old != 0);"}) {
        Compiled program("kernel void k(volatile global int* lock, global int* sum, global int* out) {" + take +
                         "out[get_global_id(0)] = *sum; *sum += get_local_id(0); atomic_xchg(lock, 0); }");
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_EQ(program.result().lanes.loops, 0U) << take;
        int32_t lock = 0, sum = 0;
        std::vector<int32_t> out(40);
        program.run({1, {40, 1, 1}, {40, 1, 1}}, Arguments().add(&lock).add(&sum).add(out.data()));
        for (int32_t i = 0; i < 40; ++i)
            EXPECT_EQ(out[i], i * (i - 1) / 2) << take;
    }
}

TEST(Exchanges, AreMadeForOneLaneAfterTheOther) {
    Compiled program(R"(
        kernel void k(global const int* places, global int* taken, global int* out) {
            const int i = get_global_id(0);
            int x = i;
            for (int j = 0; j < 8; ++j) x = x * 3 + j;
            out[i] = atomic_cmpxchg(&taken[places[i]], 0, x | 1);
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    constexpr uint32_t items = 70;
    std::vector<int32_t> places(items), taken(items), out(items), expected(items), owners(items);
    for (uint32_t i = 0; i < items; ++i) {
        places[i] = static_cast<int32_t>(i * i % 23);
        uint32_t x = i;
        for (uint32_t j = 0; j < 8; ++j)
            x = x * 3 + j;
        int32_t& owner = owners[places[i]];
        expected[i] = owner;
        if (owner == 0)
            owner = std::bit_cast<int32_t>(x | 1);
    }
    program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(places.data()).add(taken.data()).add(out.data()));
    EXPECT_EQ(out, expected);
    EXPECT_EQ(taken, owners);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
