// Kernels whose loop over work-items is too long for lanes, or nearly.
#include "workgroup_harness.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint32_t items_of_group = 20;

uint32_t factor_of(uint32_t statement) { return 2 * statement + 3; }

// Short blocks: LLVM's schedulers take quadratic time in their length.
bool ends_block(uint32_t statement) { return statement % 250 == 249; }

// So many statements of two instructions each.
std::string source(uint32_t statements) {
    std::string text = "kernel void k(global uint* a) {\n    size_t i = get_global_id(0);\n    uint x = a[i];\n";
    for (uint32_t i = 0; i < statements; ++i) {
        text += "    x = (x ^ " + std::to_string(i) + ") * " + std::to_string(factor_of(i)) + ";\n";
        if (ends_block(i))
            text += "    if (x & 64) a[i + " + std::to_string(items_of_group) + "] = x;\n";
    }
    return text + "    a[i] = x;\n}\n";
}

void expect_results(Compiled& program, uint32_t statements) {
    std::vector<uint32_t> a(size_t{2} * items_of_group), expected(a.size());
    for (uint32_t item = 0; item < items_of_group; ++item) {
        uint32_t x = a[item] = item * 1000;
        for (uint32_t i = 0; i < statements; ++i) {
            x = (x ^ i) * factor_of(i);
            if (ends_block(i) && (x & 64) != 0)
                expected[item + items_of_group] = x;
        }
        expected[item] = x;
    }
    program.run({1, {items_of_group, 1, 1}, {items_of_group, 1, 1}}, Arguments{}.add(a.data()));
    EXPECT_EQ(a, expected);
}

// LLVM's loop vectorizer takes minutes over such a loop.
TEST(LongLoops, HaveNoLanes_AndAreNotLeftToTheVectorizerOfLlvm) {
    constexpr uint32_t statements = 15'500;
    Compiled program(source(statements));
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_FALSE(has(program, "mul <")) << "there are vectors";
    expect_results(program, statements);
}

// Each vector of 16 lanes takes as many instructions as a work-item.
TEST(LongLoops, OfWhichLanesTakeASmallPartOfTheTime_HaveLanes) {
    constexpr uint32_t statements = 6'100;
    Compiled program(source(statements));
    ASSERT_EQ(program.prepare("k"), "");
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        EXPECT_TRUE(has(program, "mul <16 x i32>")) << "there are no vectors";
    }
#endif
    expect_results(program, statements);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
