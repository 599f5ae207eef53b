// Explicit vectors in loops whose iterations wait for each other: in lanes several chains run at once.
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// `steps` times `step`, which changes the vector a, in each iteration.
std::string loop_of(const std::string& step, unsigned steps) {
    std::string body;
    for (unsigned i = 0; i < steps; ++i)
        body += step;
    return R"(
        kernel void k(global float* data, int n) {
            float8 a = data[get_global_id(0)] + (float8)(0, 1, 2, 3, 4, 5, 6, 7);
            for (int i = 0; i < n; ++i) { )" +
           body + R"( }
            data[get_global_id(0)] = a.s0 + a.s1 + a.s2 + a.s3 + a.s4 + a.s5 + a.s6 + a.s7;
        })";
}

const std::string chain = "a = (3.55f - a * 0.35f) * a; ";

unsigned loops_with_lanes(const std::string& source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::where_they_pay), "");
    return program.result().lanes.loops;
}

TEST(VectorChains, ThatFillARegister_BecomeLanes) {
#if defined(__x86_64__)
    for (const char* processor : {"haswell", "x86-64-v2"})
        EXPECT_EQ(loops_with_lanes(loop_of(chain, 20), processor), 1U) << processor;
#else
    GTEST_SKIP() << "needs x86-64";
#endif
}

// Where many chains are in one iteration, vectors of one work-item are as fast.
TEST(VectorChains, ThatAreMany_StayVectors) {
#if defined(__x86_64__)
    const std::string many = R"(
        kernel void k(global float8* data, int n) {
            const int id = get_global_id(0) * 8;
            float8 a = data[id], b = data[id + 1], c = data[id + 2], d = data[id + 3], e = data[id + 4], f = data[id + 5];
            for (int i = 0; i < n; ++i) { a += 0.5f; b += 0.5f; c += 0.5f; d += 0.5f; e += 0.5f; f += 0.5f; }
            data[id] = a; data[id + 1] = b; data[id + 2] = c; data[id + 3] = d; data[id + 4] = e; data[id + 5] = f;
        })";
    EXPECT_EQ(loops_with_lanes(many, "haswell"), 0U);
#else
    GTEST_SKIP() << "needs x86-64";
#endif
}

// Few lanes of whole vectors would wait for each number as long as many lanes do.
TEST(VectorChains, OfIntegersBesideFewVectors_HaveAllLanes) {
    Compiled program(R"(
        kernel void k(global const uchar4* restrict in, global uchar4* restrict out, local int* table) {
            const int id = get_global_id(0), row = 16 * get_local_id(0);
            const float4 pixel = __builtin_convertvector(in[id], float4);
            int state = (int)(pixel.x + 3 * pixel.y + 5 * pixel.z) + 1;
            for (int i = 19; i >= 0; --i) {
                const int high = state / 44488;
                state = 48271 * (state - high * 44488) - 3399 * high;
                if (state < 0) state += 2147483647;
                if (i < 16) table[row + i] = state;
            }
            out[id] = __builtin_convertvector(pixel + table[row + table[row] / 134217728] * 0x1p-31f, uchar4);
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.result().lanes.width, 16U) << program.result().lanes.reason;
}

// A cache line is read for each element, by lanes and without them, and lanes wait for all.
TEST(RowsReadOnce, HaveNoLanes) {
#if defined(__x86_64__)
    const char* once = R"(
        kernel void k(global const uint* in, global uint* out, int pitch, int n) {
            const int i = get_global_id(0);
            uint x = out[i], y = x;
            x ^= in[i * pitch];
            x ^= in[(i + n) * pitch];
            x ^= in[(i + 2 * n) * pitch];
            x ^= in[(i + 3 * n) * pitch];
            x = (x ^ 13) + y; x = (x ^ 99) + y; x = (x ^ 57) + y;
            out[i] = x;
        })";
    const char* in_loop = R"(
        kernel void k(global const float* in, global float* out, int pitch) {
            const int i = get_global_id(0);
            float sum = 0;
            for (int j = 0; j < pitch; ++j) sum += in[i * pitch + j];
            out[i] = sum;
        })";
    for (const char* processor : {"x86-64-v4", "haswell", "x86-64-v2"})
        EXPECT_EQ(loops_with_lanes(once, processor), 0U) << processor;
    EXPECT_EQ(loops_with_lanes(in_loop, "x86-64-v4"), 1U);
#else
    GTEST_SKIP() << "needs x86-64";
#endif
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
