// Loops over work-items in which no work-item has an effect are left out, and bodies that one work-item enters run once. The results are
// compared with those of the same kernel without lanes, where each work-item comes to each guard.

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

constexpr int int_max = std::numeric_limits<int>::max(), int_min = std::numeric_limits<int>::min();

// A kernel over a range of two dimensions whose body stands under `guard`. `a` and `b` are ints that the guard may use; `u` and `v` are
// the same bits without a sign.
// `result`: int, or a vector of int.
std::string guarded(const std::string& guard, const std::string& result = "int") {
    return "kernel void k(global " + result +
           "* out, int a, int b) {"
           " const uint u = (uint)a, v = (uint)b;"
           " const size_t X = get_global_id(0), Y = get_global_id(1);"
           " const int x = X, y = Y, lx = get_local_id(0), ly = get_local_id(1);" +
           guard + " out[Y * get_global_size(0) + X] += 3 * x + y + 1; }";
}

std::vector<int> results_of(Compiled& program, const Range& range, int a, int b) {
    std::vector<int> out(range.global[0] * range.global[1]);
    program.run(range, Arguments().add(out.data()).add(a).add(b));
    return out;
}

constexpr const char* guards[] = {
    "if (x < a)",
    "if (x >= a || y >= b) return;",
    "if (y < b && x <= a)",
    "if (x > a && y > b)",
    "if (!(x >= a) && !(y < b))",
    "if (x == a)",
    "if (x == a && y == b)",
    "if (x != a && y == b)",
    "if (y != b || x == a)",
    "if (lx == a)",
    "if (ly == 0 && lx == b)",
    "if (lx == 0 || ly == 3)",
    "if ((uint)x < u)",
    "if ((uint)x - u <= v)",
    "if ((uint)y + u > v)",
    "if ((int)((uint)x + u) < b)",
    "if ((int)((uint)x + u) > b)",
    "if ((int)((uint)x + u) == b)",
    "if ((int)(u - (uint)x) >= b)",
    "if ((int)(u - (uint)y * 3u) < b)",
    "if ((int)((uint)x * 2u + 1u) < a)",
    "if (X < (size_t)(uint)a && Y >= (size_t)b)",
    "if ((int)((uint)x + (uint)y) < a)",
    "if (x >= a) if (y >= b) if (x < 40)",
    "if (x >= 1 && x < (int)(u - 1u) && y >= 1 && y < (int)(v - 1u))",
    "if (a < b)",
    "if (a < b && x < 5)",
    "if (x < a || y < b)",
    "if ((x < a && y == b) || x == 7)",
    "if ((x ^ y) == a)",
    "if (lx < a) { out[0] += 0; } if (y < b)",
    "if ((uint)x - 1u < u)",
    "if ((uint)x - 3u <= u && x <= b)",
    "if (X != 0 && x < a && (uint)x != v)",
    "if ((long)(int)((uint)x + u) < (long)b)",
    "if ((ulong)((uint)x + u) >= (ulong)v)",
    // Not the same in 32 bits, in which the sums wrap around.
    "if ((long)(int)((uint)x + u) < 3L * b)",
    "if ((long)(int)((uint)x + u) >= 3L * b)",
    "if ((ulong)((uint)x + u) < 3UL * v)",
    "if ((ulong)((uint)x + u) >= 3UL * v)",
    "if (X - (size_t)a < (size_t)b)",
    "if (x < a && out[Y * get_global_size(0) + X] == 0)",
    "int own[4]; if (x >= a) return; for (int i=0; i<4; ++i) own[i]=x*i; out[Y * get_global_size(0) + X] = own[b & 3];",
};

TEST(IdleLoops, GuardsOfAllKinds_KeepTheirWorkItems) {
    const std::pair<int, int> bounds[] = {{5, 3},          {0, 0},
                                          {-4, 2},         {17, 9},
                                          {1, 1},          {100, 100},
                                          {int_max, 4},    {int_min, 3},
                                          {-9, -1},        {int_max - 3, int_max},
                                          {int_min, -2},   {3, int_max},
                                          {-6, int_min},   {16, 0},
                                          {32, 7},         {int_max - 3, int_max / 3},
                                          {-9, 0x55555554}};
    const Range ranges[] = {{2, {40, 10, 1}, {20, 5, 1}}, {2, {40, 10, 1}, {16, 4, 1}}, {2, {36, 3, 1}, {36, 1, 1}}};
    const bool has_256_bits =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    for (const char* guard : guards) {
        Compiled every(guarded(guard)), skipping(guarded(guard));
        Compiled dividing(guarded(guard), has_256_bits ? processor_with_256_bits : "");  // passing_items
        for (const Range& range : ranges)
            for (const bool is_specialised : {false, true}) {
                const bool has_ends = range.global[0] % range.local[0] != 0 || range.global[1] % range.local[1] != 0;
                if (is_specialised && has_ends)
                    continue;
                ASSERT_EQ(every.prepare("k", is_specialised, range.local, WorkGroupOptions::Ends::ragged, Lanes::none),
                          "");
                for (Compiled* lanes : {&skipping, &dividing}) {
                    ASSERT_EQ(lanes->prepare("k", is_specialised, range.local), "");
                    for (const auto& [a, b] : bounds)
                        ASSERT_EQ(results_of(*lanes, range, a, b), results_of(every, range, a, b))
                            << guard << ", " << a << ' ' << b << ", groups of " << range.local[0];
                }
            }
    }
}

