// Instructions without a vector form under a mask: a loop over the active lanes (vectorizer/code/active_lanes.cpp).

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <utility>

namespace polder::compiler::workgroup::test {
namespace {

TEST(ActiveLanes, AreALoopAroundOneInstruction) {
    Compiled program(R"(
        kernel void k(global uint* sums, global const uint* in, uint limit) {
            const uint x = in[get_global_id(0)];
            if (x % 100 < limit) atomic_add(&sums[x & 15], x);
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_GT(program.result().lanes.loops, 0u);
    EXPECT_EQ(count(program, "atomicrmw add"), 1u) << program.optimised();
}

// Where a register can be compressed, atomic instructions do not wait for stores of what the lanes need.
TEST(ActiveLanes, HaveValuesInRegisters_WhereTheProcessorCompressesThem) {
    for (const auto& [processor, compresses] :
         {std::pair{"sapphirerapids", true}, {"znver4", true}, {"haswell", false}}) {
        Compiled program(R"(
            kernel void k(global uint* sums, global const uint* in, uint limit) {
                const uint x = in[get_global_id(0)];
                if (x % 100 < limit) atomic_inc(&sums[x & 15]);
            })",
                         processor);
        ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
        EXPECT_EQ(count(program, "atomicrmw "), 1u) << program.optimised();
        EXPECT_EQ(has(program, "@llvm.experimental.vector.compress"), compresses) << program.optimised();
        EXPECT_EQ(has(program, "store <"), !compresses) << program.optimised();
    }
}

// Addresses that follow from a vector of indices, from ids and from a loaded pointer; values of 32 and 64 bits that all lanes share, that differ, and
// that have a constant step; results that are used and that are not.
TEST(ActiveLanes, HaveTheirOwnOperandsAndResults) {
    constexpr uint32_t n = 192, places = 16;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
            kernel void k(global uint* sums, global ulong* wide, global uint* out, global const uint* in, uint limit, uint shared) {
                const uint i = get_global_id(0), x = in[i];
                uint old = 7;
                if (x < limit) {
                    atomic_add(&sums[(x * 5 + shared) & 15], 2 * i + 1);
                    __sync_fetch_and_add(&wide[x >> 4 & 15], (ulong)x << 20);
                    old = atomic_xchg(&out[192 + i], i ^ 5);
                    old += atomic_cmpxchg(&out[384 + (i & ~3u)], x, i);
                    atomic_max(&out[576 + shared], x);
                    atomic_sub(&((x & 1) ? sums : out + 580)[shared], 3);
                }
                out[i] = old;
            })",
                         processor);
        for (const bool specialised : {false, true}) {
            ASSERT_EQ(
                program.prepare("k", specialised, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible),
                "");
            EXPECT_GT(program.result().lanes.loops, 0u) << processor;
            for (const uint32_t limit : {0U, 1U, 40U, 189U, 192U}) {
                constexpr uint32_t shared = 3;
                std::vector<uint32_t> in(n), sums(places), out(n * 3 + 16, 1), expected_sums(places);
                std::vector<uint64_t> wide(places), expected_wide(places);
                for (uint32_t i = 0; i < n; ++i)
                    in[i] = i * 37 % n;
                std::vector<uint32_t> expected = out;
                expected[n * 3 + shared] = out[n * 3 + shared] = 2;
                for (uint32_t i = 0; i < n; ++i) {
                    const uint32_t x = in[i];
                    uint32_t old = 7;
                    if (x < limit) {
                        expected_sums[(x * 5 + shared) & 15] += 2 * i + 1;
                        expected_wide[x >> 4 & 15] += uint64_t{x} << 20;
                        old = std::exchange(expected[n + i], i ^ 5);
                        uint32_t& compared = expected[2 * n + (i & ~3U)];
                        old += compared;
                        compared = compared == x ? i : compared;
                        expected[n * 3 + shared] = std::max(expected[n * 3 + shared], x);
                        ((x & 1) != 0 ? expected_sums[shared] : expected[580 + shared]) -= 3;
                    }
                    expected[i] = old;
                }
                program.run({1, {n, 1, 1}, {64, 1, 1}}, Arguments()
                                                            .add(sums.data())
                                                            .add(wide.data())
                                                            .add(out.data())
                                                            .add(in.data())
                                                            .add(limit)
                                                            .add(shared));
                EXPECT_EQ(out, expected) << processor << " limit " << limit;
                EXPECT_EQ(sums, expected_sums) << processor << " limit " << limit;
                EXPECT_EQ(wide, expected_wide) << processor << " limit " << limit;
            }
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
