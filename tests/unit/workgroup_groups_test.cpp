// What work-items of a group have in common: pointers that advance around barriers, the order of the groups, bodies of ifs that no lane
// enters, and doubles among floats.

#include "workgroup_harness.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* bumped_pointers = R"(
    kernel void k(global float* out, global const float* a, global const float* b, int width, int rounds, local float* tile) {
        int x = get_local_id(0), row = get_group_id(0), i = 100 - x;
        global const float* p = a + x;
        b += x * width;
        float sum = 0;
        for (int r = 0; r < rounds; ++r) {
            tile[x] = *p * i;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < width; ++k) sum += tile[k] * b[k];
            p += width;
            sum += *p;
            p += row;
            b += 2;
            i -= 3;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        out[row * width + x] = sum + p[0] + b[0] + i;
    })";

TEST(CommonSteps, PointersThatAdvanceAroundBarriers_AreNotKeptForEachWorkItem) {
    Compiled program(bumped_pointers);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_LE(program.result().scratch_bytes_per_work_item, 2 * sizeof(float));  // the sum and a number, no pointer
    constexpr size_t width = 40, rounds = 5, groups = 3;
    std::vector<float> a(1000), b(3000), out(width * groups), expected(out.size());
    for (size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<float>(i * 7 % 11);
    for (size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<float>(i * 5 % 13);
    const auto below_100 = [](size_t number) { return 100.f - static_cast<float>(number); };
    for (size_t row = 0; row < groups; ++row)
        for (size_t x = 0; x < width; ++x) {
            float sum = 0;
            for (size_t r = 0; r < rounds; ++r) {
                const size_t at = r * (width + row);
                for (size_t k = 0; k < width; ++k)
                    sum += a[at + k] * below_100(k + 3 * r) * b[x * width + 2 * r + k];
                sum += a[at + x + width];
            }
            expected[row * width + x] =
                sum + a[x + rounds * (width + row)] + b[x * width + 2 * rounds] + below_100(x + 3 * rounds);
        }
    program.run(
        {1, {width * groups, 1, 1}, {width, 1, 1}},
        Arguments().add(out.data()).add(a.data()).add(b.data()).add(int{width}).add(int{rounds}).add_local(4 * width));
    for (size_t i = 0; i < out.size(); ++i)
        ASSERT_FLOAT_EQ(out[i], expected[i]) << i;
}

TEST(CommonSteps, StepsThatDifferBetweenWorkItems_AreRight) {
    Compiled program(R"(
        kernel void k(global int* out, int rounds, local int* tile) {
            int x = get_local_id(0), n = get_local_size(0), odd = x, even = x;
            for (int r = 0; r < rounds; ++r) {
                tile[x] = odd + even;
                barrier(CLK_LOCAL_MEM_FENCE);
                odd += tile[(x + 1) % n];
                if (x % 3 == 0) even -= r;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            out[x] = odd - 2 * even;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr size_t n = 29;
    constexpr int rounds = 4;
    std::vector<int> out(n), odd(n), even(n), tile(n);
    std::iota(odd.begin(), odd.end(), 0);
    even = odd;
    for (int r = 0; r < rounds; ++r) {
        for (size_t x = 0; x < n; ++x)
            tile[x] = odd[x] + even[x];
        for (size_t x = 0; x < n; ++x) {
            odd[x] += tile[(x + 1) % n];
            even[x] -= x % 3 == 0 ? r : 0;
        }
    }
    program.run({1, {n, 1, 1}, {n, 1, 1}}, Arguments().add(out.data()).add(rounds).add_local(4 * n));
    for (size_t x = 0; x < n; ++x)
        EXPECT_EQ(out[x], odd[x] - 2 * even[x]) << x;
}

// The position of each group in the order in which they run.
std::vector<uint32_t> order_of(const Compiled& program, const Range& range, size_t groups) {
    std::vector<uint32_t> order(groups, UINT32_MAX), data(4096);
    uint32_t next = 0;
    program.run(range, Arguments().add(order.data()).add(data.data()).add(&next));
    return order;
}

TEST(GroupOrder, GroupsFollowEachOtherInTheDimensionOfTheLanes) {
    for (const unsigned lanes : {0U, 1U, 2U}) {
        const std::string index = lanes == 0   ? "x + 16 * (y + 16 * z)"
                                  : lanes == 1 ? "y + 16 * (x + 16 * z)"
                                               : "z + 16 * (x + 16 * y)";
        Compiled program(
            "kernel void k(global uint* order, global uint* a, global uint* next) {"
            " int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);"
            " a[" +
            index +
            "] += 1;"
            " if (get_local_id(0) + get_local_id(1) + get_local_id(2) == 0)"
            "  order[get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2))]"
            "   = next[0]++; }");
        ASSERT_EQ(program.prepare("k"), "");
        ASSERT_EQ(program.result().lanes.dimension, lanes);
        const Range range{3, {11, 13, 10}, {4, 4, 4}};
        constexpr std::array<uint32_t, 3> groups{3, 4, 3};
        const std::vector<uint32_t> order = order_of(program, range, 36);
        std::vector<uint32_t> sorted = order;
        std::sort(sorted.begin(), sorted.end());
        for (uint32_t i = 0; i < sorted.size(); ++i)
            ASSERT_EQ(sorted[i], i) << "each group runs once";
        for (uint32_t z = 0; z < groups[2]; ++z)
            for (uint32_t y = 0; y < groups[1]; ++y)
                for (uint32_t x = 0; x < groups[0]; ++x) {
                    const uint32_t expected = lanes == 0   ? x + groups[0] * (y + groups[1] * z)
                                              : lanes == 1 ? y + groups[1] * (x + groups[0] * z)
                                                           : z + groups[2] * (x + groups[0] * y);
                    EXPECT_EQ(order[x + groups[0] * (y + groups[1] * z)], expected) << x << ' ' << y << ' ' << z;
                }
    }
}

TEST(SkippedBodies, BodiesThatFewLanesEnter_HaveABranchAround) {
    Compiled program(R"(
        kernel void k(global int* a, global int* c, global const int* b, int n, int chosen) {
            int i = get_global_id(0), v = 7;
            if (i >= n) return;
            if (i == chosen) v = b[i] / 3;
            if (b[i] > 100) { c[b[i] % n] = v; v = b[2 * i]; } else v += b[i + 1];
            if (v == 14) a[i] = -v;
            a[i] += v;
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GT(program.result().lanes.loops, 0u);
    EXPECT_TRUE(has(program, "if.some")) << program.optimised();
    constexpr int n = 61, chosen = 19;
    std::vector<int> b(2 * n + 2);
    for (int i = 0; i < 2 * n + 2; ++i)
        b[static_cast<size_t>(i)] = i == 40 ? 140 + n : i * 3 % 29;  // one is above 100
    std::vector<int> expected(n), expected_c(n);
    for (int i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(i);
        int v = 7;
        if (i == chosen)
            v = b[at] / 3;
        if (b[at] > 100) {
            expected_c[static_cast<size_t>(b[at] % n)] = v;
            v = b[2 * at];
        } else {
            v += b[at + 1];
        }
        if (v == 14)
            expected[at] = -v;
        expected[at] += v;
    }
    for (uint64_t local : {61, 64, 7}) {
        std::vector<int> a(n), c(n);
        program.run({1, {64, 1, 1}, {local, 1, 1}},
                    Arguments().add(a.data()).add(c.data()).add(b.data()).add(n).add(chosen));
        EXPECT_EQ(a, expected) << local;
        EXPECT_EQ(c, expected_c) << local;
    }
}

TEST(SkippedBodies, GuardsAgainstTheLaunchsBound_HaveNoBranch) {
    Compiled program(
        "kernel void k(global float* a, int n) { int i = get_global_id(0); if (i < n) a[i] = a[i] * 2 + 1; }");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has(program, "if.some")) << program.optimised();
}

TEST(Counters, KernelsThatUseTheirIdPlusOne_HaveLanes) {
    Compiled program(R"(
        kernel void k(global int* a, global const int* b, ulong pitch) {
            a[(get_local_id(1) + 1) * pitch + get_local_id(0) + 1] = b[get_local_id(0) + 1];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1u) << program.result().lanes.reason;
    std::vector<int> b(22), a(22 * 3), expected(a.size());
    std::iota(b.begin(), b.end(), 5);
    for (size_t y = 1; y < 3; ++y)
        for (size_t x = 1; x < 22; ++x)
            expected[y * 22 + x] = b[x];
    program.run({2, {21, 2, 1}, {21, 2, 1}}, Arguments().add(a.data()).add(b.data()).add(uint64_t{22}));
    EXPECT_EQ(a, expected);
}

TEST(Counters, ColumnsThatBeginAtTheId_AreLoadedAsRowsUnderARangeCheck) {
    Compiled program(R"(
        kernel void k(global int* sums, global const int* in, int columns, int rows) {
            int i = get_global_id(0);
            if (i >= columns - 1) return;
            for (int c = i + 1; c < columns; ++c) {
                for (int r = 0; r < rows; ++r) sums[i * columns + c] += in[r * columns + i] * in[r * columns + c];
                sums[c * columns + i] = sums[i * columns + c];
            }
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1u) << program.result().lanes.reason;
    constexpr size_t columns = 37, rows = 11;
    std::vector<int> in(columns * rows), sums(columns * columns), expected(sums.size());
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<int>(i * 7 % 23) - 9;
    for (size_t i = 0; i < columns; ++i)
        for (size_t c = i + 1; c < columns; ++c) {
            for (size_t r = 0; r < rows; ++r)
                expected[i * columns + c] += in[r * columns + i] * in[r * columns + c];
            expected[c * columns + i] = expected[i * columns + c];
        }
    program.run({1, {40, 1, 1}, {20, 1, 1}},
                Arguments().add(sums.data()).add(in.data()).add(int{columns}).add(int{rows}));
    EXPECT_EQ(sums, expected);
}

TEST(Rows, WithoutIdsOfRows_AreOneLoop_AndEachRowRuns) {
    Compiled program("kernel void k(global int* a) { atomic_inc(&a[get_global_id(0)]); }");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(count(program, "\nitems.rows:"), 1u) << program.optimised();
    EXPECT_EQ(count(program, "\nitems.y:"), 0u);
    EXPECT_EQ(count(program, "\nitems.z:"), 0u);
    for (const std::array<uint64_t, 3> local : {std::array<uint64_t, 3>{1, 1, 1}, {37, 1, 1}, {20, 3, 2}, {5, 1, 6}}) {
        std::vector<int> a(100), expected(100);
        program.run({3, {100, 9, 6}, local}, Arguments().add(a.data()));
        std::ranges::fill(expected, 9 * 6);
        EXPECT_EQ(a, expected) << local[0];
    }
}

TEST(Rows, WithoutIdsOfRows_KeepTheirVariablesAcrossBarriers) {
    Compiled program(R"(
        kernel void k(global int* a) {
            int x = get_local_id(0), own = atomic_inc(&a[x]);
            barrier(CLK_GLOBAL_MEM_FENCE);
            atomic_add(&a[x + 20], own * own);
        })");
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<int> a(40), expected(40);
    program.run({3, {20, 3, 2}, {20, 3, 2}}, Arguments().add(a.data()));
    std::fill_n(expected.begin(), 20, 6);
    std::fill_n(expected.begin() + 20, 20, 0 + 1 + 4 + 9 + 16 + 25);
    EXPECT_EQ(a, expected);
}

TEST(Rows, OfKernelsWithTheirIds_HaveALoopForEachDimension) {
    Compiled program(
        "kernel void k(global int* a) { a[get_global_id(0) * 7 + get_global_id(2)] = get_global_size(0); }");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(count(program, "\nitems.z:"), 1u) << program.optimised();
}

TEST(Sizes, OfAGroup_AreNotLookedBehind) {
    Compiled program("kernel void k(global int* a) { a[get_global_id(0)] = 7; }");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr const char* hidden = R"(asm "", "=r,0")";
    const size_t of_sizes = count(program, hidden);
    EXPECT_GT(of_sizes, 0u) << program.optimised();
    Compiled with_own("kernel void k(global ulong* a, ulong m, ulong n) { a[get_global_id(0)] = m * n + min(m, n); }");
    ASSERT_EQ(with_own.prepare("k"), "");
    EXPECT_EQ(count(with_own, hidden), of_sizes) << with_own.optimised();
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_FALSE(has(program, R"(asm "")")) << program.optimised();
}

TEST(MixedTypes, FewDoublesAmongFloats_LeaveAllLanes) {
    const auto lanes_of = [](const std::string& body) {
        Compiled program("kernel void k(global float* a, global const float* b, global double* d, int n) {"
                         " int i = get_global_id(0);" +
                             body + "}",
                         processor_with_512_bits);
        EXPECT_EQ(program.prepare("k"), "");
        return program.result().lanes.width;
    };
    EXPECT_EQ(lanes_of("if (i < n) a[i] = a[i] * b[i + n] - 0.3 * (b[i] - b[i + 1] + a[i + n] * a[i + 2 * n]);"), 16u);
    EXPECT_EQ(lanes_of("d[i] = d[i] * d[i + n] + d[i + 1] / 3;"), 8u);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
