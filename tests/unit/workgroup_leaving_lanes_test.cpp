// Loops that lanes leave one by one, where the processor has no registers for masks: what changes only when a lane leaves.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

const std::string search = R"(
    kernel void k(global const int* keys, global const int* wanted, global int* places, int n) {
        const int i = get_global_id(0);
        for (int j = 0; j < n; ++j)
            if (keys[j] == wanted[i]) {
                places[i] = j;
                return;
            }
        places[i] = -1;
    })";

#if defined(__x86_64__)
constexpr std::array vector_processors{"haswell", "x86-64-v2"};
#else
constexpr std::array<const char*, 0> vector_processors{};
#endif

bool has_masks_for_leaving_only(const std::string& source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    return has(program, "lanes.leaving");
}

TEST(LeavingLanes, OfSearches_KeepTheirMasksWhereNoneLeaves) {
    for (const char* processor : vector_processors)
        EXPECT_TRUE(has_masks_for_leaving_only(search, processor)) << processor;
    EXPECT_TRUE(has_masks_for_leaving_only(search, processor_with_512_bits));
}

// While lanes wait for what they carry, mask registers cost nothing.
TEST(LeavingLanes, ThatCarryValues_AreAsTheyWereWithMaskRegisters) {
    const std::string steps = R"(
        kernel void k(global const float2* in, global int* out) {
            float2 z = in[get_global_id(0)];
            int j = 0;
            for (; j < 200; ++j) {
                const float2 square = z * z;
                if (square.x + square.y > 4.0f) break;
                z = (float2)(square.x - square.y + 0.3f, 2.0f * z.x * z.y + 0.2f);
            }
            out[get_global_id(0)] = j;
        })";
    EXPECT_FALSE(has_masks_for_leaving_only(steps, processor_with_512_bits));
    EXPECT_TRUE(has_masks_for_leaving_only(steps, processor_with_256_bits));
}

// In short loops, and where each lane has an end of its own, some lane leaves in most iterations.
TEST(LeavingLanes, OfShortLoops_AreAsTheyWere) {
    const std::string short_loop = R"(
        kernel void k(global const int* in, global int* out) {
            const int x = in[get_global_id(0)];
            int j = 0;
            for (; j < 20; ++j)
                if (x >> j == 3 * j) break;
            out[get_global_id(0)] = j;
        })";
    const std::string own_ends = R"(
        kernel void k(global const int* in, global const int* ends, global int* out) {
            const int x = in[get_global_id(0)], end = ends[get_global_id(0)];
            int j = 0;
            for (; j < end; ++j)
                if (x * j == 77) break;
            out[get_global_id(0)] = j;
        })";
    for (const char* processor : vector_processors) {
        EXPECT_FALSE(has_masks_for_leaving_only(short_loop, processor)) << processor;
        EXPECT_FALSE(has_masks_for_leaving_only(own_ends, processor)) << processor;
    }
}

TEST(LeavingLanes, OfSearches_FindWhatOneWorkItemFinds) {
    if (!__builtin_cpu_supports("avx2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    constexpr int count = 128, keys_max = 80;
    std::vector<int> keys(keys_max), wanted(count);
    std::iota(keys.begin(), keys.end(), 100);
    for (int i = 0; i < count; ++i)
        wanted[index_of(i)] = 100 + i * 37 % 90;  // some are not there
    for (const char* processor : vector_processors)
        for (const int n : {0, 1, 50, keys_max}) {
            Compiled program(search, processor);
            ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible),
                      "");
            std::vector<int> places(count, -7);
            program.run({1, {count, 1, 1}, {64, 1, 1}},
                        Arguments().add(keys.data()).add(wanted.data()).add(places.data()).add(n));
            for (int i = 0; i < count; ++i) {
                const int place = wanted[index_of(i)] - 100;
                EXPECT_EQ(places[index_of(i)], place < n ? place : -1) << processor << " n " << n << " i " << i;
            }
        }
}

// A search in a loop, behind a condition, with sums that lanes keep when they leave: by two exits and at the end.
TEST(LeavingLanes, InsideOfLoopsAndConditions_KeepTheirValues) {
    if (!__builtin_cpu_supports("avx2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    const std::string source = R"(
        kernel void k(global const int* in, global int* out, int rounds, int n) {
            const int x = in[get_global_id(0)];
            int result = 0;
            for (int r = 0; r < rounds; ++r)
                if ((x + r) % 3 != 0) {
                    int sum = r, j = 0;
                    for (; j < n; ++j) {
                        sum += x ^ j;
                        if (sum % 11 == 5) break;
                        if (sum > 4000) { sum -= 1000; break; }
                        sum += j;
                    }
                    result = result * 3 + sum + 1000 * j;
                }
            out[get_global_id(0)] = result;
        })";
    constexpr uint64_t count = 128;
    constexpr int rounds = 5, n = 70;
    std::vector<int> in(count);
    for (size_t i = 0; i < count; ++i)
        in[i] = static_cast<int>(i * 7919 % 101);
    for (const char* processor : vector_processors) {
        Compiled program(source, processor);
        ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
        EXPECT_TRUE(has(program, "lanes.leaving")) << processor;
        std::vector<int> out(count);
        program.run({1, {count, 1, 1}, {64, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(rounds).add(n));
        for (size_t i = 0; i < count; ++i) {
            uint32_t result = 0;
            for (int r = 0; r < rounds; ++r)
                if ((in[i] + r) % 3 != 0) {
                    int sum = r, j = 0;
                    for (; j < n; ++j) {
                        sum += in[i] ^ j;
                        if (sum % 11 == 5)
                            break;
                        if (sum > 4000) {
                            sum -= 1000;
                            break;
                        }
                        sum += j;
                    }
                    result = result * 3 + static_cast<uint32_t>(sum + 1000 * j);
                }
            EXPECT_EQ(static_cast<uint32_t>(out[i]), result) << processor << ' ' << i;
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
