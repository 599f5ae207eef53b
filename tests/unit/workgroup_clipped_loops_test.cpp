// Loops that end at the edges of the data: away from them, all lanes have the same iterations. The results are compared with those of the same kernel
// without lanes.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A sum over the loop `limits`, whose counter is i. `n` and `r` are ints that it may use, as are the work-item's x and y and the launch's width.
std::string clipped_sum(const std::string& limits, const std::string& guard = "") {
    return "kernel void k(global int* out, global const int* in, int n, int r) {"
           " const int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);" +
           guard + " int sum = 0; for (" + limits +
           ") sum += in[(i + 1000) & 1023] * (i + 3); out[y * width + x] = sum + 1; }";
}

constexpr const char* limits_of_sums[] = {
    "int i = x + r >= n ? x + r + 1 - n : 0, e = x - r < 0 ? x + r + 1 : 2 * r + 1; i < e; ++i",
    "int i = max(x - r, 0), e = min(x + r, n - 1); i <= e; ++i",
    "int i = max(0, x - r), e = min(n, x + r + 1); i < e; ++i",
    "int i = x - r < 0 ? 0 : x - r, e = x + r >= n ? n - 1 : x + r; i <= e; ++i",
    "int i = clamp(x - r, 0, n - 1), e = clamp(x + r, 0, n - 1); i <= e; ++i",
    "int i = min(max(x - 3, 0), n), e = max(min(x + 4, n), 0); i < e; i += 2",
    "int i = min(x + r, n - 1), e = max(x - r, 0); i >= e; --i",
    "int i = 0, e = min(x + r, n); i < e; ++i",
    "int i = 0, e = x < n ? r : x; i < e; ++i",
    "int i = x * r >= n ? x * r + 1 - n : 0, e = x * r < 5 ? x * r + 1 : 7; i < e; ++i",
    "long i = (long)x + r >= n ? (long)x + r + 1 - n : 0, e = x < r ? x : 2 * r; i < e; ++i",
    "int i = 0, e = x != n ? r : x; i < e; ++i",
    "int i = y, e = x == n ? x : r; i < e; ++i",
    "int i = max(x + y - r, y), e = min(x + y + r, n); i < e; ++i",
    "long i = max((long)x - r, 0L), e = min((long)x + r, (long)n); i < e; ++i",
    "uint i = max((uint)x, 2u) - 2, e = min((uint)x + 3u, (uint)n); i < e; ++i",
    "int i = max(2 * x - r, 0), e = min(2 * x + r, n); i < e; ++i",
    "int i = max(x - 2, y), e = min(x + 5, n); i < e; i += 3",
    "int i = min(x + r, n - 1), e = max(x - r, 0); i > e; i -= 2",
    "uint i = max((uint)x + (uint)r, 9u), e = min((uint)x + 40u, (uint)n & 255u); i < e; ++i",
    "long i = max(x - r, 0), e = min(x + r, n); i <= e; ++i",
    "ulong i = (uint)max(x - r, 0), e = (uint)min(x + 3, n & 255); i < e; ++i",
    "int i = max(x - 3, 0), e = min(x + 3, n); i != max(e, i); ++i",
    "int i = x, e = min(x + r, n); i < e; ++i",
    "int i = max(-r, -x), e = min(r, n - 1 - x); i <= e; ++i",
    "long i = max(-3, 2 - x), e = min(r, n - x); i < e; ++i",
    "int i = min(r, n - x), e = max(-r, y - x); i >= e; i -= 2",
    "uint i = max(3u, 60u - min((uint)x, 60u)), e = min(9u, 500u - (uint)x); i < e; ++i",
    "int i = max(min(x - 2, n), 1), e = min(x + 2, n - r); i < e; ++i",
    "int s = max(x - r, 0), e = min(x + r, n), i = s; i < e; i += 1 + (in[i & 1023] == e - s)",
};

// The same for a window that is left early by some work-items, has a special place, and whose length matters; the body runs once at least.
std::string clipped_window() {
    return "kernel void k(global int* out, global const int* in, int n, int r) {"
           " const int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);"
           " const int first = max(x - r, 0), end = min(x + r + 1, n); int sum = 0, i = first, before = 0;"
           " do { if (in[i * 37 + 500 & 1023] == 40 + y) break; sum += i == x ? 1000 : i < x ? in[i & 1023] : i;"
           " before = i; } while (++i < end);"
           " out[y * width + x] = (sum + before) * 64 + (end - first); }";
}