// Whether groups in which no work-item passes the guard go around all loops. LLVM may have merged the block behind the question into others.
bool asks_before_loops(const Compiled& program) {
    const std::string& code = program.optimised();
    const size_t begin = code.find("\nprologue:");
    const std::string prologue = code.substr(begin, code.find("\n\n", begin) - begin);
    return has(program, "items.some") || prologue.find("label %items.done") != std::string::npos;
}

TEST(IdleLoops, GuardsOfRowsAndColumns_AreTestedBeforeTheLoops) {
    for (const char* guard : {"if (x < a && y < b)", "if (x >= a || y >= b) return;", "if (y == b)",
                              "int own[4]; if (x >= a || y >= b) return; for (int i = 0; i < 4; ++i) own[i] = x * i; "
                              "out[a] = own[b & 3];"}) {
        Compiled program(guarded(guard));
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_TRUE(asks_before_loops(program)) << guard << program.optimised();
    }
    // An effect before the guard.
    Compiled program(guarded("out[Y * get_global_size(0) + X] = 2; if (x < a)"));
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(asks_before_loops(program)) << program.optimised();
}

constexpr const char* sums = R"(
    kernel void k(global int* out, global const int* in, local int* tile) {
        int x = get_local_id(0), n = get_local_size(0);
        tile[x] = in[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int h = n / 2; h > 0; h /= 2) {
            if (x < h) tile[x] += tile[x + h];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (x == 0) out[get_group_id(0)] = tile[0];
    })";

TEST(IdleLoops, ABodyOfOneWorkItem_RunsOnceBehindABarrier) {
    Compiled program(R"(
        kernel void k(global int* out, global const int* in, local int* tile) {
            int x = get_local_id(0);
            tile[x] = in[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (x == 0) out[get_group_id(0)] = tile[0] + tile[get_local_size(0) - 1];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1u);  // what follows the barrier is no loop
    EXPECT_EQ(program.result().lanes.scalar_loops, 0u) << program.result().lanes.reason;
    EXPECT_FALSE(has(program, "masked.scatter")) << program.optimised();
    Compiled here(sums);
    ASSERT_EQ(here.prepare("k"), "");
    std::vector<int> in(96), out(3), expected(3);
    std::iota(in.begin(), in.end(), -20);
    for (size_t i = 0; i < in.size(); ++i)
        expected[i / 32] += in[i];
    here.run({1, {96, 1, 1}, {32, 1, 1}}, Arguments().add(out.data()).add(in.data()).add_local(32 * sizeof(int)));
    EXPECT_EQ(out, expected);
}

// Only the first work-item has an effect between the barriers, so there is one loop over work-items before them and one behind.
TEST(FirstItem, ARegionInWhichItIsAlone_HasNoLoops) {
    for (const char* guard :
         {"get_local_linear_id() == 0", "(get_local_id(0) | get_local_id(1) | get_local_id(2)) == 0",
          "!(get_local_id(2) || get_local_id(0)) && (int)get_local_id(1) == 0"}) {
        Compiled program(std::string("kernel void k(global int* out, global const int* in, local int* tile) {"
                                     " tile[get_local_id(0)] = in[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);"
                                     " if (") +
                             guard +
                             ") tile[0] = tile[1] / tile[2]; barrier(CLK_LOCAL_MEM_FENCE);"
                             " out[get_global_id(0)] = tile[0]; }",
                         processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.loops + program.result().lanes.scalar_loops, 2U) << guard;
    }
}

// The lifetime of the structure begins before the guard.
constexpr const char* sorted_pairs = R"(
    typedef struct { int key, value[15]; } Pair;
    kernel void k(global Pair* pairs, global const int* counts) {
        global Pair* own = pairs + 8 * get_group_id(0);
        Pair other;
        if (get_local_id(0) == 0)
            for (int i = 1; i < counts[get_group_id(0)]; ++i)
                for (int k = i; k > 0 && own[k].key < own[k - 1].key; --k) {
                    other = own[k];
                    own[k] = own[k - 1];
                    own[k - 1] = other;
                }
    })";

TEST(FirstItem, WithAStructureOfItsOwn_HasNoLanes) {
    Compiled program(sorted_pairs);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 0U);
    std::vector<int> pairs(size_t{16} * 8 * 4), counts { 8, 0, 5, 1 };
    for (size_t i = 0; i < pairs.size(); ++i)
        pairs[i] = i % 16 == 0 ? static_cast<int>(i * 7 % 37) : static_cast<int>(i / 16);
    program.run({1, {64, 1, 1}, {16, 1, 1}}, Arguments().add(pairs.data()).add(counts.data()));
    for (size_t group = 0; group < counts.size(); ++group)
        for (int k = 1; k < counts[group]; ++k) {
            const size_t here = 16 * (8 * group + static_cast<size_t>(k));
            EXPECT_LE(pairs[here - 16], pairs[here]) << group << ' ' << k;
            EXPECT_EQ(pairs[here], static_cast<int>(size_t{16} * static_cast<size_t>(pairs[here + 1]) * 7 % 37));
        }
}

