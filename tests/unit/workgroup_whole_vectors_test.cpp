// Explicit vectors that stay whole in lanes: the vectors of neighbouring work-items are side by side in a register.
#include "workgroup_harness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

using Ends = WorkGroupOptions::Ends;

// Sums of products of rows of float4, as products of matrices have them.
constexpr const char* tile = R"(
    kernel void k(global const float4* a, global const float4* b, global float4* c, int n) {
        int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);
        float4 first = 0, second = 0;
        for (int i = 0; i < n; ++i) {
            float4 row = b[2 * i * width + x], next = b[(2 * i + 1) * width + x], p = a[2 * y * n + i], q = a[(2 * y + 1) * n + i];
            first += p.x * row + p.y * next;
            second += q.z * row + q.w * next;
        }
        c[2 * y * width + x] = first;
        c[(2 * y + 1) * width + x] = second;
    })";

struct Whole {
    const char* processor;
    unsigned width;
    const char* type;
};

TEST(WholeVectors, SumsOfProductsElementByElement_AreNotTakenApart) {
    for (const Whole& whole :
         {Whole{processor_with_512_bits, 4, "<16 x float>"}, Whole{processor_with_256_bits, 2, "<8 x float>"}}) {
        Compiled program(tile, whole.processor);
        ASSERT_EQ(program.prepare("k", true, {16, 4, 1}, Ends::whole), "");
        EXPECT_EQ(program.result().lanes.width, whole.width);
        EXPECT_TRUE(has(program, std::string("load ") + whole.type)) << program.optimised();
        EXPECT_FALSE(has(program, "gather") || has(program, "llvm.masked.")) << program.optimised();
    }
}

// A register of 128 bits is filled by one vector.
TEST(WholeVectors, VectorsThatFillARegister_HaveNoLanes) {
    Compiled program(tile, "x86-64-v2");
    ASSERT_EQ(program.prepare("k", true, {16, 4, 1}, Ends::whole, Lanes::with_whole_vectors), "");
    EXPECT_EQ(program.result().lanes.loops, 0U);
}

// Comparisons of all elements are casts of bits to a number, as normalize(float3) has them.
TEST(WholeVectors, ComparisonsOfAllElements_HaveLanes) {
    Compiled program(R"(
        kernel void k(global const float4* in, global float4* out) {
            int i = get_global_id(0);
            float3 v = in[i].xyz;
            out[i] = (float4)(normalize(v), all(v == 0.0f) ? 1.0f : 0.0f);
        })");
    std::vector<float> in(128), out(128);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = i / 4 % 5 == 0 ? 0 : static_cast<float>(i);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::with_whole_vectors}) {
        ASSERT_EQ(program.prepare("k", true, {32, 1, 1}, Ends::whole, lanes), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
        program.run({1, {32, 1, 1}, {32, 1, 1}}, Arguments().add(in.data()).add(out.data()));
        for (size_t i = 0; i < in.size(); i += 4) {
            const float length = std::sqrt(in[i] * in[i] + in[i + 1] * in[i + 1] + in[i + 2] * in[i + 2]);
            for (size_t e = 0; e < 3; ++e)
                EXPECT_NEAR(out[i + e], length == 0 ? 0 : in[i + e] / length, 1e-5) << i;
            EXPECT_EQ(out[i + 3], length == 0 ? 1 : 0) << i;
        }
    }
}

TEST(WholeVectors, ProductsOfRows_AreRight) {
    for (const std::array<uint64_t, 3>& local : {std::array<uint64_t, 3>{16, 4, 1}, {8, 1, 1}, {5, 3, 1}, {2, 2, 1}}) {
        Compiled program(tile);
        ASSERT_EQ(program.prepare("k", true, local), "");
        constexpr int n = 5;
        const size_t width = local[0] * 3 + 1, height = local[1] * 2;
        struct alignas(16) Vector {
            std::array<float, 4> e{};
        };
        std::vector<Vector> a(2 * height * n), b(2 * n * width), c(2 * height * width);
        for (size_t i = 0; i < a.size() * 4; ++i)
            a[i / 4].e[i % 4] = static_cast<float>(i % 13);
        for (size_t i = 0; i < b.size() * 4; ++i)
            b[i / 4].e[i % 4] = static_cast<float>(i % 17) - 5;
        program.run({2, {width, height, 1}, local}, Arguments().add(a.data()).add(b.data()).add(c.data()).add(n));
        for (size_t y = 0; y < height; ++y)
            for (size_t x = 0; x < width; ++x)
                for (size_t e = 0; e < 4; ++e) {
                    float first = 0, second = 0;
                    for (size_t i = 0; i < n; ++i) {
                        const float row = b[2 * i * width + x].e[e], next = b[(2 * i + 1) * width + x].e[e];
                        const Vector &p = a[2 * y * n + i], &q = a[(2 * y + 1) * n + i];
                        first += p.e[0] * row + p.e[1] * next;
                        second += q.e[2] * row + q.e[3] * next;
                    }
                    ASSERT_EQ(c[2 * y * width + x].e[e], first) << x << ", " << y;
                    ASSERT_EQ(c[(2 * y + 1) * width + x].e[e], second) << x << ", " << y;
                }
    }
}

