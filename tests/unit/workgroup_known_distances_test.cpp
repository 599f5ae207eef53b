// Lanes that are a known distance apart, and load or store one by one where gathers and scatters take longer.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* processor_with_quick_gathers = "icelake-server";
constexpr unsigned side = 16, padded = side + 1;

std::string transposition(const std::string& guard, const std::string& type = "int") {
    return "typedef " + type + R"( T;
    kernel void k(global const T* in, global T* out, local T* tile, int width, int height) {
        const int x = get_local_id(0), y = get_local_id(1);
        tile[y * 17 + x] = in[get_global_id(1) * width + get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        )" +
           guard + R"( out[get_global_id(1) * height + get_global_id(0)] = tile[x * 17 + y];
    })";
}

size_t gathers_for(const std::string& source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k", true, {side, side, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    return count(program, "call <16 x i32> @llvm.masked.gather");
}

constexpr const char* below_a_limit = "if ((int)get_global_id(0) < height - 3)";

TEST(KnownDistances, OfAllLanes_AreLoadedOneByOneWhereGathersAreSlow) {
    EXPECT_EQ(gathers_for(transposition(""), processor_with_512_bits), 0);
    EXPECT_GT(gathers_for(transposition(""), processor_with_quick_gathers), 0);
}

// Some of the lanes gather, since places of the others may not be readable.
TEST(KnownDistances, UnderAMask_AreLoadedOneByOneIfAllLanesAreActive) {
    Compiled program(transposition(below_a_limit), processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {side, side, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    EXPECT_EQ(count(program, "call <16 x i32> @llvm.masked.gather"), 1);
    EXPECT_GE(count(program, "insertelement <16 x i32>"), side) << program.optimised();
}

TEST(KnownDistances, OfAllLanes_AreStoredOneByOneWhereScattersAreSlow) {
    constexpr const char* source = R"(
        kernel void k(global const int* in, global int* out) {
            out[get_global_id(0) * 12] = in[get_global_id(0)] * 3;
        })";
    for (const char* processor : {processor_with_512_bits, processor_with_quick_gathers}) {
        Compiled program(source, processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_EQ(has(program, "@llvm.masked.scatter.v16i32"), processor != std::string(processor_with_512_bits));
    }
}

template <class T>
void expect_transposition(const std::string& type, const std::string& guard, int limit, const char* processor) {
    Compiled program(transposition(guard, type), processor);
    ASSERT_EQ(program.prepare("k", true, {side, side, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    constexpr int width = 3 * side, height = width;
    std::vector<T> in(size_t{width} * height), out(size_t{width} * height, T{99}), expected = out;
    std::iota(in.begin(), in.end(), T{1});
    program.run({2, {width, height, 1}, {side, side, 1}},
                Arguments().add(in.data()).add(out.data()).add_local(sizeof(T) * side * padded).add(width).add(height));
    for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column)
            if (column < limit) {
                const int x = column % 16, y = row % 16;
                expected[index_of(row * height + column)] = in[index_of((row - y + x) * width + column - x + y)];
            }
    EXPECT_EQ(out, expected) << type << " " << limit << " " << processor;
}

template <class T>
void expect_transpositions(const std::string& type) {
    for (const char* processor : {"", "skylake-avx512", "haswell", "x86-64-v2"}) {
        if (!runs_here(processor))
            continue;
        expect_transposition<T>(type, "", 1000, processor);
        for (const int limit : {0, 5, 16, 19, 32})
            expect_transposition<T>(type, "if ((int)get_global_id(0) < " + std::to_string(limit) + ")", limit,
                                    processor);
    }
}

TEST(KnownDistances, OfAllTypes_AreLoadedRightly) {
    expect_transpositions<int8_t>("char");
    expect_transpositions<int16_t>("short");
    expect_transpositions<int32_t>("int");
    expect_transpositions<float>("float");
    expect_transpositions<int64_t>("long");
    expect_transpositions<double>("double");
}

// Members of structures of which lanes load two at once, and store one.
TEST(KnownDistances, OfStructures_AreRight) {
    constexpr const char* source = R"(
        typedef struct { int a[9]; long b; int c, d; } S;
        kernel void k(global S* s, int limit) {
            const int i = get_global_id(0);
            if (i < limit) { s[i].a[3] = s[i].c * 2 + s[i].d; s[i].b = s[i].a[0]; }
        })";
    struct S {
        int32_t a[9];
        int64_t b;
        int32_t c, d;
        bool operator==(const S&) const = default;
    };
    constexpr int structure_count = 64;
    for (const char* processor : processors)
        for (const int limit : {0, 7, 16, 50, 64}) {
            if (!runs_here(processor))
                continue;
            Compiled program(source, processor);
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
            std::vector<S> structures(structure_count);
            for (int i = 0; i < structure_count; ++i)
                structures[index_of(i)] = {{i + 5, 1, 2, 3, 4, 5, 6, 7, 8}, -1, i * 10, i};
            std::vector<S> expected = structures;
            for (int i = 0; i < limit; ++i) {
                expected[index_of(i)].a[3] = i * 21;
                expected[index_of(i)].b = i + 5;
            }
            program.run({1, {structure_count, 1, 1}, {32, 1, 1}}, Arguments().add(structures.data()).add(limit));
            EXPECT_TRUE(structures == expected) << processor << " " << limit;
        }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
