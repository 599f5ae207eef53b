// Loops that a work-item leaves early, when it has found something, after a small number of iterations at most.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// How many of the first `limit` elements behind `from` are the same in both arrays.
std::string common_prefix(int limit) {
    return "kernel void k(global const uchar* a, global const uchar* b, global int* out, int count) {\n"
           "    const int from = get_global_id(0);\n"
           "    int n = 0;\n"
           "    while (n < " +
           std::to_string(limit) +
           " && from + n < count && a[from + n] == b[from + n]) ++n;\n"
           "    out[from] = n;\n"
           "}";
}

TEST(SearchLoops, StayLoops) {
    Compiled program(common_prefix(16), processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole),
              "");  // no work-items are left over
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    EXPECT_LE(count(program, "call <16 x i8> @llvm.masked.load"), 2U) << program.optimised();
}

TEST(SearchLoops, OfFewIterations_AreUnrolled) {
    Compiled program(common_prefix(3), processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(count(program, "call <16 x i8> @llvm.masked.load"), 6U) << program.optimised();
}

TEST(SearchLoops, AreRight) {
    constexpr int items = 256;
    std::vector<uint8_t> a(items), b(items);
    for (int i = 0; i < items; ++i) {
        a[static_cast<size_t>(i)] = static_cast<uint8_t>(i * i / 5 % 7);
        b[static_cast<size_t>(i)] = static_cast<uint8_t>(i % 11 == 0 || i % 29 == 3 ? 9 : i * i / 5 % 7);
    }
    for (const std::string processor : {"", "haswell", "x86-64-v2"}) {
        if (processor == "haswell" && __builtin_cpu_supports("avx2") == 0)
            continue;
        for (const int limit : {3, 5, 16}) {
            Compiled program(common_prefix(limit), processor);
            for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
                for (const int used : {items, 250, 100, 0}) {
                    std::vector<int> out(items, -1), expected(items);
                    for (int from = 0; from < items; ++from) {
                        int& n = expected[static_cast<size_t>(from)];
                        while (n < limit && from + n < used && a[index_of(from + n)] == b[index_of(from + n)])
                            ++n;
                    }
                    program.run({1, {items, 1, 1}, {32, 1, 1}},
                                Arguments().add(a.data()).add(b.data()).add(out.data()).add(used));
                    EXPECT_EQ(out, expected) << processor << ' ' << limit << ' ' << used;
                }
            }
        }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
