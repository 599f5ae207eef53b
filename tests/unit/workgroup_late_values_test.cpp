// What follows from an id and from a number that all work-items share is computed behind a barrier, not kept for each work-item.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* shared_bases = R"(
    kernel void once(global const int* starts, global const int* in, global int* out) {
        local int s[64];
        const int l = get_local_id(0), at = starts[get_group_id(0)] + l;
        s[l] = in[at];
        barrier(CLK_LOCAL_MEM_FENCE);
        out[at] = s[63 - l] + in[at + 1];
    }
    kernel void rounds(global const int* starts, global const int* in, global int* out) {
        local int s[64];
        const int l = get_local_id(0);
        int last = 0;
        for (int r = 0; r < 3; ++r) {
            const int at = starts[r] + l;
            s[l] = in[at] + last;
            barrier(CLK_LOCAL_MEM_FENCE);
            out[at] += s[63 - l] + (at ^ 5);
            last = at;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        out[256 + l] = last;
    })";

TEST(LateValues, SumsOfAnIdAndASharedNumber_AreKeptForNoWorkItem) {
    Compiled program(shared_bases, processor_with_256_bits);
    ASSERT_EQ(program.prepare("once", true, {64, 1, 1}), "");
    EXPECT_EQ(program.result().scratch_bytes_per_work_item, 0U);
    EXPECT_FALSE(has(program, "gather") || has(program, "scatter")) << program.optimised();
}

TEST(LateValues, OfLoopsAroundBarriers_AreThoseOfTheirRound) {
    for (const uint64_t local : {uint64_t{64}, uint64_t{40}}) {
        Compiled program(shared_bases);
        ASSERT_EQ(program.prepare("rounds", true, {local, 1, 1}), "");
        std::vector<int> starts{100, 7, 60}, in(256), out(512), expected(512);
        std::iota(in.begin(), in.end(), 1000);
        for (size_t r = 0; r < starts.size(); ++r)
            for (size_t l = 0; l < local; ++l) {
                const size_t other = 63 - l;
                const bool is_written = other < local;
                const int before = r == 0 ? 0 : starts[r - 1] + static_cast<int>(other);
                const int staged = is_written ? in[static_cast<size_t>(starts[r]) + other] + before : 0;
                const int at = starts[r] + static_cast<int>(l);
                if (is_written)
                    expected[static_cast<size_t>(at)] += staged + (at ^ 5);
                expected[256 + l] = at;
            }
        program.run({1, {local, 1, 1}, {local, 1, 1}}, Arguments().add(starts.data()).add(in.data()).add(out.data()));
        for (size_t i = local == 64 ? 0 : 256; i < expected.size(); ++i)
            ASSERT_EQ(out[i], expected[i]) << i;
    }
}

TEST(LateValues, OfEachGroup_AreRight) {
    Compiled program(shared_bases);
    ASSERT_EQ(program.prepare("once", true, {64, 1, 1}), "");
    std::vector<int> starts{64, 0, 130}, in(300), out(300), expected(300);
    std::iota(in.begin(), in.end(), 7);
    for (const size_t start : {64, 0, 130})
        for (size_t l = 0; l < 64; ++l)
            expected[start + l] = in[start + 63 - l] + in[start + l + 1];
    program.run({1, {192, 1, 1}, {64, 1, 1}}, Arguments().add(starts.data()).add(in.data()).add(out.data()));
    EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
