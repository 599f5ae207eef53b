// Private arrays that stay in memory, because an index is a variable: the lanes' copies are interleaved.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A generator whose place in its state is the same for all work-items.
constexpr const char* generator = R"(
    kernel void k(global const uint* in, global uint* out, int n) {
        uint state[19], x = in[get_global_id(0)];
        for (int i = 0; i < 19; ++i) state[i] = x = x * 1812433253u + (uint)i;
        int at = 0;
        for (int i = 0; i < n; ++i) {
            int next = at + 1, middle = at + 9;
            if (next >= 19) next -= 19;
            if (middle >= 19) middle -= 19;
            state[at] = x = state[middle] ^ ((x & 0xfffffffeu) | (state[next] & 1u)) >> 1;
            at = next;
            out[(size_t)i * get_global_size(0) + get_global_id(0)] = x;
        }
    })";

TEST(PrivateArrays, WithOneIndexForAllLanes_AreReadAndWrittenInRows) {
    Compiled program(generator, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "masked.gather")) << program.optimised();
    EXPECT_FALSE(has(program, "masked.scatter")) << program.optimised();
}

TEST(PrivateArrays, WithOneIndexForAllLanes_AreRight) {
    Compiled program(generator);
    constexpr uint32_t items = 74, rounds = 60;
    std::vector<uint32_t> in(items), out(size_t{items} * rounds), expected(out.size());
    std::iota(in.begin(), in.end(), 7);
    for (uint32_t item = 0; item < items; ++item) {
        uint32_t state[19], x = in[item];
        for (uint32_t i = 0; i < 19; ++i)
            state[i] = x = x * 1812433253U + i;
        for (uint32_t i = 0; i < rounds; ++i) {
            x = state[(i + 9) % 19] ^ ((x & 0xfffffffeU) | (state[(i + 1) % 19] & 1U)) >> 1;
            expected[size_t{i} * items + item] = state[i % 19] = x;
        }
    }
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible})
        for (const uint64_t local : {uint64_t{2}, uint64_t{37}, uint64_t{74}}) {
            ASSERT_EQ(program.prepare("k", local == 2, {local, 1, 1}, WorkGroupOptions::Ends::whole, lanes), "");
            std::ranges::fill(out, 0U);
            program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(int{rounds}));
            EXPECT_EQ(out, expected) << local;
        }
}

// Elements side by side at an index of each work-item: in interleaved copies they are not side by side.
template <class T>
void expect_right_neighbours(const std::string& type) {
    Compiled program("typedef " + type + R"( T;
        kernel void k(global const T* in, global const uint* places, global T* out) {
            T copy[40];
            for (int i = 0; i < 40; ++i) copy[i] = in[i];
            size_t id = get_global_id(0);
            const T* at = copy + places[id];
            out[id] = (T)(at[0] + 3 * at[1]);
            out[id + get_global_size(0)] = (T)(at[10] + 3 * at[11] + 5 * at[12]);
            out[id + 2 * get_global_size(0)] = (T)(at[20] + 3 * at[21] + 5 * at[22] + 7 * at[23]);
        })");
    constexpr size_t items = 70;
    std::vector<T> in(40), out(3 * items), expected(out.size());
    std::iota(in.begin(), in.end(), T{3});
    std::vector<uint32_t> places(items);
    for (size_t id = 0; id < items; ++id) {
        const uint32_t at = places[id] = static_cast<uint32_t>(id * 11 % 16);
        expected[id] = static_cast<T>(in[at] + 3 * in[at + 1]);
        expected[id + items] = static_cast<T>(in[at + 10] + 3 * in[at + 11] + 5 * in[at + 12]);
        expected[id + 2 * items] = static_cast<T>(in[at + 20] + 3 * in[at + 21] + 5 * in[at + 22] + 7 * in[at + 23]);
    }
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, T{0});
        program.run({1, {items, 1, 1}, {35, 1, 1}}, Arguments().add(in.data()).add(places.data()).add(out.data()));
        EXPECT_EQ(out, expected) << type << (lanes == Lanes::none ? "" : ", lanes");
    }
}

TEST(PrivateArrays, WithElementsSideBySide_AreRight) {
    expect_right_neighbours<uint8_t>("uchar");
    expect_right_neighbours<uint16_t>("ushort");
    expect_right_neighbours<uint32_t>("uint");
    expect_right_neighbours<float>("float");
    expect_right_neighbours<uint64_t>("ulong");
}

