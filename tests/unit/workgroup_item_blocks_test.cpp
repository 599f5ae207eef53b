// Numbers of blocks of neighbouring work-items, and places in them, as kernels with warps compute them.
#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <tuple>

namespace polder::compiler::workgroup::test {
namespace {

// A warp for each row of a sparse matrix.
constexpr const char* rows_by_warps = R"(
    kernel void k(global const int* begin, global const float* values, global float* out, int rows) {
        const int row = get_global_id(0) / 32, lane = get_global_id(0) & 31;
        float sum = 0;
        if (row < rows)
            for (int at = begin[row] + lane; at < begin[row + 1]; at += 32) sum += values[at];
        out[get_global_id(0)] = sum;
    })";

TEST(ItemBlocks, LoadTheirRowsAtOnce) {
    Compiled program(rows_by_warps, processor_with_512_bits);
    for (const bool specialised : {false, true}) {
        ASSERT_EQ(program.prepare("k", specialised, {64, 1, 1}), "");
        EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
        EXPECT_FALSE(has(program, "masked.gather")) << program.optimised();
    }
}

// The first element of a row of an argument is not known to be a multiple of anything. A check before the loop would fail most of the time.
TEST(ItemBlocks, BehindAnArgument_AreNotAssumed) {
    constexpr const char* source = R"(
        kernel void k(global const int* in, global int* out, int first) {
            const int i = get_local_id(0) + first;
            out[get_global_id(0)] = in[i / 32];
        })";
    Compiled code(source, processor_with_512_bits);
    ASSERT_EQ(code.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_TRUE(has(code, "masked.gather")) << code.optimised();
    Compiled program(source);
    std::vector<int> in(64), out(192), expected;
    std::iota(in.begin(), in.end(), 100);
    for (size_t i = 0; i < out.size(); ++i)
        expected.push_back(in[(i % 96 + 21) / 32]);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0);
        program.run({1, {192, 1, 1}, {96, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(21));
        EXPECT_EQ(out, expected);
    }
}

// Quotients and remainders of signed, unsigned and long numbers, of ids, of twice an id and of an id behind a constant.
constexpr const char* all_divisions = R"(
    kernel void k(global const uint* in, global uint* out, int limit) {
        const size_t g = get_global_id(0);
        const int i = (int)g, n = i - 64;
        const uint u = (uint)g, l = (uint)get_local_id(0);
        const long s = (long)g;
        uint sum = in[i / 16] + 3 * in[i % 16] + 5 * in[u / 64] + 7 * in[u % 64] + 11 * in[s / 32] + 13 * in[s & 31];
        sum += 17 * in[i >> 5] + 19 * in[u >> 4] + 23 * in[i & ~31] + 29 * in[l / 32] + 31 * in[l % 32];
        sum += 37 * in[(2 * u) / 32] + 41 * in[(2 * u) % 64] + 43 * in[(u + 64) / 32] + 47 * in[(u + 1) / 32];
        sum += 53 * in[n / 32 + 8] + 59 * in[n % 32 + 32] + 61 * in[(n >> 5) + 8] + 67 * in[n & 31];
        if (i < limit) sum += 71 * in[i / 32 + i % 32] + 73 * in[(u >> 3) & 3];
        for (uint j = 0; j < l / 32; ++j) sum = sum * 5 + in[j + u % 32];
        out[g - get_global_offset(0)] = sum;
    })";

uint32_t divided(const std::vector<uint32_t>& in, uint64_t g, uint64_t local_id, int limit) {
    const auto i = static_cast<int>(g), n = i - 64;
    const auto u = static_cast<uint32_t>(g), l = static_cast<uint32_t>(local_id);
    const auto at = [&](auto index) { return in[static_cast<size_t>(index)]; };
    uint32_t sum = at(i / 16) + 3 * at(i % 16) + 5 * at(u / 64) + 7 * at(u % 64) + 11 * at(g / 32) + 13 * at(g & 31);
    sum += 17 * at(i >> 5) + 19 * at(u >> 4) + 23 * at(i & ~31) + 29 * at(l / 32) + 31 * at(l % 32);
    sum += 37 * at((2 * u) / 32) + 41 * at((2 * u) % 64) + 43 * at((u + 64) / 32) + 47 * at((u + 1) / 32);
    sum += 53 * at(n / 32 + 8) + 59 * at(n % 32 + 32) + 61 * at((n >> 5) + 8) + 67 * at(n & 31);
    if (i < limit)
        sum += 71 * at(i / 32 + i % 32) + 73 * at((u >> 3) & 3);
    for (uint32_t j = 0; j < l / 32; ++j)
        sum = sum * 5 + at(j + u % 32);
    return sum;
}

