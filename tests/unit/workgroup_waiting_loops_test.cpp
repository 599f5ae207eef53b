// Several vectors of lanes at once in loops that wait for divisions, gathers, sums under masks, rows of memory, or private arrays.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

bool has_several(const std::string& source, const std::string& vectors = "<32 x float>") {
    Compiled code(source, processor_with_512_bits);
    EXPECT_EQ(code.prepare("k"), "");
    std::string twice = vectors;
    const size_t end = twice.find(' ');
    twice.replace(1, end - 1, std::to_string(2 * std::stoul(vectors.substr(1))));
    return has(code, vectors) || has(code, twice);
}

std::string kernel_with_loop(const std::string& loop) {
    return "kernel void k(global float* a, global const float* b, int n, int size) { int i = get_global_id(0); float v "
           "= a[i]; " +
           loop + " a[i] = v; }";
}

TEST(WaitingLoops, OfDivisionsAndRoots_RunSeveralVectors) {
    const std::string source = "kernel void k(global double* a, int n) { int i = get_global_id(0); double v = a[i];"
                               "for (int r = 0; r < n; ++r) v = 1 / (v + sqrt(1 + v * v)); a[i] = v; }";
    EXPECT_TRUE(has_several(source, "<16 x double>"));
}

TEST(WaitingLoops, OfMathFunctions_RunSeveralVectors) {
    EXPECT_TRUE(has_several(kernel_with_loop("for (int r = 0; r < n; ++r) v = sin(v) + b[r];")));
}

TEST(WaitingLoops, OfGathersThatFollowEachOther_RunSeveralVectors) {
    EXPECT_TRUE(has_several(kernel_with_loop("for (int r = 0; r < n; ++r) v = b[(int)v];")));
}

TEST(WaitingLoops, OfSumsUnderMasks_RunSeveralVectors) {
    EXPECT_TRUE(has_several(
        kernel_with_loop("for (int r = 0; r < n; ++r) { int at = i - r; if (at >= 0) v += b[r] * b[at]; }")));
}

// Two vectors use each page and the lines beside each other.
TEST(WaitingLoops, OnOtherPagesInEachIteration_RunSeveralVectors) {
    EXPECT_TRUE(has_several(kernel_with_loop("for (int r = 0; r < n; ++r) a[r * size + i] = b[r * size + i] * 2;")));
}

// What few lanes execute is skipped less often for more lanes.
TEST(WaitingLoops, OnOtherPagesBesideRareCode_RunOneVector) {
    EXPECT_FALSE(has_several(R"(
        kernel void k(global const float* in, global float* out, int n, int rows) {
            const int row = get_global_id(0);
            float best[4] = {0, 0, 0, 0};
            for (int i = 0; i < n; ++i) {
                const float value = in[i * rows + row];
                if (value > best[3]) {
                    best[3] = value;
                    for (int j = 3; j > 0 && best[j] > best[j - 1]; --j) {
                        const float other = best[j];
                        best[j] = best[j - 1];
                        best[j - 1] = other;
                    }
                }
            }
            for (int j = 0; j < 4; ++j) out[j * rows + row] = best[j];
        })"));
}

// Several vectors share the divisions.
TEST(WaitingLoops, WithDivisionsThatLanesShare_RunSeveralVectors) {
    const auto sums_of = [](const std::string& weight) {
        return "kernel void k(global const float4* b, int n, global float* a) { int i = get_global_id(0); float x = "
               "a[i], v = 0;"
               "for (int r = 0; r < n; ++r) { const float4 s = b[r]; const float w = " +
               weight +
               ", d = sqrt((x - s.x) * (x - s.x) + s.y);"
               "v += (1 - d * w) * (d < s.z ? 38.0f : 0.0f) + s.w * (d < s.z ? 1.0f : 1 - d) * (d < 2 ? 1.0f : 0.5f); }"
               "a[i] = v; }";
    };
    EXPECT_TRUE(has_several(sums_of("1 / s.z")));
    EXPECT_FALSE(has_several(sums_of("s.z")));
}

// The elements of each lane's row are loaded once, before the loop, so that only the sum is waited for: eight lanes of doubles in each vector. Where the row
// is far from the next lane's, as before.
TEST(WaitingLoops, OfSumsOverAShortRow_RunSeveralVectors) {
    const auto source = [](const std::string& row, const std::string& loops) {
        return "kernel void k(global const double* restrict a, global const double* restrict b, global double* "
               "restrict out, global const double* restrict in) { int i = get_global_id(0);"
               "for (int r = 0; r < 12; ++r) { double sum = 0; " +
               loops + " sum += a[12 * r + j] * b[12 * j + k] * in[" + row + " * i + k]; out[12 * i + r] = sum; } }";
    };
    const std::string unrolled = "for (int j = 0; j < 12; ++j) for (int k = 0; k < 12; ++k)";
    EXPECT_TRUE(has_several(source("12", unrolled), "<16 x double>"));
    EXPECT_FALSE(has_several(source("1200", unrolled), "<16 x double>"));
}

// The copy of the loop for sums that other work-items may change does not count.
TEST(WaitingLoops, OfSumsInABuffer_RunSeveralVectors) {
    EXPECT_TRUE(has_several("kernel void k(global float* out, global const float* x, int n) { int i = get_global_id(0);"
                            "for (int r = 0; r < n; ++r) out[i] += x[r]; }"));
}

// Each of the lanes stays one after the other.
TEST(WaitingLoops, OfAtomicOperations_RunOneVector) {
    EXPECT_FALSE(has_several("kernel void k(global const uint* in, global uint* out, uint n) {"
                             "local uint bins[256]; bins[get_local_id(0)] = 0; barrier(CLK_LOCAL_MEM_FENCE);"
                             "for (uint i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&bins[in[i]]);"
                             "barrier(CLK_LOCAL_MEM_FENCE); out[get_global_id(0)] = bins[get_local_id(0)]; }",
                             "<32 x i32>"));
}

// More lanes would use more lines of the cache at once.
TEST(WaitingLoops, InRowsOfTheLanes_RunOneVector) {
    EXPECT_FALSE(
        has_several(kernel_with_loop("for (int r = 1; r < n; ++r) a[i * 256 + r] = v = b[i * 256 + r] / (1 + v);")));
}

// Two vectors' sums would not fit the registers.
TEST(WaitingLoops, WhoseValuesFillTheRegisters_RunOneVector) {
    std::string variables, sums;
    for (int k = 0; k < 20; ++k) {
        const std::string x = "x" + std::to_string(k);
        variables += "float " + x + " = b[i + " + std::to_string(k) + "];";
        sums += x + " += v * b[r + " + std::to_string(k) + "];";
    }
    std::string all;
    for (int k = 0; k < 20; ++k)
        all += " + x" + std::to_string(k);
    EXPECT_FALSE(
        has_several(kernel_with_loop(variables + "for (int r = 0; r < n; ++r) {" + sums + "} v = 0" + all + ";")));
}

constexpr const char* generator = R"(
    kernel void k(global const uint* in, global uint* out, int rounds) {
        uint state[17];
        const int i = get_global_id(0);
        uint x = in[i];
        for (int j = 0; j < 17; ++j) state[j] = x = 1664525u * x + 1013904223u;
        int oldest = 0;
        for (int r = 0; r < rounds; ++r) {
            int other = oldest + 5;
            if (other >= 17) other -= 17;
            x = rotate(x * 5, 7u) + (state[oldest] ^ state[other]);
            state[oldest] = x;
            if (++oldest == 17) oldest = 0;
        }
        for (int j = 0; j < 17; ++j) x = x * 31 + state[j];
        out[i] = x;
    })";

