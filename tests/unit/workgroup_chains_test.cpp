// Several vectors of lanes at once, where one waits for itself, is on many pages, or shares what is loaded.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* logistic = R"(
    kernel void k(global float* a, int rounds, int n) {
        int i = get_global_id(0);
        if (i >= n) return;
        float v = a[i];
        for (int r = 0; r < rounds; ++r) v = 3.5f * v * (1.0f - v);
        a[i] = v;
    })";

TEST(Chains, LoopWhoseIterationsWaitForEachOther_RunsSeveralVectorsAtOnce) {
    Compiled program(logistic, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "fmul <64 x float>")) << program.optimised();
    EXPECT_TRUE(has(program, "fmul <16 x float>")) << program.optimised();
    EXPECT_EQ(program.result().lanes.width, 16u);
    EXPECT_EQ(program.result().lanes.loops, 1u);
    // For groups of a known size: as many lanes as divide it, and no code for a rest.
    ASSERT_EQ(program.prepare("k", true, {96, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_TRUE(has(program, "fmul <32 x float>")) << program.optimised();
    EXPECT_FALSE(has(program, "fmul <16 x float>")) << program.optimised();
}

// The first chain takes 1.7 times as long as its instructions; in the second, numbers change between 32 and 64 bits.
TEST(Chains, LongerThanTheirWork_AreTwo) {
    const auto has_two = [](const std::string& round) {
        Compiled program(
            "kernel void k(global int* a, int rounds) { int i = get_global_id(0); uint x = a[i], sum = 0; int y = x;"
            "for (int r = 0; r < rounds; ++r) { " +
                round + " } a[i] = sum + y; }",
            processor_with_512_bits);
        EXPECT_EQ(program.prepare("k"), "");
        return has(program, "<32 x i32>");
    };
    EXPECT_TRUE(has_two("x ^= x << 13; x ^= x >> 17; x ^= x << 5; sum += x;"));
    EXPECT_TRUE(has_two("y -= (int)(((long)y * 655) >> 16); y = (int)(((long)y * 64880) >> 16);"));
    EXPECT_FALSE(has_two("sum += (r ^ i) * (r - i) + (r & i) * 3 + (r | i);"));
}

TEST(Chains, WorkItemsThatAreLeftOver_AreRight) {
    Compiled program(logistic);
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int n = 1001, rounds = 9;
    std::vector<float> start(n);
    for (int i = 0; i < n; ++i)
        start[i] = 0.1F + 0.0005F * static_cast<float>(i);
    std::vector<float> expected = start;
    for (float& v : expected)
        for (int r = 0; r < rounds; ++r)
            v = 3.5F * v * (1.0F - v);
    for (uint64_t local : {1, 7, 16, 17, 63, 64, 100, 127, 300, 1001}) {
        std::vector<float> a = start;
        program.run({1, {1040, 1, 1}, {local, 1, 1}}, Arguments().add(a.data()).add(rounds).add(n));
        for (int i = 0; i < n; ++i)
            ASSERT_FLOAT_EQ(a[i], expected[i]) << i << " in groups of " << local;
    }
}

TEST(Chains, LoopsThatKeepTheProcessorBusy_RunOneVector) {
    Compiled program("kernel void k(global float* a, int rounds) { int i = get_global_id(0); float v = a[i];"
                     "for (int r = 0; r < rounds; ++r) { float t = i * a[r]; v += t * t * t * t + t * t * t / 3 + t; }"
                     "a[i] = v; }",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has(program, "<32 x float>") || has(program, "<64 x float>")) << program.optimised();
}

// A loop that lanes leave at different times waits for its last lane.
TEST(Chains, OfLanesThatLeaveAtDifferentTimes_AreTwo) {
    const std::string source = R"(
        kernel void k(global int* out, double x0, double s, int n) {
            double cx = x0 + get_global_id(0) * s, cy = s, x = 0, y = 0;
            int i = 0;
            while (i < n && x * x + y * y <= 4.0) { double t = x * x - y * y + cx; y = 2 * x * y + cy; x = t; i++; }
            out[get_global_id(0)] = i;
        })";
    struct Expected {
        const char *processor, *one, *two;
        bool has_two;
    };
    for (const Expected& expected : {Expected{"sapphirerapids", "<8 x double>", "<16 x double>", true},
                                     {"znver4", "<8 x double>", "<16 x double>", true},
                                     {processor_with_256_bits, "<4 x double>", "<8 x double>", true},
                                     {"x86-64-v2", "<2 x double>", "<4 x double>", true}}) {
        Compiled program(source, expected.processor);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(has(program, expected.two), expected.has_two) << program.optimised();
        EXPECT_TRUE(expected.has_two || has(program, expected.one)) << program.optimised();
    }
    Compiled program(source);
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int items = 100, n = 60;
    const double x0 = -2, s = 0.027;
    std::vector<int> expected(items);
    for (int item = 0; item < items; ++item) {
        const double cx = x0 + item * s;
        double x = 0, y = 0;
        while (expected[item] < n && x * x + y * y <= 4.0) {
            const double t = x * x - y * y + cx;
            y = 2 * x * y + s;
            x = t;
            ++expected[item];
        }
    }
    for (const uint64_t local : {1, 16, 50, 100}) {
        std::vector<int> out(items);
        program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(out.data()).add(x0).add(s).add(n));
        EXPECT_EQ(out, expected) << local;
    }
}

