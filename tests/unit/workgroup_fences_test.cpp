// Memory fences in loops over work-items that become lanes.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

// What mem_fence is in the library of built-in functions, which these tests do not link.
constexpr const char* fence = "#define FENCE __scoped_atomic_thread_fence(__ATOMIC_ACQ_REL, __MEMORY_SCOPE_WRKGRP)\n";

constexpr const char* fences = R"(
    kernel void k(global const float* in, global float* out, local float* tile, int odd) {
        const int id = get_local_id(0);
        tile[id] = in[get_global_id(0)];
        FENCE;
        float sum = tile[id] * 2.0f;
        if (id & odd) {
            tile[id] = sum + 1.0f;
            FENCE;
            sum += tile[id];
        }
        for (int i = 0; i < odd; ++i) {
            tile[id] += sum;
            FENCE;
            sum = sum * 0.5f + tile[id];
        }
        out[get_global_id(0)] = sum;
    })";

TEST(Fences, OfAllLanes_AreOne) {
    Compiled program(std::string(fence) + fences, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_LE(count(program, "fence "), 16U) << program.optimised();
}

TEST(Fences, OfLanes_AreRight) {
    Compiled program(std::string(fence) + fences);
    constexpr int odd = 3;
    std::vector<float> in(200), out(in.size()), expected;
    std::iota(in.begin(), in.end(), 1.0F);
    for (size_t i = 0; i < in.size(); ++i) {
        float tile = in[i], sum = tile * 2;
        if ((i % 50 & odd) != 0) {
            tile = sum + 1;
            sum += tile;
        }
        for (int round = 0; round < odd; ++round) {
            tile += sum;
            sum = sum * 0.5F + tile;
        }
        expected.push_back(sum);
    }
    for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0.0F);
        program.run({1, {in.size(), 1, 1}, {50, 1, 1}},
                    Arguments().add(in.data()).add(out.data()).add_local(50 * sizeof(float)).add(odd));
        EXPECT_EQ(out, expected);
    }
}

// A work-item of such a loop may wait for what another one writes.
TEST(Fences, InLoopsThatLanesLeaveAtDifferentTimes_NeedOneWorkItemAfterTheOther) {
    Compiled program(std::string(fence) + R"(
        kernel void k(global const int* rounds, global int* out) {
            const int id = get_global_id(0);
            int sum = 0;
            for (int i = 0; i < rounds[id]; ++i) {
                sum += out[id];
                FENCE;
                out[id] = sum + i;
            }
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 0);
    EXPECT_NE(program.result().lanes.reason.find("may wait"), std::string::npos) << program.result().lanes.reason;
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