// Elements of each size, at indices of each work-item, of all, and that go down; some work-items write.
template <class T>
void expect_right_elements(const std::string& type) {
    Compiled program("typedef " + type + R"( T;
        kernel void k(global const T* in, global T* out, int n) {
            size_t id = get_global_id(0);
            T counts[12] = {0}, before[12];
            for (int i = 0; i < n; ++i) {
                int own = (int)((id * 7 + i * 5) % 12);
                counts[own] += in[i];
                before[i % 12] = counts[(i * 3) % 12];
                if (id % 3 == 1) counts[11 - i % 12] = before[i % 12] + (T)2;
                out[i * get_global_size(0) + id] = (11 - own <= i ? before[11 - own] : (T)0) + counts[i % 12];
            }
        })");
    constexpr size_t items = 70, rounds = 41;
    std::vector<T> in(rounds), out(items * rounds), expected(out.size());
    std::iota(in.begin(), in.end(), T{3});
    for (size_t id = 0; id < items; ++id) {
        T counts[12] = {}, before[12] = {};
        for (size_t i = 0; i < rounds; ++i) {
            const size_t own = (id * 7 + i * 5) % 12;
            counts[own] = static_cast<T>(counts[own] + in[i]);
            before[i % 12] = counts[i * 3 % 12];
            if (id % 3 == 1)
                counts[11 - i % 12] = static_cast<T>(before[i % 12] + 2);
            const T read = 11 - own <= i ? before[11 - own] : T{0};
            expected[i * items + id] = static_cast<T>(read + counts[i % 12]);
        }
    }
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        for (const uint64_t local : {uint64_t{1}, uint64_t{33}, uint64_t{64}}) {
            std::ranges::fill(out, T{0});
            program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(int{rounds}));
            EXPECT_EQ(out, expected) << type << ' ' << local;
        }
    }
}

TEST(PrivateArrays, OfElementsOfEachSize_AreRight) {
    expect_right_elements<uint8_t>("uchar");
    expect_right_elements<uint16_t>("ushort");
    expect_right_elements<uint32_t>("uint");
    expect_right_elements<uint64_t>("ulong");
    expect_right_elements<double>("double");
}

// Bytes that are read as words, and words whose parts are written: an element is a word.
TEST(PrivateArrays, OfSeveralSizes_AreRight) {
    Compiled program(R"(
        kernel void k(global uint* out, int n) {
            union { uchar bytes[32]; ushort halves[16]; uint words[8]; } u;
            uint sum = 0;
            for (int i = 0; i < n; ++i) {
                u.bytes[i % 32] = (uchar)(get_global_id(0) * 3 + i);
                if (i % 32 == 31)
                    for (int j = 0; j < n % 8; ++j) {
                        u.halves[j * 2] ^= 0x101;
                        sum = sum * 31 + u.words[j];
                    }
            }
            out[get_global_id(0)] = sum;
        })");
    constexpr uint32_t items = 48, rounds = 103;
    std::vector<uint32_t> out(items), expected(items);
    for (uint32_t id = 0; id < items; ++id) {
        uint8_t bytes[32] = {};
        for (uint32_t i = 0; i < rounds; ++i) {
            bytes[i % 32] = static_cast<uint8_t>(id * 3 + i);
            for (uint32_t j = 0; i % 32 == 31 && j < rounds % 8; ++j) {
                bytes[size_t{4} * j] ^= 1;
                bytes[size_t{4} * j + 1] ^= 1;
                uint32_t word = 0;
                std::memcpy(&word, bytes + size_t{4} * j, 4);
                expected[id] = expected[id] * 31 + word;
            }
        }
    }
    for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, 0U);
        program.run({1, {items, 1, 1}, {16, 1, 1}}, Arguments().add(out.data()).add(int{rounds}));
        EXPECT_EQ(out, expected);
    }
}

