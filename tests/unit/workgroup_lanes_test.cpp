// Which work-items become lanes, and what loads and masks become.

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

using Ends = WorkGroupOptions::Ends;

constexpr const char* iterate = R"(
    kernel void k(global float* out, int rounds) {
        uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
        float v = x + 0.5f * y + 0.25f * z;
        for (int i = 0; i < rounds; ++i) v = v * 0.75f + x;
        out[(z * get_global_size(1) + y) * get_global_size(0) + x] = v;
    })";

struct Narrow {
    std::array<uint64_t, 3> local;
    const char* product;
};

TEST(Lanes, NarrowGroupOfKnownSize_IsVectorizedInItsLongRows) {
    Compiled program(iterate);
    for (const Narrow& narrow : {Narrow{{8, 8, 1}, "fmul <8 x float>"}, Narrow{{4, 4, 1}, "fmul <4 x float>"},
                                 Narrow{{1, 16, 1}, "fmul <"}, Narrow{{2, 1, 64}, "fmul <"}}) {
        ASSERT_EQ(program.prepare("k", true, narrow.local, Ends::whole), "");
        // fmul may be contracted: any vector product will do.
        EXPECT_TRUE(has(program, narrow.product) || has(program, "@llvm.fmuladd.v")) << program.optimised();
        Range range{3, {16, 16, 64}, narrow.local};
        std::vector<float> out(16 * 16 * 64), expected(out.size());
        for (uint32_t i = 0; i < out.size(); ++i) {
            const uint32_t row = i / 16, slice = row / 16;
            const auto x = static_cast<float>(i % 16), y = static_cast<float>(row % 16);
            float v = x + 0.5F * y + 0.25F * static_cast<float>(slice);
            for (int round = 0; round < 5; ++round)
                v = v * 0.75F + x;
            expected[i] = v;
        }
        program.run(range, Arguments().add(out.data()).add(5));
        for (size_t i = 0; i < out.size(); ++i)
            ASSERT_FLOAT_EQ(out[i], expected[i]) << i;
    }
}

// `unknown`: which dimension is lanes in code for groups of any size.
struct Rows {
    const char* body;
    unsigned unknown;
};

TEST(Lanes, DimensionWhoseAccessesAreConsecutive_IsLanesInGroupsOfAnySize) {
    for (const Rows& rows :
         {Rows{"if (x < w && y < h) a[x * h + y] -= b[x] * a[y];", 1},  // walks rows in x
          Rows{"if (x < w && y < h) a[y * w + x] -= b[y] * a[x];", 0},
          Rows{"if (x < w && y < h) a[x * h + y] += b[y * w + x];", 0},  // a transposition: x as good as y
          Rows{"y = 0; if (x < w) for (int k = 0; k < h; ++k) a[x * h + k] += b[x];", 0}}) {  // no second dimension
        Compiled program("kernel void k(global int* a, global const int* b, int w, int h) {"
                         " int x = get_global_id(0), y = get_global_id(1);" +
                         std::string{rows.body} + "}");
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.dimension, rows.unknown) << rows.body;
    }
}

