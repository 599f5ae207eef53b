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

// Forces between particles, as molecular dynamics computes them: each vector of four is loaded at once, and its elements are used as numbers.
// Each branch takes as many instructions for four lanes of whole vectors as for sixteen lanes.
TEST(OwnVectors, AmongManyBranches_AreTakenApart) {
    Compiled program(R"(
        kernel void k(global const float4* in, global const uchar* counts, global float* weights,
                                global const float* spreads, global float4* kept, global float* out, int step, float enough,
                                float limit) {
            const int id = get_global_id(0);
            const float4 color = in[id];
            int count = counts[id];
            float sum = 0, result = 1;
            bool known = false;
            int i = 0;
            for (; i < count; ++i) {
                int at = i * step + id;
                float weight = weights[at] * 0.9f;
                const float spread = spreads[at];
                const float4 mean = kept[at], distance = mean - color;
                const float squared = dot(distance, distance);
                if (sum < enough && squared < spread)
                    result = 0;
                if (squared < limit * spread) {
                    known = true;
                    weight += 0.1f;
                    for (int before = i; before > 0; --before) {
                        const int next = at - step;
                        if (weight < weights[next])
                            break;
                        weights[at] = weights[next];
                        kept[at] = kept[next];
                        at = next;
                    }
                    kept[at] = mean - distance * (0.1f / weight);
                    weights[at] = weight;
                    sum += weight;
                    ++i;
                    break;
                }
                if (weight < 0.01f)
                    weight = 0;
                weights[at] = weight;
                sum += weight;
            }
            if (result > 0) {
                float total = 0;
                for (int i = 0; i < count; ++i) {
                    const int at = i * step + id;
                    const float4 mean = kept[at];
                    const float along = dot(color, mean), length = dot(mean, mean);
                    if (length == 0)
                        break;
                    if (along <= length && along >= 0.5f * length) {
                        const float part = along / length;
                        const float4 rest = part * mean - color;
                        if (dot(rest, rest) < limit * spreads[at] * part * part) {
                            result = 0.5f;
                            break;
                        }
                    }
                    total += weights[at];
                    if (total > enough)
                        break;
                }
            }
            out[id] = result + (known ? 2 : 0);
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    EXPECT_EQ(program.result().lanes.width, 16U);
    EXPECT_FALSE(program.result().lanes.keeps_vectors);
}

TEST(OwnVectors, OfWhichOnlyElementsAreUsed_AreTakenApart) {
    Compiled program(R"(
        kernel void k(global float* forces, global const float4* places, global const float4* kinds, global const float* factors,
                      global const int* neighbours, int count, int rows) {
            const int id = get_global_id(0);
            const float4 own = places[id];
            float x = 0, y = 0, z = 0;
            for (int row = 0; row < rows; ++row) {
                const int neighbour = neighbours[row * count + id];
                const float factor = factors[neighbour >> 30 & 3];
                const float4 other = places[neighbour & 0x3fffffff];
                const int kind = (int)own.w * 2 + (int)other.w;
                const float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
                const float squared = dx * dx + dy * dy + dz * dz;
                if (squared < kinds[kind].z) {
                    const float force = factor * squared * (kinds[kind].x * squared - kinds[kind].y);
                    x += dx * force;
                    y += dy * force;
                    z += dz * force;
                }
            }
            forces[3 * id] = x;
            forces[3 * id + 1] = y;
            forces[3 * id + 2] = z;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    EXPECT_FALSE(program.result().lanes.keeps_vectors);
    constexpr int count = 64, rows = 5;
    std::vector<float> places = small_numbers(size_t{count} * 4, 1);
    for (size_t i = 3; i < places.size(); i += 4)
        places[i] = static_cast<float>(i / 4 % 2);  // the kind
    const std::vector<float> kinds{1, 2, 200, 0, 2, 1, 100, 0, 3, 1, 50, 0, 1, 1, 300, 0}, factors{1, 2, 3, 4};
    std::vector<int> neighbours(size_t{count} * rows);
    for (size_t i = 0; i < neighbours.size(); ++i)
        neighbours[i] = static_cast<int>(i * 37 % count) | (i % 3 == 0 ? 1 << 30 : 0);
    std::vector<float> forces(size_t{count} * 3);
    program.run({1, {count, 1, 1}, {32, 1, 1}}, Arguments()
                                                    .add(forces.data())
                                                    .add(places.data())
                                                    .add(kinds.data())
                                                    .add(factors.data())
                                                    .add(neighbours.data())
                                                    .add(int{count})
                                                    .add(int{rows}));
    const auto element = [](const std::vector<float>& of, int at) { return of[static_cast<size_t>(at)]; };
    for (int id = 0; id < count; ++id) {
        float expected[3] = {};  // whole numbers, so that no order of the sums matters
        for (int row = 0; row < rows; ++row) {
            const int place = row * count + id;
            const int neighbour = neighbours[static_cast<size_t>(place)], other = neighbour & 0x3fffffff;
            float distance[3], squared = 0;
            for (int i = 0; i < 3; ++i) {
                distance[i] = element(places, 4 * id + i) - element(places, 4 * other + i);
                squared += distance[i] * distance[i];
            }
            const int kind = id % 2 * 2 + other % 2;
            if (!(squared < element(kinds, 4 * kind + 2)))
                continue;
            const float force = element(factors, neighbour >> 30 & 3) * squared *
                                (element(kinds, 4 * kind) * squared - element(kinds, 4 * kind + 1));
            for (int i = 0; i < 3; ++i)
                expected[i] += distance[i] * force;
        }
        for (int i = 0; i < 3; ++i)
            ASSERT_EQ(element(forces, 3 * id + i), expected[i]) << id << ' ' << i;
    }
}

// Peaks in rows of eight numbers, and whether a row is empty. One instruction asks about all numbers of a vector; in lanes each one is taken apart.
TEST(OwnVectors, ThatFillRowsAndAreAskedAtOnce_AreFasterThanLanes) {
    Compiled program(R"(
        typedef float row __attribute__((ext_vector_type(8), aligned(4)));
        typedef float wide __attribute__((ext_vector_type(16), aligned(4)));
        kernel void peaks(global const float* in, global float* out, int width) {
            const size_t at = get_global_id(1) * width + get_global_id(0) * 8;
            const float8 here = *(global const row*)(in + at);
            if (__builtin_reduce_and(here == 0)) {
                *(global row*)(out + at) = 0;
                return;
            }
            const float16 above = *(global const wide*)(in + at - width - 1), below = *(global const wide*)(in + at + width - 1);
            const float8 peaks = here >= above.s01234567 && here >= above.s12345678 && here >= above.s23456789 ? here : 0;
            *(global row*)(out + at) = here > below.s01234567 && here > below.s12345678 && here > below.s23456789 ? peaks : 0;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("peaks"), "");
    EXPECT_EQ(program.result().lanes.loops, 0U);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
