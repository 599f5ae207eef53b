// `restrict` says that a work-item's accesses of two buffers are of different memory. It holds for one work-item (inliner.h).
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// The values are read again behind a store to another buffer.
std::string source(const std::string& qualifier, const std::string& between) {
    return "#define R " + qualifier + "\n#define BETWEEN " + between + R"(
        kernel void k(global float* R mass, global const float* R volume, global float* R density, global int* R number) {
            const int i = get_global_id(0);
            mass[i] = volume[i] * 2;
            density[i] = volume[i] + 1;
            BETWEEN;
            density[i] += mass[i] * volume[i];
        })";
}

size_t loads(const std::string& qualifier, const std::string& between) {
    Compiled program(source(qualifier, between), processor_with_512_bits);
    EXPECT_EQ(program.prepare("k", false, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    return count(program.optimised(), "load <16 x float>");
}

TEST(Restrict, LoadsEachValueOnce) { EXPECT_LT(loads("restrict", ""), loads("", "")); }

// The values may be another work-item's.
TEST(Restrict, IsForgotten_WhereWorkItemsSeeWritesOfOthers) {
    const std::string barrier = "barrier(CLK_GLOBAL_MEM_FENCE)";
    EXPECT_EQ(loads("restrict", barrier), loads("", barrier));
    EXPECT_EQ(loads("restrict", "*(global volatile int*)number = i"), loads("", "*(global volatile int*)number = i"));
}

TEST(Restrict, BuffersOfNeighbours_AreRight) {
    Compiled program(R"(
        kernel void k(global int* restrict a, global int* restrict b) {
            const int i = get_global_id(0);
            a[i] = i * 3;
            barrier(CLK_GLOBAL_MEM_FENCE);
            b[i] = a[i ^ 1] + i;
            barrier(CLK_GLOBAL_MEM_FENCE);
            a[i] = b[i ^ 2] - a[i];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<int> a(64), b(64), expected(64);
    for (int i = 0; i < 64; ++i) {
        const int other = i ^ 2;
        expected[static_cast<size_t>(i)] = (other ^ 1) * 3 + other - i * 3;
    }
    program.run({1, {64, 1, 1}, {32, 1, 1}}, Arguments().add(a.data()).add(b.data()));
    EXPECT_EQ(a, expected);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