// Rows of numbers, each on pages of its own.
std::string scaled_rows(int rows, const std::string& length = "4096") {
    std::string body;
    for (int row = 0; row < rows; ++row) {
        const std::string place = "[" + std::to_string(row) + " * " + length + " + i]";
        body += "    out" + place + " = 2 * in" + place + ";\n";
    }
    return "kernel void k(global const float* restrict in, global float* restrict out) {\n"
           "    size_t i = get_global_id(0);\n" +
           body + "}";
}

TEST(Chains, AreManyOnManyPages) {
    for (const auto& [rows, type] :
         {std::pair{4, "fmul <16 x float>"}, {20, "fmul <64 x float>"}, {200, "fmul <64 x float>"}}) {
        Compiled code(scaled_rows(rows), processor_with_512_bits);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_TRUE(has(code, type)) << code.optimised();
    }
    // Long code is compiled for fewer vectors.
    Compiled code(scaled_rows(330), processor_with_512_bits);
    ASSERT_EQ(code.prepare("k"), "");
    EXPECT_FALSE(has(code, "<64 x float>")) << code.optimised();
    constexpr size_t rows = 20, row_items = 4096;
    Compiled program(scaled_rows(rows));
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<float> in(rows * row_items);
    std::iota(in.begin(), in.end(), 1.0F);
    for (const uint64_t items : {1, 15, 16, 63, 64, 65, 200}) {
        std::vector<float> out(in.size()), expected(in.size());
        for (size_t row = 0; row < rows; ++row)
            for (size_t i = 0; i < items; ++i)
                expected[row * row_items + i] = 2 * in[row * row_items + i];
        program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(in.data()).add(out.data()));
        ASSERT_EQ(out, expected) << items;
    }
}

// What the processor fetches in advance stays in the cache.
TEST(Chains, OnManyPagesInManySetsOfTheCache_AreOne) {
    for (const char* length : {"13824", "8448", "10240"}) {
        Compiled code(scaled_rows(100, length), processor_with_512_bits);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_TRUE(has(code, "fmul <16 x float>")) << length;
        EXPECT_FALSE(has(code, "<64 x float>")) << length;
    }
}

TEST(Chains, OnManyPagesInLoopsWithMinimums_AreMany) {
    for (const char* function : {"fmax", "fmin", "max"}) {
        Compiled code("kernel void k(global double* a, double b) { size_t i = get_global_id(0);"
                      " for (int row = 0; row < 40; ++row) a[row * 4096 + i] = " +
                          std::string{function} + "(a[row * 4096 + i], b) * b; }",
                      processor_with_512_bits);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_TRUE(has(code, "fmul <64 x double>")) << function << code.optimised();
    }
}

