// Loops that copy bytes copy words (frame/byte_copies.h), and pointers that walk through private arrays are indices (frame/private_indices.h).
#include "workgroup_harness.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A structure of words is made, and copied byte by byte as C's memcpy does it. `copies`: statements.
std::string copying(const std::string& copies) {
    return R"(
        typedef struct { uint rounds, words[60]; } State;
        void copy_to_global(global void* restrict to, const void* restrict from, uint bytes) {
            const char* s = from;
            global char* d = to;
            while (bytes--) *d++ = *s++;
        }
        void copy_from_global(void* restrict to, global const void* restrict from, uint bytes) {
            global const char* s = from;
            char* d = to;
            while (bytes--) *d++ = *s++;
        }
        kernel void k(global const State* in, global State* out, global uchar* bytes, int n) {
            const uint id = get_global_id(0);
            State state;
        )" +
           copies + "}";
}

TEST(ByteCopies, OfStructures_CopyWords) {
    Compiled program(copying(R"(
        copy_from_global(&state, in + id, sizeof(State));
        for (int i = 0; i < n; ++i) state.words[i % 60] += state.words[(i + 7) % 60] ^ id;
        copy_to_global(out + id, &state, sizeof(State));)"),
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_FALSE(has(program, "load i8")) << program.optimised();
    EXPECT_FALSE(has(program, "<16 x i8>")) << program.optimised();
}

TEST(ByteCopies, OfStructures_AreRight) {
    Compiled program(copying(R"(
        copy_from_global(&state, in + id, sizeof(State));
        for (int i = 0; i < n; ++i) state.words[i % 60] += state.words[(i + 7) % 60] ^ id;
        copy_to_global(out + id, &state, sizeof(State));)"));
    constexpr uint32_t items = 70, words = 61, rounds = 77;
    std::vector<uint32_t> in(size_t{items} * words), out(in.size());
    std::vector<uint8_t> bytes(1);
    std::iota(in.begin(), in.end(), 0x12345678U);
    std::vector<uint32_t> expected = in;
    for (uint32_t id = 0; id < items; ++id) {
        uint32_t* const state = &expected[size_t{id} * words + 1];
        for (uint32_t i = 0; i < rounds; ++i)
            state[i % 60] += state[(i + 7) % 60] ^ id;
    }
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0U);
        program.run({1, {items, 1, 1}, {35, 1, 1}},
                    Arguments().add(in.data()).add(out.data()).add(bytes.data()).add(int{rounds}));
        EXPECT_EQ(out, expected);
    }
}

// Places that overlap, that are not aligned to words, whose distance is not known, and lengths that are no words.
TEST(ByteCopies, ThatAreNoCopiesOfWords_AreRight) {
    Compiled program(copying(R"(
        state.rounds = 0;
        for (int i = 0; i < 60; ++i) state.words[i] = in[id].words[i];
        uchar* own = (uchar*)&state;
        for (int i = 0; i < 80; ++i) own[i + 5] = own[i + 4];
        for (int i = 0; i < 72; ++i) own[i + 101] = own[i];
        for (int i = 0; i < 64; ++i) own[i + 176] = own[i + n];
        for (int i = 0; i < 67; ++i) bytes[id * 256 + i] = own[i + 176];
        for (int i = 0; i < 64; ++i) bytes[id * 256 + 68 + i] = bytes[id * 256 + i + 67];
        for (int i = 0; i < 240; ++i) ((global uchar*)out[id].words)[i] = own[i + 4];)"));
    constexpr size_t items = 40, words = 61, row = 256;
    constexpr int n = 3;
    std::vector<uint32_t> in(items * words), out(in.size()), expected_out(in.size());
    std::vector<uint8_t> bytes(items * row, 9), expected(items * row, 9);
    std::iota(in.begin(), in.end(), 0x12345678U);
    for (size_t id = 0; id < items; ++id) {
        uint8_t own[words * 4] = {};
        std::memcpy(own + 4, &in[id * words + 1], 240);
        for (size_t i = 0; i < 80; ++i)
            own[i + 5] = own[i + 4];
        for (size_t i = 0; i < 72; ++i)
            own[i + 101] = own[i];
        for (size_t i = 0; i < 64; ++i)
            own[i + 176] = own[i + n];
        uint8_t* const its = &expected[id * row];
        for (size_t i = 0; i < 67; ++i)
            its[i] = own[i + 176];
        for (size_t i = 0; i < 64; ++i)
            its[68 + i] = its[i + 67];
        std::memcpy(&expected_out[id * words + 1], own + 4, 240);
    }
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0U);
        std::ranges::fill(bytes, uint8_t{9});
        program.run({1, {items, 1, 1}, {20, 1, 1}},
                    Arguments().add(in.data()).add(out.data()).add(bytes.data()).add(int{n}));
        EXPECT_EQ(out, expected_out);
        EXPECT_EQ(bytes, expected);
    }
}

