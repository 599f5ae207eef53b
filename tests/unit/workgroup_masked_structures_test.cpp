// Structures of the lanes that a condition leaves active, accessed in the order of memory under a mask of their elements: three elements, and a part of
// the elements. Two and four whole ones: SplitVectors.UnderMasks_StayInTheOrderOfMemory.
#include "workgroup_harness.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

using Ends = WorkGroupOptions::Ends;

constexpr size_t structure_items = 160;

// Some lanes, one of few, all, none.
std::vector<int> conditions(size_t round) {
    std::vector<int> keys(structure_items);
    for (size_t i = 0; i < structure_items; ++i)
        keys[i] = round == 2 ? 1 : round == 3 ? 0 : static_cast<int>(i * 7 % (round == 0 ? 5 : 33) == 1);
    return keys;
}

// A film's pixels: red, green, blue and weight of a sample are added to three colours.
constexpr const char* masked_pixels = R"(
    kernel void k(global const int* keys, global const float* samples, global float* film) {
        const size_t i = get_global_id(0);
        if (keys[i] == 1) {
            const float weight = samples[4 * i + 3];
            if (weight > 0.0f) {
                const float red = film[3 * i], green = film[3 * i + 1], blue = film[3 * i + 2];
                const float r = samples[4 * i], g = samples[4 * i + 1], b = samples[4 * i + 2];
                film[3 * i] = red + r * weight;
                film[3 * i + 1] = green + g * weight;
                film[3 * i + 2] = blue + b * weight;
            }
        }
    })";

TEST(MaskedStructures, OfThreeElements_StayInTheOrderOfMemory) {
    Compiled program(masked_pixels, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}), "");
    EXPECT_EQ(program.result().lanes.width, 16U) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "gather") || has(program, "scatter")) << program.optimised();
}

TEST(MaskedStructures, OfThreeElements_AreRight) {
    Compiled program(masked_pixels);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, Ends::ragged, lanes), "");
        for (size_t round = 0; round < 4; ++round) {
            const std::vector<int> keys = conditions(round);
            std::vector<float> samples(4 * structure_items), film(3 * structure_items);
            std::iota(samples.begin(), samples.end(), -300.0F);
            std::iota(film.begin(), film.end(), 7.0F);
            std::vector<float> expected = film;
            for (size_t i = 0; i < structure_items; ++i)
                if (const float weight = samples[4 * i + 3]; keys[i] == 1 && weight > 0.0F)
                    for (size_t c = 0; c < 3; ++c)
                        expected[3 * i + c] += samples[4 * i + c] * weight;
            program.run({1, {structure_items, 1, 1}, {50, 1, 1}},
                        Arguments().add(keys.data()).add(samples.data()).add(film.data()));
            EXPECT_EQ(film, expected) << round;
        }
    }
}

// One of two, one of three, the first and last of three, the middle ones of four.
constexpr const char* masked_parts = R"(
    kernel void k(global const int* keys, global const int* in, global int* out) {
        const size_t i = get_global_id(0);
        if (keys[i] == 1)
            out[i] = in[2 * i + 1] + 3 * in[3 * i + 1] + 5 * in[3 * i + 600] + 7 * in[3 * i + 602] + 11 * in[4 * i + 1] + 13 * in[4 * i + 2];
    })";

TEST(MaskedStructures, WithUnusedElements_AreRight) {
    Compiled code(masked_parts, processor_with_512_bits);
    ASSERT_EQ(code.prepare("k", true, {64, 1, 1}, Ends::whole, Lanes::wherever_possible), "");
    EXPECT_FALSE(has(code, "gather")) << code.optimised();
    Compiled program(masked_parts);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, Ends::ragged, lanes), "");
        for (size_t round = 0; round < 4; ++round) {
            const std::vector<int> keys = conditions(round);
            std::vector<int> in(602 + 3 * structure_items), out(structure_items, -5), expected(structure_items, -5);
            std::iota(in.begin(), in.end(), -40);
            for (size_t i = 0; i < structure_items; ++i)
                if (keys[i] == 1)
                    expected[i] = in[2 * i + 1] + 3 * in[3 * i + 1] + 5 * in[3 * i + 600] + 7 * in[3 * i + 602] +
                                  11 * in[4 * i + 1] + 13 * in[4 * i + 2];
            program.run({1, {structure_items, 1, 1}, {50, 1, 1}},
                        Arguments().add(keys.data()).add(in.data()).add(out.data()));
            EXPECT_EQ(out, expected) << round;
        }
    }
}

// The structures are likely side by side, but begin anew in the middle of a vector.
TEST(MaskedStructures, ThatWrapAround_AreRight) {
    constexpr const char* source = R"(
        kernel void k(global const int* keys, global int* pairs, global int* out, int begin) {
            const uint i = get_global_id(0);
            const uint from = (2 * i + begin) & 127;
            if (keys[i] == 1)
                out[i] = pairs[from] + 3 * pairs[from + 1] + 5 * pairs[((3 * i + begin) & 255) + 1];
        })";
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(source, processor);
        ASSERT_EQ(program.prepare("k", false, {}, Ends::ragged, Lanes::wherever_possible), "");
        std::vector<int> pairs(258);
        std::iota(pairs.begin(), pairs.end(), -40);
        for (size_t round = 0; round < 4; ++round)
            for (const int begin : {0, 5, 50}) {
                const std::vector<int> keys = conditions(round);
                std::vector<int> out(structure_items, -5), expected(structure_items, -5);
                for (size_t i = 0; i < structure_items; ++i)
                    if (const size_t from = (2 * i + index_of(begin)) & 127; keys[i] == 1)
                        expected[i] =
                            pairs[from] + 3 * pairs[from + 1] + 5 * pairs[((3 * i + index_of(begin)) & 255) + 1];
                program.run({1, {structure_items, 1, 1}, {50, 1, 1}},
                            Arguments().add(keys.data()).add(pairs.data()).add(out.data()).add(begin));
                EXPECT_EQ(out, expected) << processor << ", round " << round << ", begin " << begin;
            }
    }
}