// A text whose bytes are put together in words, as hashes do it.
TEST(PrivateArrays, WithPartsOfWordsAtOneIndexForAllLanes_AreRows) {
    Compiled program(R"(
        kernel void k(global const uchar* in, global uint* out, int n) {
            uint words[16];
            uchar* bytes = (uchar*)words;
            uint sum = get_global_id(0);
            for (int i = 0; i < n; ++i) {
                bytes[i & 63] = in[i] + (uchar)sum;
                if ((i & 63) == 63)
                    for (int j = 0; j < n % 16; ++j) sum = rotate(sum, 5u) ^ words[j] + bytes[(j * 7 + n) & 63];
            }
            out[get_global_id(0)] = sum;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0) << program.result().lanes.reason;
    for (const char* const access : {"masked.gather", "masked.scatter"})
        EXPECT_FALSE(has(program, access)) << program.optimised();
}

// Parts of words of 4 and 8 bytes, of each size, with and without a mask, at one index for all work-items and at one of each.
TEST(PrivateArrays, WithPartsOfWords_AreRight) {
    constexpr size_t items = 70;
    constexpr int rounds = 75;
    constexpr const char* parts = R"(
        kernel void k(global const ulong* in, global ulong* out, int n) {
            union { uchar bytes[64]; ushort halves[32]; uint words[16]; float numbers[16]; ulong longs[WORDS]; } u;
            const uint id = get_global_id(0);
            for (int i = 0; i < 16; ++i) u.words[i] = (uint)in[i] * (id + 1);
            ulong sum = 0;
            for (int i = 0; i < n; ++i) {
                const uint own = (id * 7 + i * 5);
                u.bytes[own & 63] += (uchar)in[i];
                u.halves[i & 31] = (ushort)(in[i] + sum);
                if (own % 3 == 1) {
                    u.bytes[(i * 11) & 63] ^= (uchar)sum;
                    u.words[(own >> 1) & 15] -= (uint)(sum >> 7);
                    sum = sum * 31 + u.halves[(own >> 2) & 31];
                }
                if (own % 5 < 2 && i > n - 9) u.numbers[(uint)in[i] & 15] = (float)(own & 1023);
                sum = sum * 31 + u.bytes[i & 63] + u.halves[own & 31] * 3ul + u.words[(i * 3) & 15] * 7ul + LONG;
            }
            out[id] = sum;
        })";
    std::vector<uint64_t> in(rounds), out(items);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = (i + 1) * 0x9e3779b97f4a7c15U;
    for (const bool with_longs : {false, true}) {
        const std::string defines = with_longs
                                        ? "#define WORDS 8\n#define LONG u.longs[i & 7] + u.longs[(own >> 3) & 7]\n"
                                        : "#define WORDS 1\n#define LONG 0\n";
        std::vector<uint64_t> expected;
        for (const std::string processor : processors) {
            if (!runs_here(processor))
                continue;
            Compiled program(defines + parts, processor);
            for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
                for (const uint64_t local : {uint64_t{33}, uint64_t{70}}) {
                    std::ranges::fill(out, 0U);
                    program.run({1, {items, 1, 1}, {local, 1, 1}},
                                Arguments().add(in.data()).add(out.data()).add(int{rounds}));
                    if (expected.empty())
                        expected = out;  // of work-items that run one after the other
                    EXPECT_EQ(out, expected) << processor << ' ' << local;
                }
            }
        }
    }
}

// An array is set to zero, by all work-items or by some.
TEST(PrivateArrays, ThatAreFilled_AreRight) {
    Compiled program(R"(
        typedef struct { uint numbers[24]; } State;
        kernel void k(global uint* out, int n, int bound) {
            State state;
            for (int i = 0; i < 24; ++i) state.numbers[i] = 5;
            uint sum = 0;
            for (int i = 0; i < n; ++i) {
                if (i % 7 == 3) state = (State){0};
                if ((int)get_local_id(0) * i % 11 < bound) state = (State){0};
                state.numbers[i % 24] += (uint)get_global_id(0) + 1;
                sum = sum * 31 + state.numbers[(i * 5) % 24];
            }
            out[get_global_id(0)] = sum;
        })");
    constexpr uint32_t items = 48, rounds = 50;
    for (const uint32_t bound : {0U, 1U, 9U}) {
        std::vector<uint32_t> out(items), expected(items);
        for (uint32_t id = 0; id < items; ++id) {
            uint32_t state[24];
            std::ranges::fill(state, 5U);
            for (uint32_t i = 0; i < rounds; ++i) {
                if (i % 7 == 3 || id % 16 * i % 11 < bound)
                    std::ranges::fill(state, 0U);
                state[i % 24] += id + 1;
                expected[id] = expected[id] * 31 + state[i * 5 % 24];
            }
        }
        for (const Lanes lanes : {Lanes::none, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            std::ranges::fill(out, 0U);
            program.run({1, {items, 1, 1}, {16, 1, 1}},
                        Arguments().add(out.data()).add(int{rounds}).add(static_cast<int>(bound)));
            EXPECT_EQ(out, expected) << bound;
        }
    }
}

// Each lane's stack has a height of its own after a few rounds. Lanes that access it as a row would ask in vain.
TEST(PrivateArrays, StacksOfADivergentLoop_AreNoRows) {
    Compiled program(R"(
        kernel void k(global uint* out, uint all) {
            uint columns[12], left[12], right[12], free[12], count = 0;
            int height = 0;
            columns[0] = 1u << get_global_id(0) % 10;
            left[0] = columns[0] << 1;
            right[0] = columns[0] >> 1;
            free[0] = all & ~(columns[0] | left[0] | right[0]);
            while (height >= 0) {
                uint choices = free[height];
                if (choices == 0) {
                    height--;
                    continue;
                }
                uint queen = choices & -choices;
                free[height] = choices ^ queen;
                uint taken = columns[height] | queen;
                if (taken == all) {
                    count++;
                    continue;
                }
                uint to_left = (left[height] | queen) << 1, to_right = (right[height] | queen) >> 1;
                height++;
                columns[height] = taken;
                left[height] = to_left;
                right[height] = to_right;
                free[height] = all & ~(taken | to_left | to_right);
            }
            out[get_global_id(0)] = count;
        })",
                     "haswell");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 0U);
    EXPECT_EQ(program.result().lanes.reason, "lanes would be slower");
}

