// Stores whose lanes are apart: two elements side by side are stored as one number.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

TEST(Scatters, OfPairs_AreOneScatter) {
    for (const std::string type : {"float2", "int2"}) {
        Compiled program("kernel void k(global " + type +
                             "* out, global const int* at, float x) {\n"
                             "  int i = get_global_id(0);\n"
                             "  out[at[i]] = (" +
                             type + ")(i * x, i + x); }",
                         processor_with_512_bits);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GT(count(program, "@llvm.masked.scatter.v16i64"), 0U) << program.optimised();
        EXPECT_EQ(count(program, "@llvm.masked.scatter.v16f32"), 0U) << program.optimised();
        EXPECT_EQ(count(program, "@llvm.masked.scatter.v16i32"), 0U) << program.optimised();
    }
}

// Bytes and shorts have no scatter of their own: four or eight of them are a number that has one.
TEST(Scatters, OfStructuresOfParts_AreScattersOfNumbers) {
    Compiled program(R"(
        kernel void bytes(global uchar* out, global const int* at) {
            int i = get_global_id(0);
            global uchar* to = out + 16 * at[i];
            for (int j = 0; j < 16; ++j) to[j] = i * j;
        }
        kernel void shorts(global ushort* out, global const int* at) {
            int i = get_global_id(0);
            global ushort* to = out + 4 * at[i];
            to[0] = i; to[1] = i + 1; to[2] = i - 1; to[3] = i * i;
        })",
                     processor_with_512_bits);
    for (const char* kernel : {"bytes", "shorts"}) {
        ASSERT_EQ(program.prepare(kernel, false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GT(count(program, "@llvm.masked.scatter.v16i64"), 0U) << program.optimised();
        EXPECT_EQ(count(program, "@llvm.masked.scatter.v16i8") + count(program, "@llvm.masked.scatter.v16i16"), 0U);
    }
}

// Four words are one store of each lane: the vectors of the words exchange them.
TEST(Scatters, OfFourWords_AreAStoreOfEachLane) {
    for (const auto& [processor, lanes] : {std::pair{processor_with_512_bits, 16U},
                                           std::pair{processor_with_256_bits, 8U}, std::pair{"x86-64-v2", 4U}}) {
        Compiled program(R"(
            kernel void k(global float* out, global const int* at, float x) {
                int i = get_global_id(0);
                global float* to = out + 4 * at[i];
                to[0] = i; to[1] = i * x; to[2] = i + x; to[3] = x - i;
            })",
                         processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GE(count(program, "store <4 x float>"), lanes) << program.optimised();
        EXPECT_FALSE(has(program, "masked.scatter") || has(program, "store i64")) << program.optimised();
    }
}

constexpr Lanes both_ways[] = {Lanes::none, Lanes::wherever_possible};

// Three elements, in this order and the other, where some work-items store nothing.
template <class T>
void expect_right_structures(const std::string& type) {
    Compiled program("typedef " + type + R"( T;
        kernel void k(global T* up, global T* down, global const int* at) {
            int i = get_global_id(0), p = at[i];
            up[4 * i] = (T)i; up[4 * (i ^ 5) + 1] = (T)(i + 1); up[4 * (i ^ 5) + 2] = (T)(i + 2); up[4 * (i ^ 5) + 3] = (T)(i + 3);
            if (p >= 0) {
                down[4 * p + 2] = (T)(i + 2); down[4 * p + 1] = (T)(i + 1); down[4 * p] = (T)i;
            }
        })");
    constexpr size_t items = 72;
    std::vector<int> at(items);
    std::vector<T> up(4 * items), down(4 * items), expected_up(up), expected_down(4 * items, T{9});
    for (size_t i = 0; i < items; ++i) {
        at[i] = i % 5 == 2 ? -1 : static_cast<int>(i * 7 % items);
        expected_up[4 * i] = static_cast<T>(i);
        for (size_t j = 1; j < 4; ++j)
            expected_up[4 * (i ^ 5U) + j] = static_cast<T>(i + j);
        for (size_t j = 0; j < 3 && at[i] >= 0; ++j)
            expected_down[4 * static_cast<size_t>(at[i]) + j] = static_cast<T>(i + j);
    }
    for (const Lanes lanes : both_ways)
        for (const uint64_t local : {uint64_t{2}, uint64_t{24}, uint64_t{72}}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            std::ranges::fill(up, T{0});
            std::ranges::fill(down, T{9});
            program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(up.data()).add(down.data()).add(at.data()));
            EXPECT_EQ(up, expected_up) << type << ", local size " << local;
            EXPECT_EQ(down, expected_down) << type << ", local size " << local;
        }
}

