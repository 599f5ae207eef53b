// Values that live across barriers, and loads before and in the loops over work-items.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

using Ends = WorkGroupOptions::Ends;

// A number that all work-items load between two barriers, and use behind the second one.
constexpr const char* handed_on = R"(
    kernel void k(global int* out, global const int* in, local int* seed) {
        int id = get_local_id(0), sum = 0;
        for (int round = 0; round < 3; ++round) {
            if (id == round + 2) seed[0] = in[get_group_id(0) * 3 + round];
            barrier(CLK_LOCAL_MEM_FENCE);
            int its = seed[0];
            sum = sum * 3 + in[id] * its;
            barrier(CLK_LOCAL_MEM_FENCE);
            sum += its;
        }
        out[get_global_id(0)] = sum;
    })";

TEST(Results, NumbersLoadedByAllWorkItems_LeaveLoopsTheirLanes) {
    for (uint64_t local : {16, 37, 64}) {
        Compiled program(handed_on);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
        const uint64_t groups = 5;
        std::vector<int> in(std::max<uint64_t>(local, 3 * groups)), out(groups * local), expected(out.size());
        std::iota(in.begin(), in.end(), 3);
        for (uint64_t group = 0; group < groups; ++group)
            for (uint64_t id = 0; id < local; ++id) {
                int& sum = expected[group * local + id];
                for (uint64_t round = 0; round < 3; ++round) {
                    const int its = in[group * 3 + round];
                    sum = sum * 3 + in[id] * its + its;
                }
            }
        program.run({1, {groups * local, 1, 1}, {local, 1, 1}},
                    Arguments().add(out.data()).add(in.data()).add_local(64));
        EXPECT_EQ(out, expected) << local;
    }
}