// Each copy lacks only one of the conditions: a length of words, bytes side by side, places that are aligned to words.
TEST(ByteCopies, ThatLackOneCondition_AreRight) {
    const std::string changes = "for (int i = 0; i < n; ++i) words[i % 60] += words[(i + 7) % 60] ^ id;";
    const std::string sources[] = {
        copying("copy_from_global(&state, in + id, sizeof(State)); uint* words = state.words;" + changes +
                "copy_to_global(out + id, &state, 242);"),
        copying("copy_from_global(&state, in + id, sizeof(State)); uint* words = state.words;" + changes +
                "const char* from = (const char*)&state; global char* to = (global char*)(out + id); int left = 120;"
                "while (left--) { *to++ = *from; from += 2; }"),
        copying("uint words[62]; words[0] = 0; copy_from_global((char*)words + 3, in + id, sizeof(State));" + changes +
                "copy_to_global(out + id, words, sizeof(State));")};
    constexpr uint32_t items = 70, words = 61, rounds = 77, untouched = 0x05060708;
    std::vector<uint32_t> in(size_t{items} * words), out(in.size());
    std::vector<uint8_t> bytes(1);
    std::iota(in.begin(), in.end(), 0x12345678U);
    for (size_t which = 0; which < std::size(sources); ++which) {
        std::vector<uint32_t> expected(in.size(), untouched);
        for (uint32_t id = 0; id < items; ++id) {
            uint32_t state[words + 1] = {};
            std::memcpy(reinterpret_cast<uint8_t*>(state) + (which == 2 ? 3 : 0), &in[size_t{id} * words], 4 * words);
            uint32_t* const changed = state + (which == 2 ? 0 : 1);
            for (uint32_t i = 0; i < rounds; ++i)
                changed[i % 60] += changed[(i + 7) % 60] ^ id;
            const auto* const from = reinterpret_cast<const uint8_t*>(state);
            auto* const to = reinterpret_cast<uint8_t*>(&expected[size_t{id} * words]);
            for (size_t i = 0; i < (which == 0 ? 242U : which == 1 ? 120U : 244U); ++i)
                to[i] = from[which == 1 ? 2 * i : i];
        }
        Compiled program(sources[which]);
        for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            std::ranges::fill(out, untouched);
            program.run({1, {items, 1, 1}, {35, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(bytes.data()).add(int{rounds}));
            EXPECT_EQ(out, expected) << which;
        }
    }
}

// The key schedule of a cipher.
constexpr const char* walking = R"(
    kernel void k(global const uint* in, global uint* out, int rounds) {
        uint keys[64];
        for (int i = 0; i < 4; ++i) keys[i] = in[get_global_id(0)] + i;
        uint* key = keys;
        for (int i = 0; i < rounds; ++i) {
            key[4] = key[0] ^ rotate(key[3], 8u) ^ i;
            key[5] = key[1] ^ key[4];
            key += 2;
            key[4] = key[0] ^ key[3];
            key[5] = key[1] ^ key[4];
            key += 2;
        }
        uint sum = 0;
        const uint* last = keys;
        for (int i = 0; i < 4 * rounds + 4; ++i) sum = sum * 31 + *last++;
        out[get_global_id(0)] = sum;
    })";

TEST(PrivateIndices, OfPointersThatWalk_AccessRows) {
    Compiled program(walking, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "masked.gather")) << program.optimised();
    EXPECT_FALSE(has(program, "masked.scatter")) << program.optimised();
}

TEST(PrivateIndices, OfPointersThatWalk_AreRight) {
    Compiled program(walking);
    constexpr uint32_t items = 70, rounds = 13;
    std::vector<uint32_t> in(items), out(items), expected(items);
    std::iota(in.begin(), in.end(), 5U);
    for (uint32_t id = 0; id < items; ++id) {
        uint32_t keys[64];
        for (uint32_t i = 0; i < 4; ++i)
            keys[i] = in[id] + i;
        uint32_t* key = keys;
        for (uint32_t i = 0; i < rounds; ++i, key += 4) {
            key[4] = key[0] ^ (key[3] << 8 | key[3] >> 24) ^ i;
            key[5] = key[1] ^ key[4];
            key[6] = key[2] ^ key[5];
            key[7] = key[3] ^ key[6];
        }
        for (const uint32_t* last = keys; last != key + 4; ++last)
            expected[id] = expected[id] * 31 + *last;
    }
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0U);
        program.run({1, {items, 1, 1}, {35, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(int{rounds}));
        EXPECT_EQ(out, expected);
    }
}

// Two steps of different lengths in each iteration.
TEST(PrivateIndices, OfPointersWithSeveralSteps_AreRight) {
    constexpr const char* source = R"(
        kernel void k(global const uint* in, global uint* out, int rounds) {
            uint keys[64];
            for (int i = 0; i < 64; ++i) keys[i] = in[get_global_id(0)] * i;
            uint* key = keys;
            uint sum = 0;
            for (int i = 0; i < rounds; ++i) {
                sum = sum * 31 + *key;
                key += 1 + (sum & 1);
                *key ^= sum;
                key += i & 1;
            }
            out[get_global_id(0)] = sum;
        })";
    constexpr uint32_t items = 70, rounds = 21;
    std::vector<uint32_t> in(items), out(items), expected(items);
    std::iota(in.begin(), in.end(), 5U);
    for (uint32_t id = 0; id < items; ++id) {
        uint32_t keys[64];
        for (uint32_t i = 0; i < 64; ++i)
            keys[i] = in[id] * i;
        uint32_t* key = keys;
        for (uint32_t i = 0; i < rounds; ++i) {
            expected[id] = expected[id] * 31 + *key;
            key += 1 + (expected[id] & 1);
            *key ^= expected[id];
            key += i & 1;
        }
    }
    Compiled program(source);
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0U);
        program.run({1, {items, 1, 1}, {35, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(int{rounds}));
        EXPECT_EQ(out, expected);
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