TEST(FirstItem, WhereOnlyItIsAskedFor_RowsHaveNoIds) {
    Compiled program("kernel void k(global int* out) { if (get_local_linear_id() == 0) out[get_global_id(0)] = 1; }");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has(program, "items.y")) << program.optimised();
}

// `l` is the place of the work-item in its group; `x`, `y` and `z` are its ids. `sum` is the group's, `cell` and `kept` are the work-item's.
// `leaves` work-items have left.
constexpr const char* statements_of_first_items[] = {
    "if (get_local_linear_id() == 0) *sum = tile[leaves + 1] + r;",
    "if (get_local_linear_id() != 0) kept += 1; else *sum = tile[leaves] * 3;",
    "if (x == 0 && y == 0 && z == 0) for (int i = leaves; i <= leaves + r; ++i) *sum += tile[i];",
    "if (x == 0) *sum = 7 + r;",
    "if (y == 0 && x == 0) cell[0] += 5;",
    "if ((y | z) == 0) cell[0] -= r;",
    "const int next = tile[leaves + r]; if (get_local_linear_id() == 0) *sum = r; kept = next;",
    "const int mine = tile[l] ^ r; if (get_local_linear_id() == 0) *sum = r; kept = mine;",
    "int own[4]; own[r] = l; if (get_local_linear_id() == 0) *sum = own[r] + 9; kept = own[r];",
    "if (x == 0 || y == 0) cell[0] += 1; if (get_local_linear_id() == 0) *sum = 1;",
    "if (get_local_linear_id() == 0) cell[0] += 100;",
    "if (get_local_linear_id() == 0) *sum = 3; cell[0] ^= r;",
    "if (x == 0 && y == 0) if (z == 0) *sum = tile[leaves + 3];",
};

std::string between_barriers(const std::string& statement) {
    return "kernel void k(global int* out, local int* tile, local int* sum, int leaves) {"
           " const int x = get_local_id(0), y = get_local_id(1), z = get_local_id(2), l = get_local_linear_id();"
           " global int* cell = out + l; int kept = l;"
           " if (l < leaves) return;"
           " if (l == leaves) *sum = 0;"
           " tile[l] = l * 5; barrier(CLK_LOCAL_MEM_FENCE);"
           " for (int r = 0; r < 3; ++r) { " +
           statement +
           " barrier(CLK_LOCAL_MEM_FENCE); kept += *sum; barrier(CLK_LOCAL_MEM_FENCE); }"
           " cell[32] = kept; }";
}

// Code without lanes has all loops.
TEST(FirstItem, WhatOtherWorkItemsDo_IsDone) {
    const std::array<uint64_t, 3> sizes[] = {{24, 1, 1}, {1, 24, 1}, {6, 4, 1}, {2, 3, 4}};
    for (const std::string statement : statements_of_first_items)
        for (const bool returns : {false, true}) {
            std::string source = between_barriers(statement);
            if (!returns)
                source.erase(source.find(" if (l < leaves) return;"), std::string(" if (l < leaves) return;").size());
            Compiled program(source);
            const auto run = [&](const std::array<uint64_t, 3>& size) {
                std::vector<int> out(64, 1);
                program.run({3, size, size},
                            Arguments().add(out.data()).add_local(32 * sizeof(int)).add_local(16).add(returns ? 2 : 0));
                return out;
            };
            std::vector<std::vector<int>> expected;
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
            for (const auto& size : sizes)
                expected.push_back(run(size));
            ASSERT_EQ(program.prepare("k"), "");
            for (size_t i = 0; i < std::size(sizes); ++i)
                EXPECT_EQ(run(sizes[i]), expected[i]) << source << i;
            ASSERT_EQ(program.prepare("k", true, sizes[2], WorkGroupOptions::Ends::whole), "");
            EXPECT_EQ(run(sizes[2]), expected[2]) << source;
        }
}