std::vector<uint32_t> generated(const std::vector<uint32_t>& in, int rounds) {
    constexpr int size = 17;
    std::vector<uint32_t> out;
    for (uint32_t x : in) {
        uint32_t state[size];
        for (uint32_t& one : state)
            one = x = 1664525U * x + 1013904223U;
        for (int r = 0; r < rounds; ++r) {
            const uint32_t product = x * 5;
            x = (product << 7 | product >> 25) + (state[r % size] ^ state[(r + 5) % size]);
            state[r % size] = x;
        }
        for (const uint32_t one : state)
            x = x * 31 + one;
        out.push_back(x);
    }
    return out;
}

TEST(WaitingLoops, WithPrivateArrays_RunSeveralVectors) {
    EXPECT_TRUE(has_several(generator, "<32 x i32>"));
    constexpr int rounds = 100;
    std::vector<uint32_t> in(333);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<uint32_t>(i * i + 7);
    const std::vector<uint32_t> expected = generated(in, rounds);
    Compiled program(generator);
    ASSERT_EQ(program.prepare("k"), "");
    for (const uint64_t local : {1, 9, 37, 111, 333}) {
        std::vector<uint32_t> out(in.size());
        program.run({1, {in.size(), 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(rounds));
        EXPECT_EQ(out, expected) << "in groups of " << local;
    }
}

// Each lane has an index of its own, in loops that lanes leave at different times.
TEST(WaitingLoops, WithPrivateArraysAtPlacesOfTheLanes_AreRight) {
    Compiled program(R"(
        kernel void k(global const uint* in, global uint* out, uint rounds) {
            uint counts[8] = {0};
            const int i = get_global_id(0);
            uint x = in[i];
            for (uint r = 0; r < rounds + i % 5; ++r) { x = 1664525u * x + 1013904223u; x ^= counts[x >> 29] += r + 1; }
            for (int j = 0; j < 8; ++j) x = x * 31 + counts[j];
            out[i] = x;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr uint32_t rounds = 50;
    std::vector<uint32_t> in(200), expected(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        uint32_t x = in[i] = static_cast<uint32_t>(3 * i + 1), counts[8] = {};
        for (uint32_t r = 0; r < rounds + i % 5; ++r) {
            x = 1664525U * x + 1013904223U;
            const uint32_t place = x >> 29;
            x ^= counts[place] += r + 1;
        }
        for (const uint32_t count : counts)
            x = x * 31 + count;
        expected[i] = x;
    }
    for (const uint64_t local : {1, 20, 50, 100, 200}) {
        std::vector<uint32_t> out(in.size());
        program.run({1, {in.size(), 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(rounds));
        EXPECT_EQ(out, expected) << "in groups of " << local;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
