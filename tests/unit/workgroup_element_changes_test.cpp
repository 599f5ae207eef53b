// Bytes and shorts that each lane changes at a place of its own (vectorizer/preparation/element_changes.h).
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* counters = R"(
    kernel void bytes(global const uchar* values, global uchar* counts, uint n) {
        const uint i = get_global_id(0), items = get_global_size(0);
        for (uint k = 0; k < n; ++k)
            counts[values[k * items + i] % 16 * items + i]++;
    }
    kernel void others(global const uchar* values, global ushort* numbers, uint n) {
        const uint i = get_global_id(0), items = get_global_size(0);
        for (uint k = 0; k < n; ++k) {
            global ushort* place = numbers + (values[k * items + i] % 16 * items + i);
            const uchar next = values[k * items + (i + 1) % items];
            if (next % 3 == 0)
                *place -= next;
            else if (next % 3 == 1)
                *place = (ushort)(next * 77) ^ *place;
            else
                *place = next - *place;
        }
    })";

TEST(ElementChanges, OfBytes_AreOneInstructionForEachLane) {
    Compiled program(counters, processor_with_512_bits);
    ASSERT_EQ(program.prepare("bytes", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GT(program.result().lanes.loops, 0U);
    EXPECT_TRUE(has(program, "add i8 ")) << program.optimised();
    EXPECT_FALSE(has(program, "add <16 x i8>") || has(program, "insertelement <16 x i8>")) << program.optimised();
}

TEST(ElementChanges, HaveTheResultsOfEachOperation) {
    constexpr uint32_t items = 77, rounds = 40, bins = 16;
    std::vector<uint8_t> values(size_t{items} * rounds);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<uint8_t>(i * 2654435761U >> 13);
    std::vector<uint8_t> counts(size_t{items} * bins, 250), expected_counts = counts;
    std::vector<uint16_t> numbers(size_t{items} * bins, 1000), expected_numbers = numbers;
    for (size_t k = 0; k < rounds; ++k)
        for (size_t i = 0; i < items; ++i) {
            const size_t place = size_t{values[k * items + i] % bins} * items + i;
            ++expected_counts[place];
            const uint32_t next = values[k * items + (i + 1) % items];
            uint16_t& number = expected_numbers[place];
            number = static_cast<uint16_t>(next % 3 == 0   ? number - next
                                           : next % 3 == 1 ? (next * 77) ^ number
                                                           : next - number);
        }
    Compiled program(counters);
    for (const Lanes lanes : {Lanes::wherever_possible, Lanes::where_they_pay}) {
        auto own_counts = std::vector<uint8_t>(size_t{items} * bins, 250);
        auto own_numbers = std::vector<uint16_t>(size_t{items} * bins, 1000);
        const Range range{.dimensions = 1, .global = {items, 1, 1}, .local = {40, 1, 1}};
        ASSERT_EQ(program.prepare("bytes", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        program.run(range, Arguments().add(values.data()).add(own_counts.data()).add(rounds));
        EXPECT_EQ(own_counts, expected_counts);
        ASSERT_EQ(program.prepare("others", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        program.run(range, Arguments().add(values.data()).add(own_numbers.data()).add(rounds));
        EXPECT_EQ(own_numbers, expected_numbers);
    }
}

// What is changed is the element before the other store, which may be to the same place.
TEST(ElementChanges, WithAStoreBetween_AreNotOnePiece) {
    Compiled program(R"(
        kernel void k(global const uchar* values, global uchar* counts, uint n) {
            const uint i = get_global_id(0), items = get_global_size(0);
            for (uint k = 0; k < n; ++k) {
                global uchar* const place = counts + (values[k * items + i] % 4 * items + i);
                global uchar* const other = counts + (values[k * items + i] / 4 % 4 * items + i);
                const uchar before = *place;
                *other = 5;
                *place = before + 1;
            }
        })");
    constexpr uint32_t items = 64, rounds = 30, bins = 4;
    std::vector<uint8_t> values(size_t{items} * rounds), expected(size_t{items} * bins, 100);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<uint8_t>(i * 2654435761U >> 13);
    for (size_t k = 0; k < rounds; ++k)
        for (size_t i = 0; i < items; ++i) {
            const uint32_t value = values[k * items + i];
            uint8_t& place = expected[size_t{value % bins} * items + i];
            const uint8_t before = place;
            expected[size_t{value / bins % bins} * items + i] = 5;
            place = static_cast<uint8_t>(before + 1);
        }
    for (const Lanes lanes : {Lanes::wherever_possible, Lanes::where_they_pay}) {
        std::vector<uint8_t> counts(size_t{items} * bins, 100);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        program.run({.dimensions = 1, .global = {items, 1, 1}, .local = {32, 1, 1}},
                    Arguments().add(values.data()).add(counts.data()).add(rounds));
        EXPECT_EQ(counts, expected);
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