constexpr const char* stencil = R"(
    kernel void k(global float* out, global const float* in, int n) {
        const int x = get_global_id(0), y = get_global_id(1);
        if (x >= 1 && x < n - 1 && y < n)
            out[y * n + x] = in[y * n + x - 1] + in[y * n + x + 1];
    })";

// The body in vectors stands in the code once with masks, and once without.
TEST(PassingItems, AGuardOfNeighbours_IsLeftOutWhereAllOfThemPass) {
    Compiled with_vectors_of_masks(stencil, processor_with_256_bits);
    ASSERT_EQ(with_vectors_of_masks.prepare("k"), "");
    EXPECT_TRUE(has(with_vectors_of_masks, "items.passing")) << with_vectors_of_masks.optimised();
    EXPECT_EQ(with_vectors_of_masks.result().lanes.loops, 1U);
    EXPECT_EQ(with_vectors_of_masks.result().lanes.scalar_loops, 0U);
    const std::string& code = with_vectors_of_masks.optimised();
    const size_t without = code.find("passing.vector:");
    ASSERT_NE(without, std::string::npos) << code;
    const std::string body = code.substr(without, code.find("\nlatch", without) - without);
    EXPECT_EQ(body.substr(0, body.find("br ")).find("masked"), std::string::npos) << body;
    Compiled with_mask_registers(stencil, processor_with_512_bits);
    ASSERT_EQ(with_mask_registers.prepare("k"), "");
    EXPECT_FALSE(has(with_mask_registers, "items.passing")) << with_mask_registers.optimised();
}

// Lanes of whole vectors have a mask for each element.
TEST(PassingItems, OfVectorsOfBytes_HaveNoMasks) {
    constexpr const char* source = R"(
        kernel void k(global const uchar* in, global uchar* out, int step, int rows, int columns, uchar least) {
            const int x = get_global_id(0), y = get_global_id(1);
            if (x < columns && y < rows) {
                const uchar16 numbers = *(global const uchar16*)(in + y * step + x * 16);
                *(global uchar16*)(out + y * step + x * 16) = numbers > least ? (uchar16)(255) : (uchar16)(0);
            }
        })";
    Compiled program(source, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.width, 4U);
    EXPECT_TRUE(has(program, "items.passing")) << program.optimised();
}

// Only the last vectors of rows that are not needed are left out: which work-items write is tested by IdleLoops.
TEST(PassingItems, BehindTheLastOne_NoVectorRuns) {
    constexpr const char* source =
        "kernel void k(global float* out, int n) { const int x = get_global_id(0); if (x < n) out[x] = x; }";
    for (const char* processor : {processor_with_256_bits, processor_with_512_bits}) {
        Compiled program(source, processor);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_TRUE(has(program, "items.needed")) << program.optimised();
        ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole), "");
        EXPECT_FALSE(has(program, "items.needed")) << program.optimised();
    }
    Compiled starts(
        "kernel void k(global float* out, int n) { const int x = get_global_id(0); if (x >= n) out[x] = x; }",
        processor_with_512_bits);
    ASSERT_EQ(starts.prepare("k"), "");
    EXPECT_FALSE(has(starts, "items.needed")) << starts.optimised();
}

