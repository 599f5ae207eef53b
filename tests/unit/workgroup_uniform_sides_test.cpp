// Branches that are the same for all lanes in code under masks (vectorizer/preparation/uniform_sides.h).

#include "workgroup_guarded_cases.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

size_t count(const std::string& code, const std::string& text) {
    size_t found = 0;
    for (size_t at = code.find(text); at != std::string::npos; at = code.find(text, at + 1))
        ++found;
    return found;
}

// Three arms behind a guard.
constexpr auto three_arms = R"(
    kernel void k(global const float* restrict in, global float* restrict out, int width, int mode, float cut) {
        const int x = get_global_id(0);
        if (x >= width) return;
        const float a = in[x];
        float o, p;
        if (mode == 1) { o = sqrt(a) / (a + 1); p = o * a - 1; o += (p - a) * (p + cut) * (o + a); }
        else if (mode == 2) { o = a / (a + 3); p = (a - cut) * (o + 2) * (o + 1) / (o + a + 2); }
        else { p = sqrt(a + 1); o = p * (a + 2) * (a + 3) * (p - a) / (p + cut); }
        out[x] = o * p;
    })";

TEST(UniformSides, MeetInPhisWithoutMasks) {
    Compiled program(three_arms, processor_with_512_bits);
    ASSERT_EQ(prepared_in_lanes(program), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    const std::string& code = program.optimised();
    EXPECT_GE(count(code, ".side"), 3U) << code;
    EXPECT_GE(count(code, "phi <16 x float>"), 1U) << code;
    // Only the guard makes a mask of lanes; nothing is chosen by one.
    EXPECT_EQ(count(code, "select <16 x i1>"), 0U) << code;
}

// An argument chooses nothing that a few selects would not do more cheaply.
TEST(UniformSides, AreNoBranchesWhenTheyAreShort) {
    Compiled program(R"(
        kernel void k(global const float* restrict in, global float* restrict out, int width, int mode) {
            const int x = get_global_id(0);
            if (x >= width) return;
            float a = in[x];
            if (mode == 1) a = a * 2 + 1;
            else a = a - 3;
            out[x] = a;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(prepared_in_lanes(program), "");
    EXPECT_EQ(count(program.optimised(), ".side"), 0U) << program.optimised();
}

// All read a = in[x] (int) and write o.
const GuardedCase side_cases[] = {
    {"loops, and an if that only some lanes enter, in the sides", R"(
        if (mode & 1) { for (int i = 0; i < cut; ++i) o += a / (i + 2); if (a > cut) { o = o * 3 / (a + 7); out[count + x] = o; } }
        else { for (int v = a; v > 3; v /= 3) o += v * 5 % (a + 2); }
        o = o * 2 + a;)"},
    {"others arrive where the sides meet", R"(
        if (a > 20) { if (mode & 1) { o = a / 3 + a % 7; out[count + x] = o; } else { o = a * a / 5 - a % 3; o ^= o / 7; out[count + x] = a; } }
        else { o = a / 11; })"},
    {"one side only, in a loop whose lanes leave one by one", R"(
        for (int v = a; v > 0; v -= 9) { if (mode & 1) { o += v / 3 + v * v % 13; o ^= o / 5 + v / 7; } o += 1; })"},
    {"both sides in a loop, which go on with the next iteration", R"(
        for (int v = a; v > 0; v -= 9) {
            if (mode & 1) { o += v / 3 + v * v % 13; o ^= o / 5; if (v % 4 == 1) continue; }
            else { o -= v / 7 + v % 5; o ^= o / 3 + v / 9; }
            o = o * 3 + 1;
        })"},
    {"one side leaves the loop", R"(
        for (int v = a; v > 0; v -= 9) {
            if (mode & 1) { o += v / 3 + v * v % 13; if (o > cut) break; o ^= o / 5; }
            else { o -= v / 7 + v % 5; o ^= o / 3 + v / 9; }
            o = o * 3 + 1;
        })"},
    {"one side returns", R"(
        if (mode & 1) { o = a / 3 + a * a % 13; out[count + x] = o; if (a > cut) return; o ^= o / 5 + a / 7; }
        else if (mode & 2) { o = a % 17 + a / 9; o ^= a / 13; }
        o += a;)"},
    {"three levels, one of them divergent", R"(
        if (mode & 1) {
            o = a / 3 + a % 7;
            if (a > 30) {
                if (mode & 2) { o ^= a / 5 + a * a % 19; out[count + x] = o; o += o / 3; }
                else { o -= a % 11 * a; o ^= o / 9 + a / 4; }
            } else if (mode & 4) { o *= a / 7 - o % 5; o ^= o / 6; }
        } else if (mode & 4) { for (int i = 0; i < 4; ++i) { if (mode & 2) o += in[i] / (a + 1) + o % 5; else { o ^= in[i] * a % 7; o -= o / 3 + a / 9; } } }
        o += mode;)"},
    {"the condition is read only where some lanes are", R"(
        if (a > 20) { const int m = in[mode]; if (m & 1) { o = a / 3 + m % 7; o ^= o / 5 * m; } else { o = a % 11 * m; o -= o / 9 + m / 4; } out[count + x] = o; }
        o += 5;)"},
    {"a switch whose arms fall into the next ones", R"(
        switch (mode) {
        case 0: o = a / 3; o ^= a % 5;
        case 1: o += a / 7 + o % 9; if (a & 1) break;
        case 2: o = o * 3 + a % 13; o ^= o / 4; break;
        case 3: for (int i = 0; i < a; ++i) { if (i == cut) goto end; o += i / (a + 1) + i % 3; } break;
        default: o = a / 9 + a * a % 21; o ^= o / 8;
        }
        o += 2;
        end: o ^= 1;)"},
    {"of a choice that is uniform behind other sides", R"(
        int kind;
        if (mode & 1) { o = a / 3 + a % 7; o ^= o / 9 + a / 5; kind = cut & 3; } else { o = a % 9 * a; o -= o / 5 + a / 7; kind = 2; }
        if (kind & 1) { o += a / 11 + o % 13; o ^= o / 7; } else { o *= a % 3 + 1; o ^= o / 6 + a / 8; })"},
};

TEST(UniformSides, HaveTheResultsOfWorkItemsOneByOne) {
    for (const GuardedCase& tested : side_cases)
        expect_results_of_one_by_one(tested, {3, 30});
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
