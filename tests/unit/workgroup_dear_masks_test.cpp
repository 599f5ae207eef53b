// Lanes on processors that have no registers for masks: what is skipped, and where lanes do not pay.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A masked store takes as long as 12 others on Zen, also of no lane.
TEST(DearMasks, StoresUnderAGuard_AreSkippedForNoLane_WhereMasksAreDear) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2"))
        GTEST_SKIP() << "needs AVX2";
    for (const char* processor : {"haswell", "x86-64-v2"}) {
        Compiled program(R"(
            kernel void k(global const int* in, global int* out) {
                int i = get_global_id(0), l = get_local_id(0);
                if (l < 5) out[i] = in[i] * 3;
            })",
                         processor);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_TRUE(has(program, "label %some")) << program.optimised();
        std::vector<int> in(48), out(48), expected(48);
        for (int i = 0; i < 48; ++i) {
            in[i] = i + 1;
            expected[i] = i % 24 < 5 ? in[i] * 3 : 0;
        }
        program.run({1, {48, 1, 1}, {24, 1, 1}}, Arguments().add(in.data()).add(out.data()));
        EXPECT_EQ(out, expected) << processor;
    }
#else
    GTEST_SKIP() << "needs AVX2";
#endif
}

unsigned loops_with_lanes(const char* source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k", false, {64, 1, 1}, WorkGroupOptions::Ends::ragged, Lanes::where_they_pay), "");
    return program.result().lanes.loops;
}

// Hardly ever are all lanes active, so that each row is accessed one lane after the other.
TEST(DearMasks, WhereNumbersAreEqual_DoNotPayWithoutMaskedAccesses) {
#if defined(__x86_64__)
    const char* sums = R"(
        kernel void k(global float* part, uint step) {
            const uint i = get_global_id(0);
            if ((i & step) == 0) part[i] += part[i + step];
        })";
    EXPECT_EQ(loops_with_lanes(sums, "x86-64-v2"), 0U);
    EXPECT_EQ(loops_with_lanes(sums, "x86-64-v4"), 1U);
#else
    GTEST_SKIP() << "needs x86-64";
#endif
}

// Each vector waits for what the one before has stored.
TEST(DearMasks, StoresWhoseNeighboursAreLoaded_DoNotPay) {
#if defined(__x86_64__)
    const char* points = R"(
        kernel void k(global float* u, global const float* f, int n, int color) {
            const int x = get_global_id(0), y = get_global_id(1);
            if (x == 0 || y == 0 || x == n - 1 || y == n - 1 || (x + y) % 2 != color) return;
            const int i = y * n + x;
            u[i] = 0.25f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - f[i]);
        })";
    EXPECT_EQ(loops_with_lanes(points, "x86-64-v2"), 0U);
    EXPECT_EQ(loops_with_lanes(points, "x86-64-v3"), 0U);
    EXPECT_EQ(loops_with_lanes(points, "x86-64-v4"), 1U);
#else
    GTEST_SKIP() << "needs x86-64";
#endif
}

// Some lane has left after the first bytes, and rows of bytes have no masked form: they are read one lane after the other.
TEST(DearMasks, ComparisonsOfBytesThatLanesLeave_DoNotPayWithoutMaskedAccesses) {
#if defined(__x86_64__)
    const char* match = R"(
        kernel void k(global const uchar* a, global const uchar* b, global ushort* lengths, int count) {
            const int at = get_global_id(0);
            int length = 0;
            while (length < 16 && a[at + length] == b[at + length])
                ++length;
            lengths[at] = length;
        })";
    EXPECT_EQ(loops_with_lanes(match, "x86-64-v2"), 0U);
    EXPECT_EQ(loops_with_lanes(match, "x86-64-v3"), 0U);
    EXPECT_EQ(loops_with_lanes(match, "x86-64-v4"), 1U);
#else
    GTEST_SKIP() << "needs x86-64";
#endif
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