TEST(ItemBlocks, OfAllSizesAndOffsets_AreRight) {
    std::vector<uint32_t> in(2048);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<uint32_t>(i * 2654435761U >> 3);
    Compiled program(all_divisions);
    for (const unsigned vectors : {0U, 2U, 4U}) {
        program.run_at_once(vectors);
        for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible})
            for (const uint64_t local : {20, 32, 48, 64, 96, 100, 256}) {
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
                for (const uint64_t offset : {0, 5, 8, 16, 64}) {
                    const uint64_t items = 4 * local + 7;
                    std::vector<uint32_t> out(items), expected;
                    const auto limit = static_cast<int>(offset + items - 21);
                    for (uint64_t item = 0; item < items; ++item)
                        expected.push_back(divided(in, offset + item, item % local, limit));
                    program.run({1, {items, 1, 1}, {local, 1, 1}, {offset, 0, 0}},
                                Arguments().add(in.data()).add(out.data()).add(limit));
                    EXPECT_EQ(out, expected) << local << ", offset " << offset << ", vectors " << vectors;
                }
            }
    }
}

// The number of a work-item in its group, as kernels with warps of several rows compute it. Rows of usual launches are multiples of 16.
constexpr const char* warps_of_rows = R"(
    kernel void usual_(global const ulong* in, global ulong* out, local ulong* shared) {
        const uint id = get_local_id(1) * get_local_size(0) + get_local_id(0), place = get_local_id(0) % 32;
        local ulong* const warp = shared + id / 32 * 32;
        const size_t at = get_global_id(1) * get_global_size(0) + get_global_id(0);
        warp[place] = in[at];
        barrier(CLK_LOCAL_MEM_FENCE);
        out[at] = warp[place ^ 1] + (id & 0x60);
    })";

TEST(ItemBlocks, OfWholeRowsInUsualLaunches_AreRows) {
    Compiled program(warps_of_rows, processor_with_512_bits);
    ASSERT_EQ(program.prepare("usual_"), "");
    EXPECT_FALSE(has(program, "masked.scatter")) << program.optimised();
    EXPECT_FALSE(has(program, "icmp ne <16 x ptr>")) << program.optimised();
}

TEST(ItemBlocks, OfWholeRowsInUsualLaunches_AreRight) {
    std::vector<uint64_t> in(4096);
    std::iota(in.begin(), in.end(), uint64_t{1} << 40);
    Compiled program(warps_of_rows);
    for (const unsigned vectors : {0U, 2U, 4U}) {
        program.run_at_once(vectors);
        for (const auto& [width, height] : {std::pair<uint64_t, uint64_t>{64, 2}, {128, 1}, {32, 4}, {256, 2}}) {
            ASSERT_EQ(program.prepare("usual_"), "");
            std::vector<uint64_t> out(in.size()), expected(in.size());
            const uint64_t row = 512, rows = in.size() / row;
            for (uint64_t y = 0; y < rows; ++y)
                for (uint64_t x = 0; x < row; ++x) {
                    const uint64_t id = y % height * width + x % width;
                    expected[y * row + x] = in[y * row + (x ^ 1)] + (id & 0x60);
                }
            program.run({2, {row, rows, 1}, {width, height, 1}},
                        Arguments().add(in.data()).add(out.data()).add_local(width * height * sizeof(uint64_t)));
            EXPECT_EQ(out, expected) << width << " x " << height << ", vectors " << vectors;
        }
    }
}