// A median is found in the first elements: each further one replaces the least, while the greatest is left out. LLVM removes the loop of a single row of
// further elements after it has looked at the loops inside; with several rows, the part of the array is known only where rows end.
constexpr const char* median = R"(
    #define ORDER(a, b) { float least = min(a, b); b = max(a, b); a = least; }
        kernel void k(global const float* in, global float* out, int n) {
            const int i = get_global_id(0);
            float v[FIRST];
            for (int j = 0; j < FIRST; j++) v[j] = in[i + j];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (i >= n) return;
            int last = FIRST - 1;
            for (int row = 0; row < ROWS; row++)
                for (int j = 0; j < 3; j++) {
                    v[0] = in[i + FIRST + row * 3 + j];
                    last--;
                    for (int m = 0; m < (last + 1) / 2; m++) ORDER(v[m], v[last - m])
                    for (int m = 1; m <= last / 2; m++) ORDER(v[0], v[m])
                    for (int m = last - 1; m >= (last + 1) / 2; m--) ORDER(v[m], v[last])
                }
            out[i] = v[1];
        })";

void expect_median(size_t rows) {
    constexpr int items = 40;
    const size_t further = rows * 3, first = further + 3;
    Compiled program("#define ROWS " + std::to_string(rows) + "\n#define FIRST " + std::to_string(first) + median);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().private_bytes_per_work_item, 0U) << program.optimised();
    std::vector<float> in(items + first + further), out(items), expected(items);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i * 7 % 13);
    for (size_t i = 0; i < items; ++i) {
        std::vector<float> v(&in[i], &in[i + first]);
        const auto order = [&](size_t a, size_t b) {
            if (v[a] > v[b])
                std::swap(v[a], v[b]);
        };
        size_t last = first - 1;
        for (size_t j = 0; j < further; ++j) {
            v[0] = in[i + first + j];
            --last;
            for (size_t m = 0; m < (last + 1) / 2; ++m)
                order(m, last - m);
            for (size_t m = 1; m <= last / 2; ++m)
                order(0, m);
            for (size_t m = last - 1; m >= (last + 1) / 2; --m)
                order(m, last);
        }
        expected[i] = v[1];
    }
    program.run({1, {items, 1, 1}, {20, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(items));
    EXPECT_EQ(out, expected);
}

TEST(PrivateArrays, WhoseUsedPartShrinks_AreRegisters) { expect_median(1); }
TEST(PrivateArrays, WhoseUsedPartShrinksFromRowToRow_AreRegisters) { expect_median(2); }

// The program's number is for processors without large vectors.
TEST(PrivateArrays, OfLoopsThatAreUnrolledInPart_AreRegisters) {
    const auto bytes = [](const std::string& pragma) {
        Compiled program(R"(
            kernel void k(global const float* in, global float* out, int n) {
                float m[9];
            )" + pragma + R"(
                for (int i = 0; i < 9; i++) m[i] = in[get_global_id(0) * 9 + i];
                barrier(CLK_LOCAL_MEM_FENCE);
                const float x = get_global_id(0), w = x * m[6] + m[7] * n + m[8];
                out[get_global_id(0)] = (x * m[0] + m[1] * n + m[2]) / w + (x * m[3] + m[4] * n + m[5]) * w;
            })");
        EXPECT_EQ(program.prepare("k"), "");
        return program.result().private_bytes_per_work_item;
    };
    EXPECT_LT(bytes("#pragma unroll 3"), 9 * sizeof(float));
    EXPECT_GE(bytes("#pragma unroll 1"), 9 * sizeof(float));
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
