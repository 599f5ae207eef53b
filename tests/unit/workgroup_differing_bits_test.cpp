// Work-groups of a known size: the index of a work-item has few bits, so a number with zeros there is added without a carry.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

// LLVM knows that y is even under the guard, and writes the row of y + 1 as an `or`, which moves out of the guard.
constexpr const char* pairs_of_rows = R"(
    kernel void k(global const float* in, global float* out, int columns) {
        local float tile[16 * 16];
        const int x = get_local_id(0), y = get_local_id(1), at = get_global_id(1) * columns + x;
        tile[y * 16 + x] = in[at];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int step = 1; step < 16; step *= 2) {
            if (y % (2 * step) == 0) tile[y * 16 + x] += tile[(y + step) * 16 + x];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        out[at] = tile[y * 16 + x];
    })";

TEST(DifferingBits, OfTheIndexInATile_GiveRows) {
    Compiled program(pairs_of_rows, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {16, 16, 1}), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "masked.gather")) << program.optimised();
}

TEST(DifferingBits, OfTheIndexInATile_AreRight) {
    constexpr size_t columns = 16, rows = 64;
    std::vector<float> in(columns * rows), out(in.size()), expected(in.size());
    std::iota(in.begin(), in.end(), 1.0F);
    expected = in;
    for (size_t first = 0; first < rows; first += 16)
        for (size_t step = 1; step < 16; step *= 2)
            for (size_t y = 0; y < 16; y += 2 * step)
                for (size_t x = 0; x < columns; ++x)
                    expected[(first + y) * columns + x] += expected[(first + y + step) * columns + x];
    Compiled program(pairs_of_rows);
    for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", true, {16, 16, 1}, WorkGroupOptions::Ends::whole, lanes), "");
        std::ranges::fill(out, 0.0F);
        program.run({2, {columns, rows, 1}, {16, 16, 1}}, Arguments().add(in.data()).add(out.data()).add(int{columns}));
        EXPECT_EQ(out, expected);
    }
}

// Sizes are longs that are loaded behind guards, and places are cut to ints: LLVM shifts the group and the id up by 32 bits and more, and back.
constexpr const char* rows_by_longs = R"(
    kernel void k(global float* out, global const float* in, constant long* sizes, int blocks) {
        const int plane = get_group_id(0) / blocks, block = get_group_id(0) - plane * blocks;
        const int x = get_local_id(0) + block * get_local_size(0), y = get_global_id(1);
        if (x >= sizes[0] || y >= sizes[1] || plane >= sizes[2])
            return;
        const int from = plane * sizes[4] + y * sizes[3] + x;
        out[plane * sizes[4] + y * sizes[3] + x] = in[from + (int)sizes[3]] - in[from];
    })";

TEST(DifferingBits, OfShiftedIds_GiveRowsThatAreOneQuestion) {
    Compiled program(rows_by_longs, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {16, 16, 1}), "");
    EXPECT_TRUE(has(program, "\ntogether")) << program.optimised();
    EXPECT_FALSE(has(program, "icmp ne <16 x ptr>")) << "addresses are compared:\n" << program.optimised();
}

TEST(DifferingBits, OfShiftedIds_AreRight) {
    constexpr size_t columns = 64, rows = 32;
    std::vector<float> in(columns * (rows + 1)), out(in.size());
    std::iota(in.begin(), in.end(), 1.0F);
    for (float& value : in)
        value *= value;
    const std::vector<int64_t> sizes{61, 29, 1, 62, 0};
    std::vector<float> expected(in.size());
    for (size_t y = 0; y < 29; ++y)
        for (size_t x = 0; x < 61; ++x)
            expected[y * 62 + x] = in[(y + 1) * 62 + x] - in[y * 62 + x];
    Compiled program(rows_by_longs);
    for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", true, {16, 16, 1}, WorkGroupOptions::Ends::whole, lanes), "");
        std::ranges::fill(out, 0.0F);
        program.run({2, {columns, rows, 1}, {16, 16, 1}},
                    Arguments().add(out.data()).add(in.data()).add(sizes.data()).add(int{4}));
        EXPECT_EQ(out, expected);
    }
}

