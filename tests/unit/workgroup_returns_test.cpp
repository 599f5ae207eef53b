// Work-items that return early.

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// Work-items that have nothing to do return before the barrier, the others run a loop first.
TEST(Returns, BeforeALoopAndABarrier_LeaveTheOthersTheirLanes) {
    Compiled program(R"(
        kernel void k(global const uint* in, global uint* out, uint n) {
            local uint all[64];
            const uint i = get_global_id(0), l = get_local_id(0);
            if (i >= n) return;
            uint x = 0;
            for (uint j = 0; j < n; ++j) x += in[j] * (i ^ j);
            all[l] = x;
            barrier(CLK_LOCAL_MEM_FENCE);
            out[i] = x + 3 * all[0];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 2U);
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    constexpr uint32_t count = 128, size = 64;
    std::vector<uint32_t> in(count), own(count);
    std::iota(in.begin(), in.end(), 5U);
    for (const uint32_t n : {0U, 1U, 40U, 64U, 100U, 128U}) {
        std::vector<uint32_t> out(count), expected(count);
        for (uint32_t i = 0; i < n; ++i) {
            own[i] = 0;
            for (uint32_t j = 0; j < n; ++j)
                own[i] += in[j] * (i ^ j);
            expected[i] = own[i] + 3 * own[size_t{i} / size * size];
        }
        program.run({1, {count, 1, 1}, {size, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
        EXPECT_EQ(out, expected) << n;
    }
}

// What all work-items load behind a barrier, before a loop, lives across the next barrier.
TEST(Returns, BeforeANumberForAllOfThemAndALoop_LeaveTheOthersTheirLanes) {
    Compiled program(R"(
        kernel void k(global const uint* in, global uint* out, uint n) {
            local uint all[64];
            const uint i = get_global_id(0), l = get_local_id(0);
            if (i >= n) return;
            all[l] = in[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            const uint first = all[0];
            uint x = 0;
            for (uint j = 0; j < n; ++j) x += in[j] * (first ^ i);
            barrier(CLK_LOCAL_MEM_FENCE);
            all[l] = x;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint j = 0; j < n; ++j) x ^= all[0] + j * first;
            out[i] = x;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    constexpr uint32_t count = 128, size = 64;
    std::vector<uint32_t> in(count);
    std::iota(in.begin(), in.end(), 5U);
    const auto place_of_group = [&](uint32_t i) { return size_t{i / size} * size; };
    for (const uint32_t n : {0U, 1U, 40U, 64U, 100U, 128U}) {
        std::vector<uint32_t> out(count), expected(count), sums(count);
        for (uint32_t i = 0; i < n; ++i)
            for (uint32_t j = 0; j < n; ++j)
                sums[i] += in[j] * (in[place_of_group(i)] ^ i);
        for (uint32_t i = 0; i < n; ++i) {
            expected[i] = sums[i];
            for (uint32_t j = 0; j < n; ++j)
                expected[i] ^= sums[place_of_group(i)] + j * in[place_of_group(i)];
        }
        program.run({1, {count, 1, 1}, {size, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
        EXPECT_EQ(out, expected) << n;
    }
}

// Work-items return from a loop that all of them enter or none.
TEST(Returns, FromALoop_LeaveTheOthersTheirLanes) {
    Compiled program(R"(
        kernel void k(global const int* keys, global int* out, int n, int last) {
            const int i = get_global_id(0);
            for (int j = 0; j < n; ++j) {
                if (keys[j] == i) {
                    out[i] = j;
                    return;
                }
                out[i] -= last;
            }
            out[i] += last;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    constexpr int count = 100;
    std::vector<int> keys(count);
    for (int j = 0; j < count; ++j)
        keys[static_cast<size_t>(j)] = j * 7 % 64;
    for (const int n : {0, 1, 20, count}) {
        std::vector<int> out(count, -9), expected(count);
        for (int i = 0; i < count; ++i) {
            int& result = expected[static_cast<size_t>(i)];
            result = -9;
            int j = 0;
            for (; j < n && keys[static_cast<size_t>(j)] != i; ++j)
                result -= 3;
            result = j < n ? j : result + 3;
        }
        program.run({1, {count, 1, 1}, {50, 1, 1}}, Arguments().add(keys.data()).add(out.data()).add(n).add(3));
        EXPECT_EQ(out, expected) << n;
    }
}

// One of three ways to treat the ends of a row skips elements, by a branch that differs between work-items; the other two, which an argument
// chooses, meet it behind that branch.
TEST(Returns, OnOneSideOfAUniformBranch_LeaveTheOthersTheirLanes) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, int n, int ends) {
            const int i = get_global_id(0);
            int sum = 0;
            for (int step = -2; step <= 2; ++step) {
                int at = i + step;
                if (ends == 0) at = clamp(at, 0, n - 1);
                else if (ends == 1) at = (at + n) % n;
                else if (at < 0 || at >= n) continue;
                sum = sum * 3 + in[at];
            }
            out[i] = sum;
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    constexpr int count = 96;
    std::vector<int> in(count);
    std::iota(in.begin(), in.end(), 3);
    for (const int ends : {0, 1, 2}) {
        std::vector<int> out(count), expected(count);
        for (int i = 0; i < count; ++i)
            for (int step = -2; step <= 2; ++step) {
                const int at = i + step, kept = ends == 0 ? std::clamp(at, 0, count - 1) : (at + count) % count;
                if (ends != 2 || at == kept)
                    expected[index_of(i)] = expected[index_of(i)] * 3 + in[index_of(kept)];
            }
        program.run({1, {count, 1, 1}, {32, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(count).add(ends));
        EXPECT_EQ(out, expected) << ends;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