// Some work-items return before the others' next barrier.
TEST(Results, LoopsThatSomeWorkItemsReturnFrom_HaveLanes) {
    Compiled program(R"(
        kernel void k(global int* out, int n, local int* tile) {
            int id = get_local_id(0);
            if (get_global_id(0) >= n) return;
            tile[id] = out[get_global_id(0)] + id;
            barrier(CLK_LOCAL_MEM_FENCE);
            out[get_global_id(0)] = tile[id] * 3;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    for (int n : {0, 5, 64, 70, 128}) {
        std::vector<int> out(128), expected;
        std::iota(out.begin(), out.end(), 1);
        expected = out;
        for (int i = 0; i < n; ++i)
            expected[static_cast<size_t>(i)] = (expected[static_cast<size_t>(i)] + i % 64) * 3;
        program.run({1, {128, 1, 1}, {64, 1, 1}}, Arguments().add(out.data()).add(n).add_local(256));
        EXPECT_EQ(out, expected) << n;
    }
}

// LLVM would compute the row's number on both sides of the branch, and join it behind them.
TEST(Results, RowsOfALoopAroundBarriers_AreTheSameForAllWorkItems) {
    Compiled program(R"(
        kernel void k(global const int* m, uint width, uint height, global int* out, local int* part) {
            for (uint y = get_group_id(0); y < height; y += get_num_groups(0)) {
                int sum = 0;
                for (uint x = get_local_id(0); x < width; x += get_local_size(0)) sum += m[y * width + x];
                part[get_local_id(0)] = sum;
                for (uint stride = get_local_size(0) / 2; stride > 0; stride /= 2) {
                    barrier(CLK_LOCAL_MEM_FENCE);
                    if (get_local_id(0) < stride) part[get_local_id(0)] += part[get_local_id(0) + stride];
                }
                if (get_local_id(0) == 0) out[y] = part[0];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_EQ(program.result().scratch_bytes_per_work_item, 0);
    constexpr uint32_t width = 100, height = 7;
    std::vector<int> m(width * height), out(height), expected(height);
    std::iota(m.begin(), m.end(), -40);
    for (uint32_t y = 0; y < height; ++y)
        expected[y] = std::accumulate(m.begin() + y * width, m.begin() + (y + 1) * width, 0);
    program.run({1, {96, 1, 1}, {32, 1, 1}},
                Arguments().add(m.data()).add(width).add(height).add(out.data()).add_local(128));
    EXPECT_EQ(out, expected);
}

// Pairs that are `stride` apart: neighbours for 16 lanes or more, and apart for fewer.
TEST(Results, PairsOfASortingNetwork_AreLoadedTogetherWhereTheyAreNeighbours) {
    Compiled program(R"(
        kernel void k(global int* a, uint stride) {
            uint id = get_global_id(0), at = 2 * id - (id & (stride - 1));
            int low = a[at], high = a[at + stride];
            a[at] = min(low, high);
            a[at + stride] = max(low, high);
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "together")) << program.optimised();
    for (uint32_t stride = 1; stride <= 64; stride *= 2) {
        std::vector<int> a(128), expected;
        for (uint32_t i = 0; i < a.size(); ++i)
            a[i] = static_cast<int>(i * 37 % 128);
        expected = a;
        for (uint32_t i = 0; i < a.size(); ++i)
            if ((i & stride) == 0 && expected[i] > expected[i + stride])
                std::swap(expected[i], expected[i + stride]);
        program.run({1, {64, 1, 1}, {64, 1, 1}}, Arguments().add(a.data()).add(stride));
        EXPECT_EQ(a, expected) << stride;
    }
}

// A polynomial with `numbers` elements of a tile for each work-item.
std::string product(unsigned numbers) {
    return "kernel void k(global float* out, global const float* in, local float* tile) {\n"
           "    int x = get_local_id(0), y = get_local_id(1), id = x + 16 * y;\n"
           "    for (int i = id; i < " +
           std::to_string(numbers) +
           "; i += 64) tile[i] = in[i];\n"
           "    barrier(CLK_LOCAL_MEM_FENCE);\n"
           "    float sum = in[id];\n"
           "    _Pragma(\"unroll\") for (int i = 0; i < " +
           std::to_string(numbers) + "; ++i) sum = sum * 0.5f + tile[i];\n" + "    out[id] = sum;\n}\n";
}

// LLVM moves the elements before the loop over rows; those that do not fit into registers are loaded in the loop.
TEST(Results, ManyElementsOfATile_AreLoadedInTheLoopOverRows) {
    for (const auto& [numbers, stay] : {std::pair{8U, true}, std::pair{40U, false}}) {
        Compiled program(product(numbers), processor_with_512_bits);
        ASSERT_EQ(program.prepare("k", true, {16, 4, 1}, Ends::whole), "");
        const std::string& text = program.optimised();
        const size_t last_load = text.rfind("= load float, ptr"), last_row = text.rfind("phi i64");
        ASSERT_NE(last_load, std::string::npos) << text;
        ASSERT_NE(last_row, std::string::npos) << text;
        EXPECT_EQ(last_load < last_row, stay) << text;
    }
}

TEST(Results, ElementsOfATile_AreRight) {
    for (unsigned numbers : {8U, 40U, 100U}) {
        Compiled program(product(numbers));
        ASSERT_EQ(program.prepare("k", true, {16, 4, 1}, Ends::whole), "");
        std::vector<float> in(std::max(numbers, 64U)), out(64), expected(64);
        std::iota(in.begin(), in.end(), 1.0F);
        for (size_t id = 0; id < out.size(); ++id) {
            expected[id] = in[id];
            for (unsigned i = 0; i < numbers; ++i)
                expected[id] = expected[id] * 0.5F + in[i];
        }
        program.run({2, {16, 4, 1}, {16, 4, 1}}, Arguments().add(out.data()).add(in.data()).add_local(4 * numbers));
        for (size_t id = 0; id < out.size(); ++id)
            EXPECT_NEAR(out[id], expected[id], 1e-3F) << numbers << " " << id;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
