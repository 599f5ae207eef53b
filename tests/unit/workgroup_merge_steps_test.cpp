// Steps of merges with three sides, or with a store that only one side has, have no branches (targets/host/loops/merge_steps.h).

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint32_t set_size = 37, set_count = 64;
constexpr size_t elements = size_t{2} * set_size * set_count;

// Each work-item has two sorted sets of n numbers. `equal`, `less` and `greater`: what a step does when a[x] is that, compared with b[y].
std::string set_program(const std::string& equal, const std::string& less, const std::string& greater) {
    return R"(
    #define KEEP(value) (out[place] = (value), ++place)
    kernel void k(global const int* a, global const int* b, global int* out, global uint* counts, uint n) {
        const uint i = get_global_id(0);
        uint x = i * n, y = i * n, place = 2 * i * n;
        const uint x_end = x + n, y_end = y + n;
        while (x < x_end && y < y_end) {
            if (a[x] == b[y]) {
                )" +
           equal + R"(
                ++x;
                ++y;
            } else if (a[x] < b[y]) {
                )" +
           less + R"(
                ++x;
            } else {
                )" +
           greater + R"(
                ++y;
            }
        }
        counts[i] = place - 2 * i * n;
    })";
}

constexpr const char *keep_a = "KEEP(a[x]);", *keep_b = "KEEP(b[y]);";

struct SortedSets {
    std::vector<int> a = std::vector<int>(elements / 2), b = a;
};

SortedSets sorted_sets() {
    std::mt19937 random(7);
    SortedSets sets;
    for (std::vector<int>* const all : {&sets.a, &sets.b})
        for (uint32_t i = 0; i < set_count; ++i) {
            const auto row = all->begin() + ptrdiff_t{set_size} * i;
            std::generate(row, row + set_size, [&] { return static_cast<int>(random() % 49) - 20; });
            std::sort(row, row + set_size);
        }
    return sets;
}

struct KeptSides {
    bool equal, less, greater;
};

void expect_results(const KeptSides& kept) {
    const SortedSets sets = sorted_sets();
    std::vector<int> expected(elements, -1000);
    std::vector<uint32_t> counts(set_count);
    for (uint32_t i = 0; i < set_count; ++i) {
        uint32_t x = set_size * i, y = x, place = 2 * x;
        while (x < set_size * (i + 1) && y < set_size * (i + 1)) {
            const bool is_equal = sets.a[x] == sets.b[y], is_less = sets.a[x] < sets.b[y];
            if (is_equal ? kept.equal : is_less ? kept.less : kept.greater)
                expected[place++] = is_equal || is_less ? sets.a[x] : sets.b[y];
            x += is_equal || is_less ? 1 : 0;
            y += is_less ? 0 : 1;
        }
        counts[i] = place - 2 * set_size * i;
    }
    const std::string source =
        set_program(kept.equal ? keep_a : "", kept.less ? keep_a : "", kept.greater ? keep_b : "");
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(source, processor);
        for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            std::vector<int> out(expected.size(), -1000);
            std::vector<uint32_t> counted(set_count);
            program.run(
                {1, {set_count, 1, 1}, {16, 1, 1}},
                Arguments().add(sets.a.data()).add(sets.b.data()).add(out.data()).add(counted.data()).add(set_size));
            EXPECT_EQ(out, expected) << processor;
            EXPECT_EQ(counted, counts) << processor;
        }
    }
}

TEST(MergeSteps, AreRight) {
    for (unsigned sides = 0; sides < 8; ++sides)
        expect_results({(sides & 1) != 0, (sides & 2) != 0, (sides & 4) != 0});
}

// How many stores there are. With a variable for steps that store nothing: one more.
size_t stores_in(const std::string& source) {
    Compiled program(source, processor_with_512_bits);
    EXPECT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    return count(program, "store i32") + count(program, "%unused = alloca");
}

// Besides that of the count.
TEST(MergeSteps, HaveOneStore) {
    EXPECT_EQ(stores_in(set_program(keep_a, keep_a, keep_b)), 2U);
    EXPECT_EQ(stores_in(set_program("", keep_a, "")), 3U);
    EXPECT_EQ(stores_in(set_program("", keep_a, keep_b)), 3U);
    EXPECT_EQ(stores_in(set_program(keep_a, "", "")), 3U);
}

// A search through one list, and steps with an effect or two stores, stay branches.
TEST(MergeSteps, OfOtherLoops_StayBranches) {
    Compiled search(R"(
    kernel void k(global const int* a, global int* out, uint n) {
        uint x = 0, place = get_global_id(0) * n;
        for (uint i = 0; i < n; ++i)
            if (a[i] > a[x]) {
                out[place++] = a[i];
                x = i;
            }
    })",
                    processor_with_512_bits);
    ASSERT_EQ(search.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    EXPECT_EQ(count(search, "%unused = alloca"), 0U);
    EXPECT_GT(stores_in(set_program("out[place] = x; out[place + 9] = 1; KEEP(a[x]);", keep_a, keep_b)), 3U);
    EXPECT_EQ(stores_in(set_program("", "atomic_inc((volatile global int*)out);", keep_b)), 2U);
    EXPECT_EQ(stores_in(set_program("", "*(volatile global int*)out = 5;", keep_b)), 2U);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
