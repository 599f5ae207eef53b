// Values that a branch on arguments chooses in code under masks (vectorizer/preparation/invariant_choices.h).
#include "workgroup_guarded_cases.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// A filter along columns behind a guard, whose centre depends on whether its length is odd.
constexpr auto column_filter = R"(
    kernel void k(global const float* in, global float* out, global const float* factors, int length, int width, int height) {
        const int x = get_global_id(0), y = get_global_id(1);
        if (x < width && y < height) {
            int centre, left, right;
            if (length & 1) { centre = length / 2; left = centre; right = centre; }
            else { centre = length / 2 - 1; left = centre; right = centre + 1; }
            const int first = centre - y, last = height - 1 - y + centre;
            float sum = 0;
            for (int i = 0; i <= left + right; i++) {
                int row = y - centre + i;
                if (i < first) row = first - i - 1;
                if (i > last) row = height - (i - last);
                sum += in[row * width + x] * factors[length - 1 - i];
            }
            out[y * width + x] = sum;
        }
    })";

TEST(InvariantChoices, KeepRowsOfAFilterTogether) {
    Compiled program(column_filter, processor_with_512_bits);
    ASSERT_EQ(prepared_in_lanes(program), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    // Each lane would have a row of its own: a gather.
    const std::string& code = program.optimised();
    EXPECT_EQ(code.find("masked.gather"), std::string::npos) << code;
}

// All read a = in[x] and write o.
const GuardedCase choice_cases[] = {
    {"both sides",
     "int c; if (mode & 1) c = cut / 2; else c = cut * 3 - 1; for (int i = 0; i < c; ++i) o += in[i & 63] ^ a;"},
    {"one side", "int c = cut; if (mode & 2) c = cut / 2 + 5; for (int i = 0; i < c; ++i) o += in[(i + x) % 64] ^ c;"},
    {"the other side", "int c = cut; if (!(mode & 2)) { } else { c = mode - cut; } o = c * a + in[c & 31];"},
    {"of chosen values", R"(
        int c = 3, d = 4;
        if (mode & 1) c = cut / 2 - mode;
        if (mode & 4) d = c * 5; else d = c - 7;
        for (int i = 0; i < (d & 15); ++i) o += in[(i + d) & 63] * c;)"},
    {"in each other", R"(
        int c;
        if (mode & 1) { if (mode & 2) c = cut * 2 / 3; else c = cut - mode; } else c = 9;
        for (int i = 0; i < c; ++i) o += in[i & 63] ^ a;)"},
    {"with a side that divides by what may be zero",
     "int c = 7; if (mode != 0) c = cut / mode; o = a + in[c & 63] * c;"},
    {"one of which is each lane's own",
     "int c = cut; if (mode & 1) c = a & 15; for (int i = 0; i < c; ++i) o += in[i] ^ c;"},
    {"by a condition of each lane",
     "int c = cut / 2; if (a & 1) c = mode * 3 + 1; for (int i = 0; i < c; ++i) o += in[i] ^ c;"},
    {"in a loop", R"(
        for (int i = 0; i < (a & 7); ++i) {
            int c;
            if (mode & 1) { c = cut / 2; out[count + x] = i; } else c = mode + 4;
            for (int j = 0; j < c; ++j) o += in[(i + j) & 63] ^ j;
        })"},
    {"by the count of a loop",
     "for (int i = 0; i < 4; ++i) { int c = cut; if (i & mode) c = mode + i; o = o * 3 + in[c & 63] * a; }"},
};

TEST(InvariantChoices, HaveTheResultsOfWorkItemsOneByOne) {
    for (const GuardedCase& tested : choice_cases)
        expect_results_of_one_by_one(tested, {0, 3, 30});
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