// In the first groups, indices begin below zero: these groups have lanes, too, without a check.
TEST(DifferingBits, OfIndicesBelowZero_NeedNoCheck) {
    constexpr const char* source = R"(
        kernel void k(global const float* in, global float* out, int width) {
            const int x = (int)(get_group_id(0) * 8 - 1) * 16 + (int)get_local_id(0);
            for (int i = 0; i < 10; ++i) {
                const int at = x + 16 * i;
                out[get_group_id(0) * 160 + 16 * i + get_local_id(0)] = at >= 0 && at < width ? in[at] : -1.0f;
            }
        })";
    Compiled code(source, processor_with_512_bits);
    ASSERT_EQ(code.prepare("k", true, {16, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(code.result().lanes.scalar_loops, 0) << code.result().lanes.reason;
    EXPECT_FALSE(has(code, "load float,")) << "a loop of one work-item after the other:\n" << code.optimised();
    constexpr size_t groups = 4, width = 500;
    std::vector<float> in(width), out(groups * 160), expected;
    std::iota(in.begin(), in.end(), 1.0F);
    for (size_t i = 0; i < out.size(); ++i) {
        const auto at = static_cast<int>(i / 160 * 128 + i % 160) - 16;
        expected.push_back(at >= 0 && at < int{width} ? in[static_cast<size_t>(at)] : -1.0F);
    }
    Compiled program(source);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", true, {16, 1, 1}, WorkGroupOptions::Ends::whole, lanes), "");
        std::ranges::fill(out, 0.0F);
        program.run({1, {16 * groups, 1, 1}, {16, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(int{width}));
        EXPECT_EQ(out, expected);
    }
}

// Sizes around a power of two, numbers above and inside of the index's bits, and sums in several widths.
TEST(DifferingBits, BelowOtherNumbers_AreRight) {
    Compiled program(R"(
        kernel void k(global const uint* in, global uint* out, uint above, int n) {
            const uint x = get_local_id(0);
            const uint row = (above << 5) & 0x1e0u;
            uint sum = in[row | x] + 3 * in[row + x] + 5 * in[(row | 32) + x];
            sum += 7 * in[(x | row) | (above & 7)] + 11 * in[(size_t)(int)((x << 1 | row << 1) | 1) % 512];
            if (x + row > 40) sum += 13 * in[(x + row - 40) | 64];
            for (int i = 0; i < n; ++i) sum += in[(x | 64 * i) & 511];
            out[get_global_id(0)] = sum;
        })");
    constexpr size_t groups = 3;
    std::vector<uint32_t> in(1024);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<uint32_t>(i * 2654435761U >> 7);
    constexpr int n = 9;
    for (const uint64_t local :
         {uint64_t{15}, uint64_t{16}, uint64_t{17}, uint64_t{31}, uint64_t{32}, uint64_t{33}, uint64_t{64}})
        for (const uint32_t above : {0U, 1U, 6U, 13U}) {
            std::vector<uint32_t> expected, out(groups * local);
            for (uint32_t item = 0; item < out.size(); ++item) {
                const auto x = static_cast<uint32_t>(item % local);
                const uint32_t row = above << 5 & 0x1e0U;
                uint32_t sum = in[row | x] + 3 * in[row + x] + 5 * in[(row | 32) + x];
                sum += 7 * in[(x | row) | (above & 7)] + 11 * in[((x << 1 | row << 1) | 1) % 512];
                if (x + row > 40)
                    sum += 13 * in[(x + row - 40) | 64];
                for (uint32_t i = 0; i < n; ++i)
                    sum += in[(x | 64 * i) & 511];
                expected.push_back(sum);
            }
            for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
                ASSERT_EQ(program.prepare("k", true, {local, 1, 1}, WorkGroupOptions::Ends::whole, lanes), "");
                std::ranges::fill(out, 0U);
                program.run({1, {out.size(), 1, 1}, {local, 1, 1}},
                            Arguments().add(in.data()).add(out.data()).add(above).add(n));
                EXPECT_EQ(out, expected) << local << ", " << above;
            }
        }
}

// A place that is an int: the begin of the work-group plus the local id, as lowering writes it.
constexpr const char* bytes_of_a_group = R"(
    kernel void k(global const uchar* in, global int* out, int n) {
        local uchar tile[64];
        int x = get_local_id(0), place = (int)(get_global_id(0) - get_global_offset(0));
        tile[x] = in[place];
        barrier(CLK_LOCAL_MEM_FENCE);
        int value = tile[x];
        if (place < n) out[place] = value - 128;
    })";

TEST(DifferencesAsInts, OfTheGroupsBeginAndTheLocalId_AreRows) {
    Compiled code(bytes_of_a_group, processor_with_512_bits);
    ASSERT_EQ(code.prepare("k"), "");
    EXPECT_GT(code.result().lanes.loops, 0U) << code.result().lanes.reason;
    EXPECT_FALSE(has(code, "llvm.masked.gather") || has(code, "llvm.masked.scatter")) << code.optimised();
}

TEST(DifferencesAsInts, OfTheGroupsBeginAndTheLocalId_AreRight) {
    Compiled program(bytes_of_a_group);
    ASSERT_EQ(program.prepare("k"), "");
    constexpr size_t items = 256;
    std::vector<uint8_t> in(items);
    std::iota(in.begin(), in.end(), uint8_t{3});
    for (const uint64_t local : {1, 16, 32, 64})
        for (const int n : {0, 5, 100, 255, 256}) {
            std::vector<int> out(items, -1), expected(items, -1);
            for (size_t i = 0; i < static_cast<size_t>(n); ++i)
                expected[i] = in[i] - 128;
            program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
            ASSERT_EQ(out, expected) << n << " of groups of " << local;
        }
}

// The int wraps around in the middle of a group, and what it is cut from has bits above 32, of either sign.
TEST(DifferencesAsInts, ThatWrapAround_AreRight) {
    Compiled program(R"(
        kernel void k(global int* out, long first, long other, global long* places) {
            const long place = (int)(first + (long)get_local_id(0) - other);
            places[get_global_id(0)] = place;
            out[(place & 63) + 64 * get_group_id(0)] = get_local_id(0);
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    constexpr int items = 128;
    constexpr int64_t limit = int64_t{1} << 31;
    for (const int64_t first : {int64_t{0}, limit - 20, -limit, 3 * limit, -5 * limit - 20, int64_t{1} << 40})
        for (const int64_t other : {int64_t{0}, int64_t{7}, limit - 8, -limit - 1, 4 * limit, int64_t{1} << 62}) {
            std::vector<int> out(items, -1), expected(items, -1);
            std::vector<int64_t> places(items), expected_places(items);
            for (int i = 0; i < items; ++i) {
                const int64_t place = static_cast<int32_t>(first + i % 64 - other);
                expected_places[static_cast<size_t>(i)] = place;
                expected[static_cast<size_t>(place & 63) + static_cast<size_t>(i / 64) * 64] = i % 64;
            }
            program.run({1, {items, 1, 1}, {64, 1, 1}},
                        Arguments().add(out.data()).add(first).add(other).add(places.data()));
            ASSERT_EQ(out, expected) << first << " and " << other;
            ASSERT_EQ(places, expected_places) << first << " and " << other;
        }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