// A group's tile, whose columns are side by side in local memory, is close to the processor; the rows of a buffer are not.
TEST(Lanes, RowsOfABuffer_CountMoreThanColumnsOfATile) {
    constexpr size_t columns = 16, rows = 80, results = 64, taps = 17;
    std::string sum = "0";  // written out, as the frontend's passes would do
    for (size_t j = 0; j < taps; ++j)
        sum += " + weights[" + std::to_string(j) + "] * tile[x * 81 + y + 8 * i + " + std::to_string(j) + "]";
    for (const bool are_rows_in_x : {true, false}) {
        Compiled program(std::string("#define PLACE(x, y) ") +
                         (are_rows_in_x ? "((y) * width + (x))" : "((x) * width + (y))") + R"(
            kernel void k(global float* out, global const float* in, global const float* weights, local float* tile,
                          int width) {
                const int x = get_local_id(0), y = get_local_id(1);
                for (int i = 0; i < 10; ++i) tile[x * 81 + y + 8 * i] = in[PLACE(x, y + 8 * i)];
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int i = 0; i < 8; ++i) out[PLACE(x, y + 8 * i)] = )" +
                         sum + "; }");
        ASSERT_EQ(program.prepare("k", true, {columns, 8, 1}, Ends::whole), "");
        EXPECT_EQ(program.result().lanes.dimension, are_rows_in_x ? 0U : 1U);
        const int width = are_rows_in_x ? columns : rows;
        const auto place = [&](size_t x, size_t y) { return are_rows_in_x ? y * columns + x : x * rows + y; };
        std::vector<float> in(columns * rows), out(in.size()), expected(in.size()), weights(taps);
        for (size_t i = 0; i < in.size(); ++i)
            in[i] = static_cast<float>(i * 7 % 32);
        std::iota(weights.begin(), weights.end(), 1.0F);
        for (size_t x = 0; x < columns; ++x)
            for (size_t y = 0; y < results; ++y)
                for (size_t j = 0; j < taps; ++j)
                    expected[place(x, y)] += weights[j] * in[place(x, y + j)];
        program.run({2, {columns, 8, 1}, {columns, 8, 1}}, Arguments()
                                                               .add(out.data())
                                                               .add(in.data())
                                                               .add(weights.data())
                                                               .add_local(columns * 81 * sizeof(float))
                                                               .add(width));
        for (size_t x = 0; x < columns; ++x)
            for (size_t y = 0; y < results; ++y)
                EXPECT_EQ(out[place(x, y)], expected[place(x, y)]) << x << ", " << y;
    }
}

// LLVM computes the base of the tile's row again for each of the 17 elements, which are neighbours all the same.
TEST(Lanes, RowsOfABuffer_CountMoreThanColumnsOfATileInTwoDimensions) {
    Compiled program(R"(
        kernel void k(global float* out, global const float* in, constant float* weights, int width) {
            local float tile[16][81];
            const int x = get_local_id(0), y = get_local_id(1);
            const int at = (get_group_id(1) * 64 + y) * width + get_group_id(0) * 16 + x;
            for (int i = 0; i < 10; ++i) tile[x][y + 8 * i] = in[at + 8 * i * width];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < 8; ++i) {
                float sum = 0;
                for (int j = 0; j < 17; ++j) sum += weights[j] * tile[x][y + 8 * i + j];
                out[at + 8 * i * width] = sum;
            }
        })");
    ASSERT_EQ(program.prepare("k", true, {16, 8, 1}, Ends::whole), "");
    EXPECT_EQ(program.result().lanes.dimension, 0U);
}

TEST(Lanes, RowsInX_AreRightInGroupsOfAllShapes) {
    Compiled program(R"(
        kernel void k(global int* a, global const int* b, int w, int h) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x >= w - 1 || y >= h) return;
            a[(x + 1) * h + y] -= b[x] * a[y];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int w = 37, h = 41;
    std::vector<int> start(w * h), weights(w);
    std::iota(start.begin(), start.end(), -300);
    std::iota(weights.begin(), weights.end(), 11);
    std::vector<int> expected = start;
    for (int x = 0; x < w - 1; ++x)
        for (int y = 0; y < h; ++y)
            expected[(x + 1) * h + y] -= weights[x] * start[y];
    for (const std::array<uint64_t, 3>& local :
         {std::array<uint64_t, 3>{16, 16, 1}, {1, 64, 1}, {64, 1, 1}, {5, 7, 1}, {3, 33, 1}}) {
        std::vector<int> a = start;
        const std::array<uint64_t, 3> global{(w + local[0]) / local[0] * local[0] - 1, 45, 1};
        program.run({2, global, local}, Arguments().add(a.data()).add(weights.data()).add(w).add(h));
        EXPECT_EQ(a, expected) << local[0] << " x " << local[1];
    }
}