TEST(PassingItems, OfLoopsWithoutLanes_AreTheLastOnes) {
    Compiled wide(guarded("if (x < a)", "int16"), processor_with_512_bits);
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_EQ(wide.result().lanes.reason, "the kernel's own vectors are wide");
    EXPECT_TRUE(has(wide, "items.needed")) << wide.optimised();
    // LLVM renames the number of work-items where their number is constant.
    ASSERT_EQ(wide.prepare("k", true, {8, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_FALSE(has(wide, "@llvm.umin")) << wide.optimised();
    ASSERT_EQ(wide.prepare("k", true, {256, 1, 1}, WorkGroupOptions::Ends::whole), "");
    EXPECT_TRUE(has(wide, "@llvm.umin")) << wide.optimised();
}

struct alignas(64) Row {
    int values[16];
    bool operator==(const Row&) const = default;
};

TEST(IdleLoops, WithoutLanes_KeepTheirWorkItems) {
    const std::pair<int, int> bounds[] = {{5, 3},       {0, 0},       {-4, 2},      {17, 9},
                                          {100, 100},   {7, -1},      {int_max, 4}, {int_max - 3, int_max},
                                          {int_min, 3}, {-6, int_min}};
    const Range range{2, {40, 10, 1}, {20, 5, 1}};
    for (const char* guard : guards) {
        if (std::string(guard).find("out[") != std::string::npos)
            continue;  // of vectors
        Compiled every(guarded(guard, "int16")), shorter(guarded(guard, "int16"));
        ASSERT_EQ(every.prepare("k", false, range.local, WorkGroupOptions::Ends::ragged, Lanes::none), "");
        ASSERT_EQ(shorter.prepare("k", false, range.local), "");
        ASSERT_EQ(shorter.result().lanes.loops, 0U);
        for (const auto& [a, b] : bounds) {
            std::vector<Row> expected(400), found(400);
            every.run(range, Arguments().add(expected.data()).add(a).add(b));
            shorter.run(range, Arguments().add(found.data()).add(a).add(b));
            ASSERT_TRUE(found == expected) << guard << ", " << a << ' ' << b;
        }
    }
}

TEST(PassingItems, GuardsThatDependOnMemory_StayWhereTheyAre) {
    Compiled program("kernel void k(global int* out, global const int* in, int n) {"
                     " const int x = get_global_id(0); if (x < n && in[x] > 3) out[x] = in[x] + 1; }",
                     processor_with_256_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_FALSE(has(program, "items.passing")) << program.optimised();
}

// A guard's sum may promise not to overflow only for those that pass the guard before it.
TEST(IdleLoops, SumsThatOverflowBehindAnotherGuard_AreTestedWithoutTheirFlags) {
    constexpr const char* source = R"(
        kernel void k(global int* out, int from, int bound) {
            int x = get_global_id(0);
            if (x >= from)
                if ((x - from) + (-0x7fffffff - 1) < bound)
                    out[x] = 1;
        })";
    Compiled every(source), skipping(source);
    ASSERT_EQ(every.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    ASSERT_EQ(skipping.prepare("k"), "");
    for (const int from : {0, 5, 31})
        for (const int bound : {int_min, int_min + 9, 0}) {
            std::vector<int> expected(32), out(32);
            every.run({1, {32, 1, 1}, {32, 1, 1}}, Arguments().add(expected.data()).add(from).add(bound));
            skipping.run({1, {32, 1, 1}, {32, 1, 1}}, Arguments().add(out.data()).add(from).add(bound));
            EXPECT_EQ(out, expected) << from << ' ' << bound;
        }
}

TEST(StoresToOnePlace, TheLastActiveLane_IsTheOneWhoseValueRemains) {
    constexpr const char* source = R"(
        kernel void k(global int* out, global const int* in, global int* last) {
            int i = get_global_id(0);
            out[i] = in[i] + 1;
            if (in[i] > 4) last[get_group_id(0)] = in[i];
            if (in[i] > 6) last[3] = 9;
        })";
    Compiled program(source), there(source, processor_with_512_bits);
    ASSERT_EQ(there.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_FALSE(has(there, "masked.scatter")) << there.optimised();
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GT(program.result().lanes.loops, 0u);
    constexpr size_t local = 32;  // no work-item is left over that would store after the lanes
    for (const int divisor : {3, 5, 8, 13, 100}) {
        std::vector<int> in(3 * local), out(in.size()), last(4), expected(4);
        for (size_t i = 0; i < in.size(); ++i) {
            in[i] = i % 16 < 11 ? static_cast<int>(i * 5) % divisor : 0;  // the last lanes are not active
            if (in[i] > 4)
                expected[i / local] = in[i];
            if (in[i] > 6)
                expected[3] = 9;
        }
        program.run({1, {3 * local, 1, 1}, {local, 1, 1}}, Arguments().add(out.data()).add(in.data()).add(last.data()));
        EXPECT_EQ(last, expected) << divisor;
    }
}

// A frozen base hides from LLVM how ids are computed, and each of its passes looks for a proof that the base is defined.
TEST(IdleLoops, TheFirstIdOfAGroup_IsNotFrozen) {
    Compiled program("kernel void k(global const float* a, global float* out, int n) {"
                     " const int x = get_global_id(0); if (x < n) out[x] = a[x] + 1; }");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has(program, "freeze i64")) << program.optimised();
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
