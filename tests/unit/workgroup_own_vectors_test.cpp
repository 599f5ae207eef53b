// Kernels with vectors of their own whose neighbours are apart: whether lanes are better than the vectors.
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

std::vector<float> small_numbers(size_t count, unsigned seed) {
    std::vector<float> numbers(count);
    for (float& number : numbers) {
        seed = seed * 1664525U + 1013904223U;
        number = static_cast<float>(seed >> 28U);
    }
    return numbers;
}

// Four channels side by side, as networks on GPUs keep them: neighbours in a row are read by each work-item. In lanes each load is a transposition.
TEST(OwnVectors, ThatAreLoadedApart_AreFasterThanLanes) {
    Compiled program(R"(
        kernel void k(global float4* out, global const float4* in, global const float4* weights, int taps, int width, int height) {
            const int blocks = width / 4, x = get_global_id(0) % blocks * 4, y = get_global_id(0) / blocks;
            float4 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
            for (int ky = 0; ky < taps; ++ky) {
                const int row = y + ky - 1;
                if (row < 0 || row >= height) continue;
                const int at = row * width + x - 1;
                for (int kx = 0; kx < taps; ++kx) {
                    const float4 weight = weights[y * taps * taps + ky * taps + kx];
                    sum0 = mad(x + kx - 1 < 0 || x + kx - 1 >= width ? (float4)0 : in[at + kx], weight, sum0);
                    sum1 = mad(x + kx >= width ? (float4)0 : in[at + kx + 1], weight, sum1);
                    sum2 = mad(x + kx + 1 >= width ? (float4)0 : in[at + kx + 2], weight, sum2);
                    sum3 = mad(x + kx + 2 >= width ? (float4)0 : in[at + kx + 3], weight, sum3);
                }
            }
            const int to = y * width + x;
            out[to] = sum0;
            out[to + 1] = sum1;
            out[to + 2] = sum2;
            out[to + 3] = sum3;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 0U);
    constexpr int taps = 3, width = 16, height = 16;
    const std::vector<float> in = small_numbers(size_t{width} * height * 4, 1),
                             weights = small_numbers(size_t{height} * taps * taps * 4, 2);
    std::vector<float> out(in.size());
    program.run(
        {1, {width / 4 * height, 1, 1}, {32, 1, 1}},
        Arguments().add(out.data()).add(in.data()).add(weights.data()).add(int{taps}).add(int{width}).add(int{height}));
    const auto element = [](const std::vector<float>& of, int at) { return of[static_cast<size_t>(at)]; };
    const auto expected = [&](int x, int y, int channel) {
        float sum = 0;
        for (int t = 0; t < taps * taps; ++t)
            if (const int at_x = x + t % taps - 1, at_y = y + t / taps - 1;
                at_x >= 0 && at_x < width && at_y >= 0 && at_y < height)
                sum += element(in, (at_y * width + at_x) * 4 + channel) *
                       element(weights, (y * taps * taps + t) * 4 + channel);
        return sum;
    };
    for (int i = 0; i < static_cast<int>(out.size()); ++i)
        ASSERT_EQ(out[static_cast<size_t>(i)], expected(i / 4 % width, i / 4 / width, i % 4)) << i;
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