// Where a look-up of a page costs little, no more vectors than have their values in registers.
TEST(Chains, OnManyPages_FitTheRegisters) {
    std::string loads, stores;
    for (int row = 0; row < 24; ++row) {
        const std::string number = std::to_string(row);
        loads += "    float x" + number + " = in[" + number + " * 4096 + i];\n";
        stores += "    out[" + number + " * 4096 + i] = x" + number + " * x" + std::to_string(23 - row) + ";\n";
    }
    const std::string source =
        "kernel void k(global const float* in, global float* out) {\n    size_t i = get_global_id(0);\n" + loads +
        stores + "}";
    // What several vectors leave over has one vector in any case.
    for (const auto& [processor, has_several] : {std::pair{"sapphirerapids", false}, {"znver4", true}}) {
        Compiled code(source, processor);
        ASSERT_EQ(code.prepare("k"), "");
        EXPECT_TRUE(has(code, "fmul <16 x float>")) << processor << code.optimised();
        EXPECT_EQ(has(code, "fmul <64 x float>"), has_several) << processor << code.optimised();
    }
    Compiled few(scaled_rows(24), "sapphirerapids");
    ASSERT_EQ(few.prepare("k"), "");
    EXPECT_TRUE(has(few, "fmul <64 x float>")) << few.optimised();
}

// A loop that goes on by the size of the launch reads two lines of memory that are side by side: else the rows are walked along twice as often.
TEST(Chains, OfStepsBySizeOfLaunch_AreTwo) {
    const std::string source = R"(
    kernel void k(global const double* restrict a, global const double* restrict b, global double* restrict sums, long n) {
        double sum = 0;
        for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) sum += a[i] * b[i];
        sums[get_global_id(0)] = sum;
    })";
    Compiled code(source, processor_with_512_bits);
    ASSERT_EQ(code.prepare("k"), "");
    EXPECT_TRUE(has(code, "fadd <16 x double>") || has(code, "<16 x double> @llvm.fmuladd")) << code.optimised();
    Compiled program(source);
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<double> a(1000), b(1000);
    std::iota(a.begin(), a.end(), 1.0);
    std::iota(b.begin(), b.end(), -300.0);
    for (const uint64_t items : {1, 7, 8, 16, 17, 40, 64}) {
        for (const int64_t n : {0, 5, 16, 100, 999}) {
            std::vector<double> sums(items), expected(items);
            for (int64_t i = 0; i < n; ++i)
                expected[static_cast<uint64_t>(i) % items] += a[i] * b[i];
            program.run({1, {items, 1, 1}, {items, 1, 1}},
                        Arguments().add(a.data()).add(b.data()).add(sums.data()).add(n));
            ASSERT_EQ(sums, expected) << items << " items, " << n;
        }
    }
}

// A product of matrices by rows of float4: 16 instructions, for which four vectors are loaded and 16 numbers that all lanes share.
TEST(Chains, ThatShareWhatIsLoaded_AreTwoWhereLoadsAreScarce) {
    const std::string source = R"(
        #define ADD(part) sums[i] = __builtin_elementwise_fma((float4)factors.part, column.part, sums[i]);
        kernel void k(global const float4* a, global const float4* b, global float4* c, int n) {
            const int x = get_global_id(0), rows = 4 * get_global_id(1);
            float4 sums[4] = {0, 0, 0, 0};
            for (int k = 0; k < n; ++k) {
                struct { float4 x, y, z, w; } column = {b[4 * k * n + x], b[(4 * k + 1) * n + x], b[(4 * k + 2) * n + x], b[(4 * k + 3) * n + x]};
                for (int i = 0; i < 4; ++i) {
                    const float4 factors = a[(rows + i) * n + k];
                    ADD(x) ADD(y) ADD(z) ADD(w)
                }
            }
            for (int i = 0; i < 4; ++i) c[(rows + i) * n + x] = sums[i];
        })";
    for (const auto& [processor, are_two] : {std::pair{"sapphirerapids", true}, {"znver4", false}}) {
        Compiled code(source, processor);
        ASSERT_EQ(code.prepare("k", true, {16, 4, 1}, WorkGroupOptions::Ends::whole, Lanes::with_whole_vectors), "");
        EXPECT_EQ(has(code, "call <32 x float> @llvm.fma"), are_two) << processor << code.optimised();
        EXPECT_EQ(has(code, "call <16 x float> @llvm.fma"), !are_two) << processor;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
