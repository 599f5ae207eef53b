// Bytes and shorts that each lane changes at a place of its own, and rows that atomic operations on local memory change
// (vectorizer/preparation/element_changes.h).
#include "workgroup_harness.h"

#include <algorithm>
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

constexpr const char* local_rows = R"(
    kernel void k(global const int* in, global int* sums, global float* least, local int* t, local float* f) {
        const int l = get_local_id(0), x = in[get_global_id(0)];
        t[l] = l;
        if (l == 0) t[get_local_size(0)] = 0;
        f[l] = 7;
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_add(&t[l], x);
        atomic_add(&t[l + 1], 1000);
        if (x % 3 == 0) atomic_add(&t[l], 20000);
        atomic_sub(&t[l], 3);
        __opencl_atomic_fetch_min((volatile local atomic_float*)f + l, (float)(x % 16), memory_order_relaxed,
                                  memory_scope_work_group);
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[get_global_id(0)] = atomic_xchg(&t[l], 0);
        least[get_global_id(0)] = f[l];
    })";

TEST(ElementChanges, OfLocalRowsByAtomicOperations_AreThoseOfVectors) {
    Compiled program(local_rows, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "atomicrmw")) << program.optimised();
    EXPECT_FALSE(has(program, "extractelement <16 x i32>") || has(program, "extractelement <16 x float>"))
        << program.optimised();
}

TEST(ElementChanges, OfLocalRowsByAtomicOperations_AreAllDone) {
    constexpr size_t items = 154, group = 77;
    std::vector<int> in(items), expected(items);
    std::vector<float> expected_least(items);
    for (size_t i = 0; i < items; ++i) {
        in[i] = static_cast<int>(i * 7 % 101);
        const int l = static_cast<int>(i % group);
        expected[i] = l + in[i] - 3 + (l > 0 ? 1000 : 0) + (in[i] % 3 == 0 ? 20000 : 0);
        expected_least[i] = std::min(7.0F, static_cast<float>(in[i] % 16));
    }
    Compiled program(local_rows);
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible, Lanes::where_they_pay}) {
        std::vector<int> sums(items);
        std::vector<float> least(items);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        program.run({.dimensions = 1, .global = {items, 1, 1}, .local = {group, 1, 1}},
                    Arguments()
                        .add(in.data())
                        .add(sums.data())
                        .add(least.data())
                        .add_local((group + 1) * sizeof(int))
                        .add_local(group * sizeof(float)));
        EXPECT_EQ(sums, expected);
        EXPECT_EQ(least, expected_least);
    }
}

// Other groups may change them at the same time.
TEST(ElementChanges, OfGlobalRowsByAtomicOperations_StayAtomic) {
    Compiled program("kernel void k(global int* sums, global const int* in) {"
                     " atomic_add(&sums[get_global_id(0)], in[get_global_id(0)] * 3); }",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    EXPECT_TRUE(has(program, "atomicrmw add")) << program.optimised();
}

// Each work-item waits for the one before it, at an element of its own: lanes in step would wait for ever.
TEST(ElementChanges, OfLocalRowsThatAreWaitedFor_HaveNoLanes) {
    Compiled program(R"(
        kernel void k(global int* out, local int* turn) {
            const int l = get_local_id(0);
            turn[l] = l == 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            while (atomic_or(&turn[l], 0) == 0)
                ;
            out[get_global_id(0)] = l + 1;
            if (l + 1 < get_local_size(0)) atomic_xchg(&turn[l + 1], 1);
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GT(program.result().lanes.scalar_loops, 0U);
    std::vector<int> out(40);
    program.run({.dimensions = 1, .global = {40, 1, 1}, .local = {40, 1, 1}},
                Arguments().add(out.data()).add_local(40 * sizeof(int)));
    for (int i = 0; i < 40; ++i)
        EXPECT_EQ(out[static_cast<size_t>(i)], i + 1);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
