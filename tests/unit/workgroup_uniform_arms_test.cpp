// The prices of the arms of a switch over an argument (vectorizer/analysis/uniform_arms.h).

#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// Pixels of as many channels as an argument says, each of two numbers, become gray in one of several ways. `method`: the argument that chooses.
std::string gray(const std::string& method) {
    return R"(
    kernel void k(global float* image, int channels, int columns, int argument) {
        const int x = get_global_id(0), y = get_global_id(1);
        global float* p = image + (y * columns + x) * channels;
        const float r = p[0], g = p[2], b = p[4];
        float gray;
        switch ()" +
           method + R"() {
        case 1: gray = (r + g + b) / 3; break;
        case 2: gray = fmax(fmax(r, g), b); break;
        case 3: gray = (fmin(fmin(r, g), b) + fmax(fmax(r, g), b)) / 2; break;
        case 4: gray = (r * r + g * g + b * b) / (3 * 65535.0f); break;
        case 5: gray = 0.298839f * r + 0.586811f * g + 0.114350f * b; break;
        case 6: gray = sqrt(0.3f * r * r + 0.6f * g * g + 0.1f * b * b); break;
        case 7: gray = sqrt(r * r + g * g + b * b) / sqrt(3.0f); break;
        case 8: gray = r * (1 - g) / (1 + b) + b * (1 - g) / (1 + r) + g * (1 - b) / (2 + r); break;
        case 9: gray = (r / (1 + g) + g / (1 + b) + b / (1 + r)) * (r + g) / (1 + r * r + g * g); break;
        default: gray = 0.212656f * r + 0.715158f * g + 0.072186f * b; break;
        }
        p[0] = gray;
        p[2] = gray;
        p[4] = gray;
    })";
}

// Pixels of any number of channels are slower with lanes, and the one arm that runs does not make up for that.
TEST(UniformArms, CountOnlyOnceForAllOfThem) {
    Compiled chosen_by_argument(gray("argument"), "znver4");
    ASSERT_EQ(chosen_by_argument.prepare("k"), "");
    EXPECT_EQ(chosen_by_argument.result().lanes.loops, 0U) << chosen_by_argument.result().lanes.estimate;
    Compiled without_choice(gray("10"), "znver4");
    ASSERT_EQ(without_choice.prepare("k"), "");
    EXPECT_EQ(without_choice.result().lanes.loops, 0U) << without_choice.result().lanes.estimate;
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