// Each member is loaded and stored before the next one is loaded. The others load what they have stored, or a part of it.
constexpr const char* changed_in_turns = R"(
    kernel void scaled(global float* pixels, float scale) {
        global float* pixel = pixels + 3 * get_global_id(0);
        pixel[0] *= scale;
        pixel[1] *= scale + pixel[2];
        pixel[2] *= scale;
    }
    kernel void reread(global float* pixels, float scale) {
        global float* pixel = pixels + 2 * get_global_id(0);
        pixel[0] *= scale;
        pixel[1] += ((global volatile float*)pixel)[0] + scale;
    }
    kernel void words(global int* pixels, int scale) {
        global int* pixel = pixels + 2 * get_global_id(0);
        pixel[0] *= scale;
        pixel[1] += ((global short*)pixel)[1] + scale;
    }
    typedef ushort __attribute__((may_alias)) Both;
    kernel void halves(global uchar* pixels, int scale) {
        global uchar* pixel = pixels + 2 * get_global_id(0);
        pixel[0] *= scale;
        pixel[1] += *(global Both*)pixel >> 3;
    }
    kernel void through_another(global int* pixels, global const int* same, int scale) {
        pixels[2 * get_global_id(0)] *= scale;
        pixels[2 * get_global_id(0) + 1] += same[2 * get_global_id(0) + 1] + scale;
    })";

TEST(MaskedStructures, WhoseMembersChangeInTurns_StayInTheOrderOfMemory) {
    Compiled program(changed_in_turns, processor_with_512_bits);
    ASSERT_EQ(program.prepare("scaled", true, {64, 1, 1}, Ends::whole, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.width, 16U) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "gather") || has(program, "scatter")) << program.optimised();
}

TEST(MaskedStructures, WhoseMembersChangeInTurns_AreRight) {
    Compiled program(changed_in_turns);
    std::vector<float> data(3 * structure_items), expected(3 * structure_items);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("scaled", false, {}, Ends::ragged, lanes), "");
        std::iota(data.begin(), data.end(), -30.0F);
        expected = data;
        for (size_t i = 0; i < structure_items; ++i) {
            float* const pixel = &expected[3 * i];
            pixel[0] *= 3;
            pixel[1] *= 3 + pixel[2];
            pixel[2] *= 3;
        }
        program.run({1, {structure_items, 1, 1}, {50, 1, 1}}, Arguments().add(data.data()).add(3.0F));
        EXPECT_EQ(data, expected);
        ASSERT_EQ(program.prepare("reread", false, {}, Ends::ragged, lanes), "");
        std::iota(data.begin(), data.end(), -30.0F);
        expected = data;
        for (size_t i = 0; i < structure_items; ++i) {
            expected[2 * i] *= 3;
            expected[2 * i + 1] += expected[2 * i] + 3;
        }
        program.run({1, {structure_items, 1, 1}, {50, 1, 1}}, Arguments().add(data.data()).add(3.0F));
        EXPECT_EQ(data, expected);
        ASSERT_EQ(program.prepare("words", false, {}, Ends::ragged, lanes), "");
        std::vector<int> whole(2 * structure_items), expected_whole;
        std::iota(whole.begin(), whole.end(), 30000);
        expected_whole = whole;
        for (size_t i = 0; i < structure_items; ++i) {
            expected_whole[2 * i] *= 7;
            expected_whole[2 * i + 1] += static_cast<int16_t>(expected_whole[2 * i] >> 16) + 7;
        }
        program.run({1, {structure_items, 1, 1}, {50, 1, 1}}, Arguments().add(whole.data()).add(7));
        EXPECT_EQ(whole, expected_whole);
    }
}

// No store of the structure may wait for the last one: what is loaded before it has the stored bytes, which LLVM does not see.
TEST(MaskedStructures, WhoseChangedMembersAreLoadedInOtherWays_AreRight) {
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(changed_in_turns, processor);
        ASSERT_EQ(program.prepare("halves", false, {}, Ends::ragged, Lanes::wherever_possible), "");
        std::vector<uint8_t> bytes(2 * structure_items), expected_bytes;
        std::iota(bytes.begin(), bytes.end(), uint8_t{9});
        expected_bytes = bytes;
        for (size_t i = 0; i < structure_items; ++i) {
            uint8_t* const pixel = &expected_bytes[2 * i];
            pixel[0] = static_cast<uint8_t>(pixel[0] * 7);
            pixel[1] = static_cast<uint8_t>(pixel[1] + ((pixel[0] + 256 * pixel[1]) >> 3));
        }
        program.run({1, {structure_items, 1, 1}, {50, 1, 1}}, Arguments().add(bytes.data()).add(7));
        EXPECT_EQ(bytes, expected_bytes) << processor;
        ASSERT_EQ(program.prepare("through_another", false, {}, Ends::ragged, Lanes::wherever_possible), "");
        std::vector<int> whole(2 * structure_items + 1), expected_whole;
        std::iota(whole.begin(), whole.end(), -50);
        expected_whole = whole;
        for (size_t i = 0; i < structure_items; ++i) {
            expected_whole[2 * i + 1] *= 7;
            expected_whole[2 * i + 2] += expected_whole[2 * i + 1] + 7;
        }
        program.run({1, {structure_items, 1, 1}, {50, 1, 1}},
                    Arguments().add(whole.data() + 1).add(whole.data()).add(7));
        EXPECT_EQ(whole, expected_whole) << processor;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
