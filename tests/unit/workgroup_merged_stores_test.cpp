// Both sides of a branch that store to one place: one store of a chosen value, and no branch (frame/simplify.cpp).

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// Merges rows of n numbers.
constexpr const char* merge = R"(
    kernel void k(global const int* a, global const int* b, global int* out, uint n) {
        const uint i = get_global_id(0);
        uint x = i * n, y = i * n, place = 2 * i * n;
        const uint x_end = x + n, y_end = y + n;
        while (x < x_end && y < y_end) {
            if (b[y] < a[x]) {
                out[place] = b[y];
                ++y;
            } else {
                out[place] = a[x];
                ++x;
            }
            ++place;
        }
        for (; x < x_end; ++x) out[place++] = a[x];
        for (; y < y_end; ++y) out[place++] = b[y];
    })";

TEST(MergedStores, OfAMerge_HaveNoBranch) {
    Compiled program(merge, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    const std::string& code = program.optimised();
    const size_t chosen = code.find("icmp slt i32"), end = code.find("\n\n", chosen);
    ASSERT_NE(chosen, std::string::npos) << code;
    EXPECT_NE(code.substr(chosen, end - chosen).find("store i32"), std::string::npos) << code;
}

TEST(MergedStores, AreRight) {
    constexpr uint32_t n = 37, items = 64;
    std::mt19937 random(5);
    std::vector<int> a(n * items), b(n * items), expected;
    for (std::vector<int>* const rows : {&a, &b})
        for (uint32_t i = 0; i < items; ++i) {
            const auto row = rows->begin() + n * i;
            std::generate(row, row + n, [&] { return static_cast<int>(random() % 99); });
            std::sort(row, row + n);
        }
    for (uint32_t i = 0; i < items; ++i)
        std::merge(a.begin() + n * i, a.begin() + n * (i + 1), b.begin() + n * i, b.begin() + n * (i + 1),
                   std::back_inserter(expected));
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(merge, processor);
        for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
            std::vector<int> out(expected.size());
            program.run({1, {items, 1, 1}, {16, 1, 1}}, Arguments().add(a.data()).add(b.data()).add(out.data()).add(n));
            EXPECT_EQ(out, expected) << processor;
        }
    }
}

} // namespace
} // namespace polder::compiler::workgroup::test
