// Kernels with sub-groups whose work-items also run in other loops, between barriers.

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// Each work-group adds one row: lanes of sub-groups add its columns, then each sub-group's sum is added.
constexpr const char* sums_of_rows = R"(
    float __attribute__((convergent)) _polder_sub_group_reduce_add_float(float);
    kernel void k(global const float* in, global float* out, int width) {
        local float sums[16];
        const int id = get_local_id(0), row = get_group_id(0);
        float sum = 0;
        for (int column = id; column < width; column += get_local_size(0)) sum += in[row * width + column];
        sum = _polder_sub_group_reduce_add_float(sum);
        if (id < 16) sums[id] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id % 8 == 0) sums[id / 8] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id == 0)
            for (int i = 0; i < 16; ++i) out[row] += sums[i];
    })";

TEST(SubGroupLanes, StayVectorsWhereOtherLoopsAreLanesToo) {
    Compiled program(sums_of_rows, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}), "");
    // The sum of each lane would be a number of its own, had the lanes been taken for vectors of the kernel and split.
    EXPECT_EQ(count(program, "phi float [ 0.000000e+00"), 0U) << program.optimised();
}

TEST(SubGroupLanes, AddRows) {
    constexpr int width = 150, groups = 3;
    std::vector<float> in(width * groups), out(groups), expected(groups);
    std::iota(in.begin(), in.end(), 1.0F);
    for (int row = 0; row < groups; ++row)
        expected[static_cast<size_t>(row)] =
            std::accumulate(in.begin() + ptrdiff_t{row} * width, in.begin() + ptrdiff_t{row + 1} * width, 0.0F);
    for (const std::string processor : {"", "haswell", "x86-64-v2"}) {
        if (processor == "haswell" && __builtin_cpu_supports("avx2") == 0)
            continue;
        Compiled program(sums_of_rows, processor);
        for (const bool is_specialised : {false, true}) {
            ASSERT_EQ(program.prepare("k", is_specialised, {64, 1, 1}), "");
            std::ranges::fill(out, 0.0F);
            program.run({1, {64 * groups, 1, 1}, {64, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(width));
            EXPECT_EQ(out, expected) << processor;
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
