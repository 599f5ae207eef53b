// Counters of loops, which LLVM widens to 64 bits only where lanes gain by it.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A filter that begins before the signal: the places are compared in each iteration.
constexpr const char* guarded_filter = R"(
    kernel void k(global const float* in, constant float* taps, global float* out, int count) {
        const int i = get_global_id(0);
        float sum = 0;
        for (int tap = 0; tap < count; ++tap) {
            const int place = i - tap;
            if (place >= 0) sum += taps[tap] * in[place];
        }
        out[i] = sum;
    })";

// Columns of a triangle: the inner loop's places follow a counter that starts at another number in each lane.
constexpr const char* triangle_columns = R"(
    kernel void k(global const int* in, global int* out, int width, int height) {
        const int i = get_global_id(0);
        uint sum = 0;
        for (int column = i; column < width; ++column)
            for (int row = 0; row < height; ++row)
                sum = 3 * sum + (uint)in[row * width + column];
        out[i] = sum;
    })";

// Sums along a row of the lane's own.
constexpr const char* rows_of_lanes = R"(
    kernel void k(global const float* in, global float* out, int width) {
        const int i = get_global_id(0);
        float sum = 0;
        for (int column = 0; column < width; ++column) sum += in[i * width + column];
        out[i] = sum;
    })";

bool has_wide_comparison(const Compiled& program) {
    return std::regex_search(program.optimised(), std::regex("icmp [a-z ]+ <16 x i64>"));
}

TEST(CounterWidths, OfComparedPlaces_StayNarrow) {
    Compiled program(guarded_filter, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole),
              "");  // no work-items are left over
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    EXPECT_FALSE(has_wide_comparison(program)) << program.optimised();
}

TEST(CounterWidths, ThatStartAtTheId_AreWideSoThatPlacesAreRows) {
    Compiled program(triangle_columns, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "masked.gather")) << program.optimised();
}

TEST(CounterWidths, InRowsOfEachLane_AreWideSoThatRowsAreSeen) {
    Compiled program(rows_of_lanes, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    EXPECT_TRUE(has(program, "load <4 x float>")) << program.optimised();
}

TEST(CounterWidths, LeaveResultsAsTheyAre) {
    constexpr int items = 64, count = 21;
    std::vector<float> signal(items), taps(count), filtered(items), expected_filtered(items);
    std::vector<int> in(items * items), out(items), expected(items);
    std::iota(signal.begin(), signal.end(), 1.0F);
    std::iota(in.begin(), in.end(), 1);
    std::iota(taps.begin(), taps.end(), -5.0F);
    for (const std::string processor : {"", "haswell", "x86-64-v2"}) {
        if (processor == "haswell" && __builtin_cpu_supports("avx2") == 0)
            continue;
        for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
            Compiled filters(guarded_filter, processor);
            ASSERT_EQ(filters.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (int i = 0; i < items; ++i) {
                float& sum = expected_filtered[static_cast<size_t>(i)] = 0;
                for (int tap = 0; tap < count && tap <= i; ++tap)
                    sum += taps[static_cast<size_t>(tap)] * signal[static_cast<size_t>(i - tap)];
            }
            filters.run({1, {items, 1, 1}, {32, 1, 1}},
                        Arguments().add(signal.data()).add(taps.data()).add(filtered.data()).add(count));
            EXPECT_EQ(filtered, expected_filtered) << processor;

            Compiled columns(triangle_columns, processor);
            ASSERT_EQ(columns.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (int i = 0; i < items; ++i) {
                uint32_t sum = 0;
                for (int column = i; column < items; ++column)
                    for (int row = 0; row < count; ++row)
                        sum = 3 * sum + static_cast<uint32_t>(in[index_of(row * items + column)]);
                expected[static_cast<size_t>(i)] = static_cast<int>(sum);
            }
            columns.run({1, {items, 1, 1}, {32, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(items).add(count));
            EXPECT_EQ(out, expected) << processor;
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