// Seven elements: a number of four, one of two and a single one; some work-items store nothing, and the last bytes are not written.
template <class T>
void expect_right_runs(const std::string& type) {
    Compiled program("typedef " + type + R"( T;
        kernel void k(global T* out, global const int* at) {
            int i = get_global_id(0), p = at[i];
            if (p >= 0)
                for (int j = 6; j >= 0; --j) out[p * 9 + j] = (T)(i + 3 * j);
        })");
    constexpr size_t items = 72, step = 9, stored = 7;
    std::vector<int> at(items);
    std::vector<T> out(step * items), expected(step * items, T{9});
    for (size_t i = 0; i < items; ++i) {
        at[i] = i % 5 == 2 ? -1 : static_cast<int>(i * 7 % items);
        for (size_t j = 0; j < stored && at[i] >= 0; ++j)
            expected[step * static_cast<size_t>(at[i]) + j] = static_cast<T>(i + 3 * j);
    }
    for (const Lanes lanes : both_ways)
        for (const uint64_t local : {uint64_t{2}, uint64_t{24}, uint64_t{72}}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            std::ranges::fill(out, T{9});
            program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(out.data()).add(at.data()));
            EXPECT_EQ(out, expected) << type << ", local size " << local;
        }
}

TEST(Scatters, OfRunsOfAnyLength_AreRight) {
    expect_right_runs<uint8_t>("uchar");
    expect_right_runs<uint16_t>("ushort");
    expect_right_runs<float>("float");
    expect_right_runs<uint64_t>("ulong");
}

TEST(Scatters, OfStructures_AreRight) {
    expect_right_structures<uint8_t>("uchar");
    expect_right_structures<uint16_t>("ushort");
    expect_right_structures<uint32_t>("uint");
    expect_right_structures<float>("float");
    expect_right_structures<uint64_t>("ulong");
}

// The second element would be the partner of the third, which is stored together with the fourth.
TEST(Scatters, BesideARow_LoseNoElement) {
    Compiled program(R"(
        kernel void k(global int* out, global const int* zeros) {
            size_t first = 2 * get_global_id(0);
            global int* to = out + first;
            to[0] = 7 * (int)first;
            int zero = zeros[get_global_id(0)];
            to[1] = 7 * (int)first + 7 + zero;
            to[2] = 7 * (int)first + 14 + zero;
            to[3] = 7 * (int)first + 21 + zero;
        })");
    constexpr size_t items = 64;
    const std::vector<int> zeros(items);
    std::vector<int> out(2 * items + 2), expected(out.size());
    for (size_t i = 0; i < expected.size(); ++i)
        expected[i] = static_cast<int>(7 * i);
    for (const Lanes lanes : both_ways) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        std::ranges::fill(out, -1);
        program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(out.data()).add(zeros.data()));
        EXPECT_EQ(out, expected);
    }
}

// The lanes' copies of such an array are interleaved where an index is the same for all of them.
TEST(Scatters, IntoPrivateArrays_AreRight) {
    Compiled program(R"(
        kernel void k(global const int* at, global int* out, int n) {
            int a[16], i = get_global_id(0), sum = 0;
            for (int j = 0; j < 16; ++j) a[j] = j;
            for (int j = 0; j < n; ++j) { a[at[i] + 2 * j] = i; a[at[i] + 2 * j + 1] = i + 1; }
            for (int j = 0; j < 16; ++j) sum = sum * 3 + a[j];
            out[i] = sum;
        })");
    constexpr size_t items = 64;
    constexpr int rounds = 3;
    std::vector<int> at(items), out(items), expected(items);
    for (size_t i = 0; i < items; ++i) {
        at[i] = static_cast<int>(i * 5 % 11);
        int a[16];
        std::iota(std::begin(a), std::end(a), 0);
        for (size_t j = 0; j < 2 * rounds; ++j)
            a[static_cast<size_t>(at[i]) + j] = static_cast<int>(i + j % 2);
        uint32_t sum = 0;
        for (const int element : a)
            sum = sum * 3 + static_cast<uint32_t>(element);
        expected[i] = static_cast<int>(sum);
    }
    for (const Lanes lanes : both_ways) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        program.run({1, {items, 1, 1}, {items, 1, 1}}, Arguments().add(at.data()).add(out.data()).add(rounds));
        EXPECT_EQ(out, expected);
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
