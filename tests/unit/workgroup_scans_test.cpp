// Prefix sums and sorting networks in local memory.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// The loop's distances are constants after LLVM has unrolled it, and `id - distance` becomes the lower half of a sum in 64 bits.
constexpr const char* scan = R"(
    kernel void k(global const uint* in, global uint* out) {
        local uint sums[64];
        const int id = get_local_id(0);
        sums[id] = in[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = 1; distance < 64; distance <<= 1) {
            uint sum = sums[id];
            if (id >= distance) sum += sums[id - distance];
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[id] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        out[get_global_id(0)] = sums[id];
    })";

TEST(Scans, InOneArray_HaveLanesThatRun) {
    Compiled program(scan, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    // A loop with lanes whose condition can never hold is not in the code any more. Only numbers are asked, not addresses.
    EXPECT_GE(count(program, "add <16 x i32>"), 6U) << program.optimised();
    EXPECT_EQ(count(program, "icmp ne <16 x ptr"), 0U) << program.optimised();
}

TEST(Scans, AddAllBefore) {
    for (const std::string processor : {"", "haswell", "x86-64-v2"}) {
        if (processor == "haswell" && __builtin_cpu_supports("avx2") == 0)
            continue;
        Compiled program(scan, processor);
        for (const bool specialised : {false, true}) {
            ASSERT_EQ(program.prepare("k", specialised, {64, 1, 1}), "");
            std::vector<uint32_t> in(128), out(128), expected(128);
            for (uint32_t i = 0; i < 128; ++i) {
                in[i] = i * 7 + 3;
                expected[i] = in[i] + (i % 64 == 0 ? 0 : expected[i - 1]);
            }
            program.run({1, {128, 1, 1}, {64, 1, 1}}, Arguments().add(in.data()).add(out.data()));
            EXPECT_EQ(out, expected) << processor;
        }
    }
}

// The lower half of a sum of 64 bits: negative for the first work-items, under conditions that exclude them or not.
TEST(Scans, ReadThroughTheLowerHalvesOfSums) {
    constexpr uint32_t count = 64;
    std::vector<uint32_t> in(count);
    for (uint32_t i = 0; i < count; ++i)
        in[i] = i * i + 5;
    for (const std::string processor : {"", "haswell", "x86-64-v2"}) {
        if (processor == "haswell" && __builtin_cpu_supports("avx2") == 0)
            continue;
        for (const int distance : {0, -1, -5, -16, -40, 3, 50}) {
            Compiled program(R"(
                kernel void k(global const uint* in, global uint* out, uint every) {
                    const ulong id = get_global_id(0);
                    const ulong place = (id + ()" +
                                 std::to_string(static_cast<uint32_t>(distance)) + R"(ul)) & 0xffffffff;
                    uint x = 1;
                    if (id % every == 0 && place < 64) x += in[place];
                    out[id] = x;
                })",
                             processor);
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
            for (const uint32_t every : {1U, 3U}) {
                std::vector<uint32_t> out(count), expected(count, 1);
                for (uint32_t i = 0; i < count; ++i)
                    if (const auto place = i + static_cast<uint32_t>(distance); i % every == 0 && place < count)
                        expected[i] += in[place];
                program.run({1, {count, 1, 1}, {32, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(every));
                EXPECT_EQ(out, expected) << processor << ' ' << distance << ' ' << every;
            }
        }
    }
}

// One work-item after the other waits for branches that nothing predicts: whether it stores depends on what it has loaded.
TEST(Scans, SortingNetworks_HaveLanes) {
    Compiled program(R"(
        kernel void k(global const uint* in, global uint* out) {
            local uint all[512];
            const int id = get_local_id(0);
            all[id] = in[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint size = 2; size <= get_local_size(0); size <<= 1)
                for (uint distance = size >> 1; distance > 0; distance >>= 1) {
                    const uint other = id ^ distance;
                    if (other > id && (all[id] > all[other]) == ((id & size) == 0)) {
                        const uint own = all[id];
                        all[id] = all[other];
                        all[other] = own;
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
            out[get_global_id(0)] = all[id];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