// The mask of a guard is the same in all iterations of the loop behind it, so it is repeated for the elements once.
TEST(WholeVectors, SumsBehindAGuard_AreNotTakenApart) {
    Compiled program(R"(
        kernel void k(global const float4* in, constant float* filter, global float4* out, int columns, int rows, int width,
                      local float4* column) {
            const int x = get_global_id(0), y = get_global_id(1), l = get_local_id(1), size = get_local_size(1);
            const int begin = get_group_id(1) * size - width / 2;
            for (int i = l; i < size + width; i += size) column[i] = in[clamp(begin + i, 0, rows - 1) * columns + x];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (y < rows) {
                float4 sum = 0;
                int i = 0;
                for (; i + 7 < width; i += 8)
                    for (int j = 0; j < 8; ++j) sum += filter[i + j] * column[i + j + l];
                for (; i < width; ++i) sum += filter[i] * column[i + l];
                out[y * columns + x] = sum;
            }
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {1, 128, 1}, Ends::whole), "");
    EXPECT_EQ(program.result().lanes.width, 4U) << program.result().lanes.reason;
}

// Where most of the work is on single numbers, those have all lanes of a register.
TEST(WholeVectors, VectorsWhoseElementsAreMostlyNumbers_AreSplit) {
    Compiled program(R"(
        kernel void k(global const float4* p, global float4* out, int n) {
            int i = get_global_id(0);
            float4 own = p[i], sum = 0;
            for (int j = 0; j < n; ++j) {
                float4 r = p[j] - own;
                float d = r.x * r.x + r.y * r.y + r.z * r.z + 0.5f;
                float f = p[j].w / (d * d * d + d);
                sum += f * r;
            }
            out[i] = sum;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.width, 16U) << program.optimised();
}

// A whole vector that each lane stores at its own place takes as long as a scatter takes for one pair of split elements.
TEST(WholeVectors, VectorsAtPlacesThatAreComputed_AreSplit) {
    std::string chain;
    for (int step = 0; step < 40; ++step)
        chain += "a = a * a + f; ";
    Compiled program("kernel void k(global const float2* in, global float2* out, int p, float f) {"
                     "    const int i = get_global_id(0), k = i & (p - 1), j = ((i - k) << 1) + k;"
                     "    float a = k * f;" +
                         chain +
                         "    const float2 x = in[i], t = (float2)(x.x * a - x.y, x.y * a + x.x);"
                         "    out[j] = x + t;"
                         "    out[j + p] = x - t; }",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.width, 16U);
    EXPECT_GT(count(program, "@llvm.masked.scatter.v16i64"), 0U) << program.optimised();
}

// Gathers of tables are quick for all lanes, so 16 lanes are better than four whose vectors are whole.
TEST(WholeVectors, OfEntriesOfATable_AreSplit) {
    Compiled program(R"(
        #define BYTE(x, i) ((x) >> 8 * (i) & 255)
        #define ENTRY(a, b, c, d) table[BYTE(a, 0)] ^ table[256 + BYTE(b, 1)] ^ table[512 + BYTE(c, 2)] ^ table[768 + BYTE(d, 3)]
        kernel void k(global const uint4* in, global uint4* out, global const uint* table, global const uint4* keys, int rounds) {
            uint4 state = in[get_global_id(0)] ^ keys[0];
            for (int round = 1; round < rounds; ++round)
                state = (uint4)(ENTRY(state.x, state.y, state.z, state.w), ENTRY(state.y, state.z, state.w, state.x),
                                ENTRY(state.z, state.w, state.x, state.y), ENTRY(state.w, state.x, state.y, state.z)) ^ keys[round];
            out[get_global_id(0)] = state;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.width, 16U) << program.result().lanes.reason;
}

// Bytes are converted where they are: four work-items' colors are one register of floats.
TEST(WholeVectors, ColorsOfBytes_AreConvertedInTheOrderOfMemory) {
    Compiled program(R"(
        kernel void k(global const uchar4* in, global uchar4* out, float factor) {
            int i = get_global_id(0);
            float4 sum = convert_float4(in[2 * i]) + convert_float4(in[2 * i + 1]);
            out[i] = convert_uchar4(sum * factor);
        })");
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, Ends::whole, Lanes::with_whole_vectors), "");
    std::vector<uint8_t> in(1024), out(512);
    std::iota(in.begin(), in.end(), uint8_t{0});
    program.run({1, {128, 1, 1}, {64, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(0.25F));
    for (size_t i = 0; i < out.size(); ++i) {
        const size_t first = i / 4 * 8 + i % 4;
        EXPECT_EQ(out[i], static_cast<uint8_t>(static_cast<float>(in[first] + in[first + 4]) * 0.25F)) << i;
    }
}

// Vectors of eight floats fill half of a register. Two chains of them take as long as sixteen chains of lanes.
TEST(WholeVectors, ThatFillHalfARegisterInALoop_AreTakenApart) {
    Compiled program(R"(
        #define STEP a = (3.55f - a * 0.35f) * a; b = (3.55f - b * 0.35f) * b;
        kernel void k(global float* data, int n) {
            float s = data[get_global_id(0)];
            float8 a = s, b = s + 0.125f;
            for (int i = 0; i < n; ++i) {
                STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP
            }
            a += b;
            data[get_global_id(0)] = a.s0 + a.s1 + a.s2 + a.s3 + a.s4 + a.s5 + a.s6 + a.s7;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.width, 16U) << program.result().lanes.reason;
}

// Structures of the lanes that a condition leaves active are loaded and stored in the order of memory, under a mask of their elements.
TEST(SplitVectors, UnderMasks_StayInTheOrderOfMemory) {
    Compiled program(R"(
        kernel void k(global const float* in, global const int2* pairs, global float4* out, global int2* sums) {
            const int i = get_global_id(0);
            if (in[i] > 0.25f) {
                const float4 v = out[i];
                out[i] = (float4)(v.x + v.y, v.y * in[i], v.z - v.x, v.w);
                sums[i] = (int2)(pairs[i].x + pairs[i].y, pairs[i].y);
            }
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, Ends::whole, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    EXPECT_FALSE(has(program, "gather") || has(program, "scatter")) << program.optimised();
    constexpr size_t items = 128;
    std::vector<float> in(items), out(4 * items), expected(4 * items);
    std::vector<int> pairs(2 * items), sums(2 * items, -5), expected_sums(2 * items, -5);
    for (size_t rounds = 0; rounds < 3; ++rounds) {
        std::iota(pairs.begin(), pairs.end(), -40);
        std::iota(out.begin(), out.end(), -100.0F);
        for (size_t i = 0; i < items; ++i)
            in[i] =
                rounds == 2 ? 1.0F : static_cast<float>(i * 7 % (rounds == 0 ? 5 : 64)) / 8;  // some, one of few, all
        expected = out;
        for (size_t i = 0; i < items; ++i) {
            if (in[i] <= 0.25F)
                continue;
            const float* const v = &out[4 * i];
            const float made[] = {v[0] + v[1], v[1] * in[i], v[2] - v[0], v[3]};
            std::copy(std::begin(made), std::end(made), &expected[4 * i]);
            expected_sums[2 * i] = pairs[2 * i] + pairs[2 * i + 1];
            expected_sums[2 * i + 1] = pairs[2 * i + 1];
        }
        program.run({1, {items, 1, 1}, {64, 1, 1}},
                    Arguments().add(in.data()).add(pairs.data()).add(out.data()).add(sums.data()));
        EXPECT_EQ(out, expected) << rounds;
        EXPECT_EQ(sums, expected_sums) << rounds;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
