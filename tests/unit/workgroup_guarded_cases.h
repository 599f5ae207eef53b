// Kernels whose work-items compute one number behind a guard, in lanes and one by one. The bodies of cases read `a`, the work-item's element of `in`, and the
// arguments; they write `o`, and elements of `out` from `count` on.
#pragma once

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {

struct GuardedCase {
    const char *name, *body;
};

inline std::string prepared_in_lanes(Compiled& program) {
    return program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible);
}

// Compares the results in lanes with those of work-items one by one, for several widths and modes, and for each of `cuts`.
inline void expect_results_of_one_by_one(const GuardedCase& tested, std::initializer_list<int> cuts) {
    constexpr int item_count = 64;
    std::vector<int> in(item_count);
    for (int i = 0; i < item_count; ++i)
        in[static_cast<size_t>(i)] = i * 29 % 67;
    const std::string source = R"(
        kernel void k(global const int* restrict in, global int* restrict out, int width, int mode, int cut, int count) {
            const int x = get_global_id(0);
            if (x >= width) return;
            const int a = in[x];
            int o = 0;)" + std::string(tested.body) +
                               "out[x] = o; }";
    Compiled one_by_one(source), in_lanes(source);
    ASSERT_EQ(one_by_one.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    ASSERT_EQ(prepared_in_lanes(in_lanes), "");
    EXPECT_EQ(in_lanes.result().lanes.loops, 1U) << tested.name << in_lanes.result().lanes.reason;
    for (const int width : {5, 40, 64})
        for (int mode = 0; mode < 8; ++mode)
            for (const int cut : cuts) {
                const auto run = [&](const Compiled& program) {
                    std::vector<int> out(size_t{2} * item_count, -7);
                    program.run(
                        {1, {item_count, 1, 1}, {32, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(width).add(mode).add(cut).add(item_count));
                    return out;
                };
                EXPECT_EQ(run(in_lanes), run(one_by_one)) << tested.name << ' ' << width << ' ' << mode << ' ' << cut;
            }
}

}  // namespace polder::compiler::workgroup::test
