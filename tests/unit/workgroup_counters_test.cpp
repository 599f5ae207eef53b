// Counters of 32 bits that step by the size of the launch, which has 64.
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// The step between neighbours is known unless a sum wraps around, which one comparison checks: no address is computed for each lane.
TEST(Counters, OfTheSizeOfTheLaunch_AccessRows) {
    for (const std::string type : {"int", "uint"}) {
        Compiled program("kernel void k(global float* a, global const float* b, " + type + " n) { for (" + type +
                             " i = get_global_id(0); i < n; i += get_global_size(0)) a[i] = b[i] * 2; }",
                         processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
        EXPECT_FALSE(has(program, "icmp eq <16 x ptr>")) << type << '\n' << program.optimised();
        EXPECT_FALSE(has(program, "phi <16 x i64>")) << type << '\n' << program.optimised();
    }
}

TEST(Counters, OfTheSizeOfTheLaunch_AreRight) {
    for (const std::string type : {"int", "uint"}) {
        Compiled program("kernel void k(global uint* a, " + type + " n) { for (" + type +
                         " i = get_global_id(0); i < n; i += get_global_size(0)) a[i] += (uint)i * 3 + 1; }");
        for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const uint32_t end : {0U, 1U, 70U, 71U, 1000U}) {
                std::vector<uint32_t> a(1001, 5), expected = a;
                for (uint32_t i = 0; i < end; ++i)
                    expected[i] += i * 3 + 1;
                program.run({1, {70, 1, 1}, {33, 1, 1}}, Arguments().add(a.data()).add(end));
                EXPECT_EQ(a, expected) << type << ' ' << end;
            }
        }
    }
}

// From the highest number of 32 bits on to zero.
TEST(Counters, ThatWrapAround_AreRight) {
    Compiled program(R"(
        kernel void k(global uint* a, uint first, uint rounds) {
            uint i = get_global_id(0) + first;
            for (uint round = 0; round < rounds; ++round, i += get_global_size(0))
                a[i & 0xfff] += (uint)(((ulong)i * 3) >> 31) + 1;
        })");
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        constexpr uint32_t items = 64, rounds = 20;
        for (const uint32_t first : {0U, 0U - 100U, 0U - 640U, 0x7fffff00U}) {
            std::vector<uint32_t> a(4096, 5), expected = a;
            for (uint32_t id = 0; id < items * rounds; ++id) {
                const uint32_t i = first + id;
                expected[i & 0xfff] += static_cast<uint32_t>((uint64_t{i} * 3) >> 31) + 1;
            }
            program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(a.data()).add(first).add(uint32_t{rounds}));
            EXPECT_EQ(a, expected) << first;
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