// A step of a bitonic sort in rows of 64: LLVM writes the row's beginning as a part of the id that was shifted up.
constexpr const char* rows_of_four = R"(
    kernel void k(global uint* data) {
        const int t = get_global_id(0) % 64, row = get_global_id(0) / 64;
        data += t + row * 256;
        const uint a = data[0], b = data[64], c = data[128], d = data[192];
        data[0] = min(a, c); data[128] = max(a, c); data[64] = min(b, d); data[192] = max(b, d);
    })";

TEST(ItemBlocks, ThatWereShiftedUp_AreRows) {
    std::string source = rows_of_four;
    source.replace(source.find("void k("), 7, "void usual_(");  // no work-items are left over
    Compiled code(source, processor_with_512_bits);
    ASSERT_EQ(code.prepare("usual_"), "");
    EXPECT_FALSE(has(code, "masked.gather")) << code.optimised();
    EXPECT_FALSE(has(code, "masked.scatter")) << code.optimised();
    EXPECT_TRUE(has(code, "llvm.umin.v16i32")) << code.optimised();
}

TEST(ItemBlocks, ThatWereShiftedUp_AreRight) {
    std::vector<uint32_t> before(8192);
    for (size_t i = 0; i < before.size(); ++i)
        before[i] = static_cast<uint32_t>(i * 2654435761U >> 3);
    Compiled program(rows_of_four);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible})
        for (const uint64_t local : {20, 32, 48, 64, 100}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const uint64_t offset : {0, 5, 8, 16, 64}) {
                const uint64_t items = 4 * local + 7;
                std::vector<uint32_t> data = before, expected = before;
                for (uint64_t id = offset; id < offset + items; ++id)
                    for (const uint64_t at : {id % 64 + id / 64 * 256, id % 64 + id / 64 * 256 + 64})
                        std::tie(expected[at], expected[at + 128]) = std::minmax({before[at], before[at + 128]});
                program.run({1, {items, 1, 1}, {local, 1, 1}, {offset, 0, 0}}, Arguments().add(data.data()));
                EXPECT_EQ(data, expected) << local << ", offset " << offset;
            }
        }
}

// A group may begin within a block, and a number that was shifted up may be negative.
TEST(ItemBlocks, ThatWereShiftedUpAlone_AreRight) {
    Compiled program(R"(
        kernel void begins(global const int* in, global int* out) {
            const int row = get_global_id(0) / 64;
            out[get_global_id(0)] = in[row * 256] + (int)get_global_id(0);
        }
        kernel void quotients(global int* out) {
            const int number = (int)((uint)get_global_id(0) << 4);
            out[get_global_id(0) - get_global_offset(0)] = number / 256 * 3 + (number >> 10);
        })");
    std::vector<int> in(4096);
    std::iota(in.begin(), in.end(), -9);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible})
        for (const uint64_t local : {20, 32, 48, 64, 100}) {
            const uint64_t items = 4 * local + 7;
            ASSERT_EQ(program.prepare("begins", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const uint64_t offset : {0, 5, 8, 16, 64}) {
                std::vector<int> out(offset + items), expected(offset + items);
                for (uint64_t id = offset; id < offset + items; ++id)
                    expected[id] = in[id / 64 * 256] + static_cast<int>(id);
                program.run({1, {items, 1, 1}, {local, 1, 1}, {offset, 0, 0}},
                            Arguments().add(in.data()).add(out.data()));
                EXPECT_EQ(out, expected) << local << ", offset " << offset;
            }
            ASSERT_EQ(program.prepare("quotients", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            for (const uint64_t offset : {uint64_t{0}, uint64_t{1} << 27, (uint64_t{1} << 28) - 64}) {
                std::vector<int> out(items), expected(items);
                for (uint64_t i = 0; i < items; ++i) {
                    const auto number = static_cast<int>(static_cast<uint32_t>(offset + i) << 4);
                    expected[i] = number / 256 * 3 + (number >> 10);
                }
                program.run({1, {items, 1, 1}, {local, 1, 1}, {offset, 0, 0}}, Arguments().add(out.data()));
                EXPECT_EQ(out, expected) << local << ", offset " << offset;
            }
        }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