std::vector<int> clipped_results(const Compiled& program, const Range& range, int n, int r) {
    std::vector<int> in(1024), out(range.global[0] * range.global[1]);
    std::iota(in.begin(), in.end(), -300);
    program.run(range, Arguments().add(out.data()).add(in.data()).add(n).add(r));
    return out;
}

TEST(ClippedLoops, OfAllKinds_AreRight) {
    const std::pair<int, int> arguments[] = {{140, 3}, {140, 1}, {70, 9}, {9, 2}, {-5, 1}, {139, 200}, {141, -1}};
    const Range ranges[] = {{2, {140, 2, 1}, {140, 1, 1}}, {2, {140, 2, 1}, {70, 2, 1}}, {2, {128, 2, 1}, {64, 1, 1}}};
    const auto compare = [&](const std::string& source, const std::string& processor, const Compiled& alone) {
        if (!processor.empty() && !__builtin_cpu_supports("avx2"))
            return;
        Compiled lanes(source, processor);
        ASSERT_EQ(lanes.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        for (const Range& range : ranges)
            for (const auto& [n, r] : arguments)
                ASSERT_EQ(clipped_results(lanes, range, n, r), clipped_results(alone, range, n, r))
                    << source << ' ' << n << ' ' << r << " on " << processor;
    };
    for (const std::string guard : {"", "if (x >= n - 20) return;"})
        for (const char* kind : limits_of_sums) {
            const std::string source = clipped_sum(kind, guard);
            Compiled alone(source);
            ASSERT_EQ(alone.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
            compare(source, "", alone);
            if (guard.empty())
                compare(source, processor_with_256_bits, alone);
        }
    Compiled alone(clipped_window());
    ASSERT_EQ(alone.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    compare(clipped_window(), "", alone);
    compare(clipped_window(), processor_with_256_bits, alone);
}

// The numbers that the limits are compared with wrap around, some of them beside bounds of more bits.
TEST(ClippedLoops, WithNumbersThatWrapAround_AreRight) {
    constexpr int int_max = std::numeric_limits<int>::max();
    const Range range{2, {140, 2, 1}, {140, 1, 1}};
    for (const char* const limits :
         {"uint s = (uint)x + (uint)r, i = s > (uint)n ? s & 7u : 3u, e = s < 90u ? s & 15u : 12u; i < e; ++i",
          "uint s = (uint)x + (uint)r, i = s < (uint)n ? 0 : s & 7u, e = s < (uint)n ? 12 : s & 15u; i < e; ++i",
          "int s = (int)((uint)x + (uint)r), i = (long)s >= 3L * n ? 2 : s & 7, e = (long)s >= 3L * n ? 9 : s & 15; i "
          "< e; ++i",
          "uint s = (uint)x + (uint)r, i = (ulong)s >= 3UL * (uint)n ? 2 : s & 7u, e = (ulong)s >= 3UL * (uint)n ? 9 : "
          "s & 15u; i < e; ++i"}) {
        Compiled alone(clipped_sum(limits)), lanes(clipped_sum(limits));
        ASSERT_EQ(alone.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
        ASSERT_EQ(lanes.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        for (const auto& [n, r] : {std::pair{-1, -70},
                                   {int_max, -1},
                                   {60, -20},
                                   {63, -64},  // one less than whole vectors
                                   {95, -32},
                                   {-1, int_max - 50},
                                   {5, int_max - 70},
                                   {5, -70}})
            EXPECT_EQ(clipped_results(lanes, range, n, r), clipped_results(alone, range, n, r))
                << limits << n << ' ' << r;
    }
}

TEST(ClippedLoops, WithWindowsThatWrapAround_AreRight) {
    const Range range{2, {140, 2, 1}, {140, 1, 1}};
    for (const char* const limits : {"uint i = s > (uint)n ? s & 7u : 3u, e = s < 90u ? s & 15u : 12u; i < e; ++i",
                                     "uint i = max(s, 5u), e = min(s + 4u, (uint)n & ~1u); i < e; ++i",
                                     "uint i = max(s, 5u), e = min(s + 4u, (uint)n & ~3u); i <= e; i += 2",
                                     "int i = max((int)(3u - s), -2), e = min((int)(9u - s), 4); i < e; ++i",
                                     "uint i = max(~s, 4294967290u), e = min(3u - s, 4294967294u); i < e; ++i",
                                     "int i = max((int)s, -2147483600), e = min((int)(s + 3u), 2147483640); i < e; ++i",
                                     "int e = max((int)s, -2147483600), i = min((int)(s + 3u), 2147483640); i > e; --i",
                                     "long i = max((int)s, -2147483600), e = min((int)(s + 3u), 2147483640); i<e; ++i",
                                     "long i = max(s, 5u), e = min(s + 4u, (uint)n); i < e; ++i"}) {
        const std::string source = clipped_sum(limits, " const uint s = (uint)x + (uint)r;");
        Compiled alone(source), lanes(source);
        ASSERT_EQ(alone.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
        ASSERT_EQ(lanes.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        for (const auto& [n, r] : {std::pair{-1, -70},
                                   {std::numeric_limits<int>::max(), -1},
                                   {60, -20},
                                   {-1, std::numeric_limits<int>::max() - 50}})
            EXPECT_EQ(clipped_results(lanes, range, n, r), clipped_results(alone, range, n, r))
                << limits << ": " << n << ' ' << r;
    }
}

TEST(ClippedLoops, AwayFromTheEdges_AreRowsOfLanes) {
    constexpr double part_of_time = 0.35;
    for (const char* limits : {limits_of_sums[0], "int i = 0, e = x < n ? r : x + 1; i < e; ++i", limits_of_sums[1],
                               limits_of_sums[2], "long i = max(x - r, 0), e = min(x + r, n); i < e; ++i"}) {
        Compiled program(
            "kernel void k(global float* out, global const float* in, constant float* taps, int n, int r) {"
            " const int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);"
            " float sum = 0; for (" +
                std::string(limits) + ") sum += taps[i - x] * in[y * width + i]; out[y * width + x] = sum; }",
            processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
        EXPECT_LT(program.result().lanes.estimate, part_of_time) << limits;
    }
}

// A stride is mostly 1. Other strides keep their iterations.
TEST(ClippedLoops, OfStridesThatMayBeOne_AreRowsOfLanes) {
    constexpr double part_of_time = 0.5;
    const std::string source = "kernel void k(global int* out, global const int* in, int n, int r) {"
                               " const int x = get_global_id(0), s = x * r;"
                               " const int first = s + 3 >= n ? s + 4 - n : 0, end = s - 3 < 0 ? s + 4 : 7;"
                               " int sum = 0; for (int i = first; i < end; ++i) sum += in[i & 1023] * (i + 5);"
                               " out[x] = sum; }";
    Compiled alone(source), lanes(source, processor_with_512_bits);
    ASSERT_EQ(alone.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    ASSERT_EQ(lanes.prepare("k"), "");
    EXPECT_EQ(lanes.result().lanes.loops, 2U) << lanes.result().lanes.reason;
    EXPECT_LT(lanes.result().lanes.estimate, part_of_time);
    if (!runs_here("skylake-avx512"))
        return;
    const Range range{1, {140, 1, 1}, {140, 1, 1}};
    for (const auto& [n, r] : {std::pair{140, 1}, {280, 2}, {7, 0}, {30, -1}, {-9, 1}, {100, 3}})
        EXPECT_EQ(clipped_results(lanes, range, n, r), clipped_results(alone, range, n, r)) << n << ' ' << r;
}

// Under a mask, gathers wait for the scatters of the iteration before.
TEST(ClippedLoops, WithSumsOfEachWorkItem_HaveNoLanes) {
    Compiled program(
        "kernel void k(global const float* restrict in, global float* restrict out, local float* own, int n, int r) {"
        " const int x = get_local_id(0); for (int bin = 0; bin < 16; ++bin) own[bin * 64 + x] = 0;"
        " const int begin = clamp(r - (int)get_global_id(0), 0, 8), end = clamp(n - (int)get_global_id(0), 0, 64);"
        " for (int i = begin; i < end; ++i) { const float value = in[get_global_id(0) + i * 64];"
        " own[((int)(value * 15.0f) & 15) * 64 + x] += value; }"
        " for (int bin = 0; bin < 16; ++bin) out[get_group_id(0) * 1024 + bin * 64 + x] = own[bin * 64 + x]; }",
        processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 0U) << program.result().lanes.estimate;
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