TEST(Lanes, NeighboursClampedToTheEdge_AreLoadedTogetherAndRight) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, int n) {
            int i = get_global_id(0), sum = 0;
            for (int d = -2; d <= 2; ++d) sum = sum * 3 + in[clamp(i + d, 0, n - 1)];
            out[i] = sum;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "together")) << program.optimised();
    constexpr int n = 80;
    std::vector<int> in(n), out(n), expected(n);
    std::iota(in.begin(), in.end(), 7);
    for (int i = 0; i < n; ++i)
        for (int d = -2; d <= 2; ++d)
            expected[i] = expected[i] * 3 + in[std::clamp(i + d, 0, n - 1)];
    for (uint64_t local : {16, 40, 80}) {
        program.run({1, {n, 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
        EXPECT_EQ(out, expected) << local;
    }
}

TEST(Lanes, IntsBehindAGuard_AreLoadedAsRows) {
    Compiled program(R"(
        kernel void k(global const float* in, global float* out, int w, int h) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
            out[y * w + x] = in[(y - 1) * w + x] + in[(y + 1) * w + x] + in[y * w + x - 1] + in[y * w + x + 1];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has(program, "call <16 x float> @llvm.masked.gather")) << program.optimised();
    constexpr int w = 48, h = 9;
    std::vector<float> in(w * h), out(w * h, -1), expected(w * h, -1);
    std::iota(in.begin(), in.end(), 0.0F);
    for (int y = 1; y < h - 1; ++y)
        for (int x = 1; x < w - 1; ++x)
            expected[y * w + x] = in[(y - 1) * w + x] + in[(y + 1) * w + x] + in[y * w + x - 1] + in[y * w + x + 1];
    program.run({2, {w, h, 1}, {24, 3, 1}}, Arguments().add(in.data()).add(out.data()).add(w).add(h));
    EXPECT_EQ(out, expected);
}

// The guard excludes the first lanes of a row. Only from the guard it is known that the index is not negative.
TEST(Lanes, IndicesThatAGuardKeepsFromBeingNegative_AreRightWhereTheFirstLanesAreOut) {
    constexpr int count = 96;
    constexpr int distance = 5;
    for (const char* body : {"int i = get_global_id(0), j = i - n; if (j >= 0) out[j] = in[i];",
                             "uint i = get_global_id(0); if (i >= (uint)n) out[i - (uint)n] = in[i];",
                             "size_t i = get_global_id(0); if (i >= (size_t)n) out[i - (size_t)n] = in[i];",
                             R"(uint i = get_global_id(0), l = get_local_id(0);
                                if (i < 32 && l >= 5) out[l - 5] = in[i];
                                if (i >= 32) out[i - 5] = in[i];)",
                             "int i = get_global_id(0); if (i >= n) { uint j = i - n; out[j | 0] = in[j + n]; }"}) {
        Compiled program("kernel void k(global const int* in, global int* out, int n) {" + std::string{body} + "}");
        ASSERT_EQ(program.prepare("k"), "");
        std::vector<int> in(count), out(count, -1), expected(count, -1);
        std::iota(in.begin(), in.end(), 100);
        std::copy(in.begin() + distance, in.end(), expected.begin());
        program.run({1, {count, 1, 1}, {32, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(distance));
        EXPECT_EQ(out, expected) << body;
    }
}

TEST(Lanes, GuardInsideAGuard_DoesNotReplaceBoth) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, int n) {
            int i = get_global_id(0), sum = 7;
            long place = i;
            if (place >= (size_t)n) {
                sum = sum * 5 + in[place - (size_t)n];
                if (place - (size_t)n >= 2) sum ^= in[place - (size_t)n - 2];
            }
            out[i] = sum;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int count = 64, n = 7;
    std::vector<int> in(count), out(count), expected(count, 7);
    std::iota(in.begin(), in.end(), 100);
    for (int i = n; i < count; ++i)
        expected[i] = (35 + in[i - n]) ^ (i - n >= 2 ? in[i - n - 2] : 0);
    program.run({1, {count, 1, 1}, {32, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
    EXPECT_EQ(out, expected);
}

TEST(Lanes, SumOverNeighboursInsideTheRange_IsRightAtItsBeginning) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, int radius, int n) {
            int i = get_global_id(0), sum = 0;
            for (int d = -radius; d <= radius; ++d) {
                int j = i + d;
                if (j >= 0 && j < n) sum += in[j];
            }
            out[i] = sum;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int n = 64, radius = 5;
    std::vector<int> in(n), out(n), expected(n);
    std::iota(in.begin(), in.end(), 7);
    for (int i = 0; i < n; ++i)
        for (int j = std::max(i - radius, 0); j <= std::min(i + radius, n - 1); ++j)
            expected[i] += in[j];
    program.run({1, {n, 1, 1}, {32, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(radius).add(n));
    EXPECT_EQ(out, expected);
}

TEST(Lanes, RowsUnderAGuard_AreAccessedAtOnce_WhereTheProcessorHasNoMasksForTheirType) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2"))
        GTEST_SKIP() << "needs AVX2";
    Compiled program(R"(
        kernel void k(global const uchar* in, global uchar* out, int n) {
            int i = get_global_id(0);
            if (i < n) out[i] = in[i] * 3;
        })",
                     "haswell");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "load <8 x i8>") && has(program, "store <8 x i8>")) << program.optimised();
    EXPECT_FALSE(has(program, "llvm.masked.load") || has(program, "llvm.masked.store")) << program.optimised();
    std::vector<uint8_t> in(48), out(48), expected(48);
    std::iota(in.begin(), in.end(), uint8_t{1});
    std::transform(in.begin(), in.begin() + 37, expected.begin(), [](int value) { return uint8_t(value * 3); });
    program.run({1, {48, 1, 1}, {24, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(37));
    EXPECT_EQ(out, expected);
#else
    GTEST_SKIP() << "needs AVX2";
#endif
}

TEST(Lanes, VectorsOfEightAndMoreAreNotSplit) {
    Compiled program(R"(
        kernel void k(global const float16* a, global float16* out) {
            int i = get_global_id(0);
            out[i] = a[i] * 2.0f;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "fmul <16 x float>") && !has(program, "llvm.masked.")) << program.optimised();
    struct alignas(64) Vector {
        std::array<float, 16> values;
    };
    std::vector<Vector> in(40), out(40);
    for (size_t i = 0; i < 40 * 16; ++i)
        in[i / 16].values[i % 16] = static_cast<float>(i);
    program.run({1, {40, 1, 1}, {40, 1, 1}}, Arguments().add(in.data()).add(out.data()));
    for (size_t i = 0; i < 40 * 16; ++i)
        ASSERT_EQ(out[i / 16].values[i % 16], 2 * in[i / 16].values[i % 16]) << i;
}

TEST(Lanes, VectorsStayWhole_WhereLanesGainLess) {
    constexpr const char* source = R"(
        kernel void butterfly(global float2* data, global const int* order, int n) {
            local float2 staged[64];
            int i = get_local_id(0), first = get_group_id(0) * 64;
            staged[i] = data[first + order[i]];
            staged[i + 32] = data[first + order[i + 32]];
            barrier(CLK_LOCAL_MEM_FENCE);
            float2 a = staged[order[i]], b = staged[order[i + 32]];
            barrier(CLK_LOCAL_MEM_FENCE);
            staged[order[i]] = a + b * 2.0f;
            staged[order[i + 32]] = a - b * 3.0f;
            barrier(CLK_LOCAL_MEM_FENCE);
            data[first + i] = staged[i];
            data[first + i + 32] = staged[i + 32];
        })";
    Compiled program(source), there(source, processor_with_512_bits);  // whose gathers are slow
    struct alignas(8) Pair {
        float x, y;
    };
    std::vector<Pair> in(128), staged(128);
    std::vector<int> order(64);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = {static_cast<float>(i), static_cast<float>(i * i)};
    for (size_t i = 0; i < order.size(); ++i)
        order[i] = static_cast<int>(i * 37 % 64);
    for (size_t first = 0; first < 128; first += 64)
        for (size_t i = 0; i < 32; ++i) {
            const auto in_order = [&](size_t at) { return static_cast<size_t>(order[at]); };
            const Pair a = in[first + in_order(in_order(i))], b = in[first + in_order(in_order(i + 32))];
            staged[first + in_order(i)] = {a.x + 2 * b.x, a.y + 2 * b.y};
            staged[first + in_order(i + 32)] = {a.x - 3 * b.x, a.y - 3 * b.y};
        }
    ASSERT_EQ(there.prepare("butterfly"), "");
    EXPECT_TRUE(has(there, "load <2 x float>") && has(there, "fadd <2 x float>")) << there.optimised();
    EXPECT_FALSE(has(there, "gather") || has(there, "scatter")) << there.optimised();
    ASSERT_EQ(program.prepare("butterfly"), "");
    std::vector<Pair> out = in;
    program.run({1, {64, 1, 1}, {32, 1, 1}}, Arguments().add(out.data()).add(order.data()).add(64));
    for (size_t i = 0; i < out.size(); ++i)
        ASSERT_TRUE(out[i].x == staged[i].x && out[i].y == staged[i].y) << i;
}

constexpr const char* rows_and_columns = R"(
    kernel void columns(global const float* in, global float* out, int w) {
        int row = get_global_id(0), column = get_global_id(1);
        out[row * w + column] = in[row * w + column] * 2;
    }
    kernel void product(global const float* in, global float* out, int w) {
        int row = get_global_id(0), column = get_global_id(1);
        float sum = 0;
        for (int i = 0; i < w; ++i) sum += in[row * w + i] * in[i * w + column];
        out[row * w + column] = sum;
    }
    kernel void apart(global const float* in, global float* out, int w) {
        int x = get_global_id(0), y = get_global_id(1), at = y * w + x;
        out[at * 11] = in[at * 11 + 2] * 2;
    }
    kernel void rounds(global const float* in, global float* out, int w) {
        int x = get_global_id(0), y = get_global_id(1), at = y * w + x;
        float v = in[at * 3 + 2];
        for (int i = 0; i < w; ++i) v = v * 0.75f + x;
        out[at * 3] = v;
    }
    kernel void stencil(global const float* in, global float* out, int w) {
        int x = get_global_id(0), y = get_global_id(1);
        float sum = 0;
        for (int d = 0; d < 3; ++d) for (int e = 0; e < 3; ++e) sum += in[(y + d) * w + x + e] * (2 * d + e);
        out[y * w + x] = sum;
    })";

// Vectors that LLVM makes of straight code aside, which are of 4 or of masks.
bool has_lanes(const Compiled& program) {
    return has(program, "<64 x float>") || has(program, "<32 x float>") || has(program, "<16 x float>") ||
           has(program, "<8 x float>") || has(program, "<16 x ptr>") || has(program, "<8 x ptr>");
}

TEST(Lanes, DimensionWhoseAccessesAreConsecutive_BecomesLanes) {
    Compiled program(rows_and_columns);
    constexpr uint64_t w = 32, h = 16;
    for (const std::array<uint64_t, 3> local : {std::array<uint64_t, 3>{8, 8, 1}, {4, 32, 1}, {16, 16, 1}}) {
        ASSERT_EQ(program.prepare("columns", true, local, Ends::whole), "");
        EXPECT_TRUE(has(program, "load <")) << program.optimised();
        EXPECT_FALSE(has(program, "gather")) << program.optimised();
        std::vector<float> in(w * h), out(w * h);
        std::iota(in.begin(), in.end(), 1.0F);
        program.run({2, {h, w, 1}, local}, Arguments().add(in.data()).add(out.data()).add(static_cast<int>(w)));
        for (size_t i = 0; i < out.size(); ++i)
            ASSERT_EQ(out[i], 2 * in[i]) << i;
    }
}

TEST(Lanes, ProductOfMatrices_RunsInLanesOfColumns_WhicheverDimensionTheyAre) {
    Compiled program(rows_and_columns, processor_with_512_bits);
    ASSERT_EQ(program.prepare("product", true, {8, 32, 1}, Ends::whole), "");
    EXPECT_TRUE(has_lanes(program)) << program.optimised();
    EXPECT_FALSE(has(program, "gather") || has(program, "insertelement <8 x float> %")) << program.optimised();
}

TEST(Lanes, AccessesThatAreApartAlone_RunOneByOne) {
    Compiled program(rows_and_columns, processor_with_512_bits);
    ASSERT_EQ(program.prepare("apart"), "");
    EXPECT_FALSE(has_lanes(program)) << program.optimised();
    ASSERT_EQ(program.prepare("apart", true, {8, 8, 1}, Ends::whole), "");
    EXPECT_FALSE(has_lanes(program)) << program.optimised();
    ASSERT_EQ(program.prepare("stencil", true, {1, 64, 1}, Ends::whole), "");
    EXPECT_FALSE(has_lanes(program)) << program.optimised();
}

TEST(Lanes, AccessesThatAreApartAroundMuchArithmetic_StillRunInLanes) {
    Compiled program(rows_and_columns, processor_with_512_bits);
    ASSERT_EQ(program.prepare("rounds"), "");
    EXPECT_TRUE(has_lanes(program)) << program.optimised();
    ASSERT_EQ(program.prepare("rounds", true, {1, 64, 1}, Ends::whole), "");
    EXPECT_TRUE(has_lanes(program)) << program.optimised();
}

// LLVM takes minutes over lanes of what it compiles in seconds for one work-item.
TEST(Lanes, LoopsOfVeryManyInstructions_RunOneByOne) {
    const auto with_lines = [](int lines) {
        std::string source = "kernel void k(global uint* a) { uint i = get_global_id(0), x = a[i];\n";
        for (int i = 0; i < lines; ++i)
            source += "x = (x ^ x >> 7) * " + std::to_string(2 * i + 3) + "u;\n";
        return source + "a[i] = x; }";
    };
    Compiled few(with_lines(40)), many(with_lines(6200));
    ASSERT_EQ(few.prepare("k"), "");
    EXPECT_TRUE(has(few, "mul <")) << few.optimised();
    ASSERT_EQ(many.prepare("k"), "");
    EXPECT_FALSE(has(many, "mul <"));
}

TEST(Lanes, AccessesThatAreApart_AreMadeForEachLaneInOrder) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, global int* place) {
            int i = get_global_id(0);
            out[place[i]] = in[place[i]] + in[3 * i] + i;
        })");
    std::vector<int> in(3 * 32), place(32), out(32), expected(32);
    std::iota(in.begin(), in.end(), 5);
    for (int i = 0; i < 32; ++i)
        place[static_cast<size_t>(i)] = i * 7 % 12;  // several to one place: the last remains
    for (size_t i = 0; i < 32; ++i)
        expected[static_cast<size_t>(place[i])] = in[static_cast<size_t>(place[i])] + in[3 * i] + static_cast<int>(i);
    for (uint64_t local : {4, 8, 32}) {
        ASSERT_EQ(program.prepare("k", true, {local, 1, 1}, Ends::whole, workgroup::Lanes::wherever_possible), "");
        std::fill(out.begin(), out.end(), 0);
        program.run({1, {32, 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(place.data()));
        EXPECT_EQ(out, expected) << local;
    }
}

// A vector of four in a loop saves less than lanes gain in the loops that this loop contains, however deep.
TEST(Lanes, LoopsAroundBarriersInALoop_OutweighItsVectors) {
    Compiled program(R"(
        kernel void k(global const uint4* in, global uint* out, local uint* sums, int count, int n) {
            const int l = get_local_id(0), size = get_local_size(0);
            for (int round = 0; round < count; ++round) {
                const int i = round * size + l;
                uint counts[16] = {0};
                uint4 keys, digits;
                if (i < n) {
                    keys = in[i];
                    digits = keys >> 8 & 15u;
                    counts[digits.x]++;
                    counts[digits.y]++;
                    counts[digits.z]++;
                    counts[digits.w]++;
                }
                for (int digit = 0; digit < 16; ++digit) {
                    sums[l] = 0;
                    sums[size + l] = counts[digit];
                    barrier(CLK_LOCAL_MEM_FENCE);
                    for (int step = 1; step < size; step *= 2) {
                        const uint before = sums[size + l - step];
                        barrier(CLK_LOCAL_MEM_FENCE);
                        sums[size + l] += before;
                        barrier(CLK_LOCAL_MEM_FENCE);
                    }
                    counts[digit] = sums[size + l - 1];
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                if (i < n) {
                    out[counts[digits.x]++] = keys.x;
                    out[counts[digits.y]++] = keys.y;
                    out[counts[digits.z]++] = keys.z;
                    out[counts[digits.w]++] = keys.w;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                if (l == size - 1)
                    for (int digit = 0; digit < 16; ++digit) out[digit] += counts[digit];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_GT(program.result().lanes.loops, 0) << program.result().lanes.reason;
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
