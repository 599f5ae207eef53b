// Which dimension of a work-group becomes lanes, when rows are found by division.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

struct Place {
    const char* column;
    const char* block;
    size_t columns;
};

// A remainder of the global id is the column of a buffer, and a quotient the block of rows.
TEST(LaneDimension, RemaindersOfIds_AreNeighboursInARow) {
    for (const Place& place : {Place{"i % 512u", "i / 512u * 4096", 512}, Place{"i & 511u", "(i << 3) & ~4095u", 512},
                               Place{"i % 200u", "i / 200u * 1600", 200}, Place{"i % n", "i / n * (n * 8)", 200}}) {
        SCOPED_TRACE(place.column);
        Compiled program(std::string(R"(
            kernel void k(global int* out, global const int* in, global const int* factors, uint n) {
                const uint i = get_global_id(0), row = get_local_id(1), column = )") +
                         place.column + "; const uint at = (" + place.block + R"() + column + row * n;
                out[at] = in[at] * factors[column * 8 + row];
            })");
        ASSERT_EQ(program.prepare("k", true, {32, 8, 1}, WorkGroupOptions::Ends::whole), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
        EXPECT_EQ(program.result().lanes.dimension, 0U);
        const size_t columns = place.columns, blocks = 4;
        std::vector<int> in(columns * 8 * blocks), out(in.size()), factors(columns * 8);
        std::iota(in.begin(), in.end(), 7);
        std::iota(factors.begin(), factors.end(), -100);
        program.run({2, {columns * blocks, 8, 1}, {32, 8, 1}},
                    Arguments().add(out.data()).add(in.data()).add(factors.data()).add(static_cast<unsigned>(columns)));
        for (size_t at = 0; at < in.size(); ++at)
            ASSERT_EQ(out[at], in[at] * factors[at % columns * 8 + at / columns % 8]) << at;
    }
}

// Vectors would pass many ends of rows that have only four elements.
TEST(LaneDimension, ShortRowsFoundByDivision_AreNotLanes) {
    Compiled program(R"(
        kernel void k(global int* out, global const int* in) {
            const uint i = get_global_id(0), at = i / 4 * 1024 + i % 4 * 16 + get_local_id(1);
            out[at] = in[at];
        })");
    ASSERT_EQ(program.prepare("k", true, {16, 16, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.result().lanes.dimension, 1U);
}

// 20 work-items are a vector of 16 and four that run one by one.
TEST(LanesEstimate, CountsTheWorkItemsThatAreLeftOver) {
    Compiled program(R"(
        kernel void k(global float* out, global const float* in) {
            const size_t i = get_global_id(0);
            out[i] = in[i] * in[i] + 1.0f;
        })",
                     processor_with_512_bits);
    const auto estimate_for = [&](uint64_t items) {
        EXPECT_EQ(program.prepare("k", true, {items, 1, 1}, WorkGroupOptions::Ends::whole), "");
        return program.result().lanes.estimate;
    };
    EXPECT_GT(estimate_for(20), 1.2 * estimate_for(32));
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
