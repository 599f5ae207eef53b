// A vector stays in a loop until its last lane leaves it: how long the others wait decides for lanes or against them.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* all_processors[] = {processor_with_512_bits, processor_with_256_bits, "x86-64-v2"};

unsigned loops_with_lanes_in_any_group(const char* source, const char* processor) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k"), "");
    return program.result().lanes.loops;
}

// Particles in the cells around each particle's own.
TEST(WaitingLanes, InLoopsOfOwnLengthInEachOther_AreSlower) {
    constexpr const char* source = R"(
        kernel void k(global const float4* pos, global const int* start, global float4* force, int nc, float limit) {
            const int i = get_global_id(0);
            const float4 p = pos[i];
            const int cx = (int)p.x, cy = (int)p.y, cz = (int)p.z;
            float fx = 0, fy = 0, fz = 0;
            for (int z = max(cz - 1, 0); z <= min(cz + 1, nc - 1); z++)
                for (int y = max(cy - 1, 0); y <= min(cy + 1, nc - 1); y++)
                    for (int x = max(cx - 1, 0); x <= min(cx + 1, nc - 1); x++) {
                        const int c = (z * nc + y) * nc + x;
                        for (int j = start[c]; j < start[c + 1]; j++) {
                            const float4 q = pos[j];
                            const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
                            const float square = dx * dx + dy * dy + dz * dz;
                            if (j != i && square < limit) {
                                const float a = 1 / (square + 0.1f), b = a * a * a, f = b * (48 * b - 24) * a;
                                fx += f * dx; fy += f * dy; fz += f * dz;
                            }
                        }
                    }
            force[i] = (float4)(fx, fy, fz, 0);
        })";
    for (const char* processor : all_processors)
        EXPECT_EQ(loops_with_lanes_in_any_group(source, processor), 0U) << processor;
}

// Rays through a tree of boxes.
TEST(WaitingLanes, ThatWalkTreesWithStacksOfTheirOwn_AreSlower) {
    constexpr const char* source = R"(
        kernel void k(global const float* rays, global const float* boxes, global float* out, int leaves) {
            const int i = get_global_id(0);
            const float ox = rays[i * 6], oy = rays[i * 6 + 1], oz = rays[i * 6 + 2];
            const float dx = 1 / rays[i * 6 + 3], dy = 1 / rays[i * 6 + 4], dz = 1 / rays[i * 6 + 5];
            int stack[24], height = 0, node = 1;
            float best = 1e30f;
            for (;;) {
                global const float* b = boxes + node * 6;
                const float t0 = (b[0] - ox) * dx, t1 = (b[0] + b[3] - ox) * dx;
                const float u0 = (b[1] - oy) * dy, u1 = (b[1] + b[4] - oy) * dy;
                const float v0 = (b[2] - oz) * dz, v1 = (b[2] + b[5] - oz) * dz;
                const float near = fmax(fmax(fmin(t0, t1), fmin(u0, u1)), fmax(fmin(v0, v1), 0.0f));
                const float far = fmin(fmin(fmax(t0, t1), fmax(u0, u1)), fmin(fmax(v0, v1), best));
                if (near <= far) {
                    if (node >= leaves) best = near;
                    else { stack[height++] = 2 * node + 1; node = 2 * node; continue; }
                }
                if (height == 0) break;
                node = stack[--height];
            }
            out[i] = best;
        })";
    for (const char* processor : all_processors)
        EXPECT_EQ(loops_with_lanes_in_any_group(source, processor), 0U) << processor;
}

// A loop goes down to a leaf, and another one takes the next part from the stack. One load reads the first part, which is in a buffer, and those on the stack.
TEST(WaitingLanes, ThatGoDownTreesInLoopsOfTheirOwn_AreSlower) {
    constexpr const char* source = R"(
        kernel void k(global const uint* in, global uint* out) {
            uint stack[32], height = 0, leaves = 0;
            const generic uint* place = in + get_global_id(0);
            for (;;) {
                uint top = *place;
                while (top >= 3) {
                    const uint third = top / 3;
                    if (top & 1) {
                        stack[height++] = third;
                        top = top - third - 1;
                    } else
                        top = third;
                }
                ++leaves;
                if (height == 0) break;
                place = &stack[--height];
            }
            out[get_global_id(0)] = leaves;
        })";
    for (const char* processor : all_processors)
        EXPECT_EQ(loops_with_lanes_in_any_group(source, processor), 0U) << processor;
}

// Each pixel adds up the columns of windows that contain it: their numbers follow from the pixel's place, and neighbours have the same but at the edges.
TEST(WaitingLanes, InLoopsOverWindowsThatContainAPixel_AreFaster) {
    constexpr const char* source = R"(
        kernel void k(int n, global const float* columns, int height, int width, int size, int pad, int stride,
                      int rows, int row, global float* image) {
            for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
                float sum = 0;
                const int x = i % width + pad, y = i / width % height + pad, c = i / (width * height);
                const int x0 = x < size ? 0 : (x - size) / stride + 1, x1 = min(x / stride + 1, row);
                const int y0 = y < size ? 0 : (y - size) / stride + 1, y1 = min(y / stride + 1, rows);
                const int first = (c * size * size + y * size + x) * rows * row;
                for (int v = y0; v < y1; ++v)
                    for (int u = x0; u < x1; ++u)
                        sum += columns[first + v * (1 - stride * size * rows) * row + u * (1 - stride * rows * row)];
                image[i] += sum;
            }
        })";
    for (const char* processor : all_processors)
        EXPECT_EQ(loops_with_lanes_in_any_group(source, processor), 1U) << processor;
}

// One work-item after the other, a copy of the inner loop has no checks of the row's ends. In lanes the checks stay.
TEST(WaitingLanes, ForChecksThatAllPass_AreSlower) {
    constexpr const char* taps = R"(
        double number_at(global const double* row, global const double* edges, long x, ulong n, int reach, uchar all) {
            if (x >= 0 && x < n) return row[x];
            if (x < 0) return all ? edges[reach + x] : row[0];
            return all ? edges[reach + x - n] : row[n - 1];
        }
        kernel void k(global const double* row, global const double* edges, global const double* taps,
                      global double* out, ulong n, int reach, uchar all, ulong length) {
            const ulong from = get_global_id(0) * length, to = min(from + length, n);
            for (ulong i = from; i < to; ++i) {
                double sum = 0;
                for (int j = -reach; j <= reach; ++j)
                    sum += taps[reach + j] * number_at(row, edges, (long)i + j, n, reach, all);
                out[i] = sum;
            }
        })";
    for (const char* processor : all_processors)
        EXPECT_EQ(loops_with_lanes_in_any_group(taps, processor), 0U) << processor;
}

// The same where neighbours access neighbouring numbers.
TEST(WaitingLanes, ForChecksOfPlacesSideBySide_AreFaster) {
    constexpr const char* taps = R"(
        kernel void k(global const float* row, global const float* taps, global float* out, int n, int reach) {
            const int i = get_global_id(0);
            float sum = 0;
            for (int j = -reach; j <= reach; ++j)
                if (i + j >= 0 && i + j < n)
                    sum += taps[reach + j] * row[i + j];
            out[i] = sum;
        })";
    for (const char* processor : all_processors)
        EXPECT_EQ(loops_with_lanes_in_any_group(taps, processor), 1U) << processor;
}

// Windows are short: dividing the number of a work-item into its place takes longer.
TEST(WaitingLanes, InLoopsOverWindowsInsideOfAPicture_AreFaster) {
    constexpr const char* source = R"(
        kernel void k(int n, global const float* picture, int height, int width, int size, int step, int border,
                      int rows, int row, global float* means) {
            for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
                const int x = i % row * step - border, y = i / row % rows * step - border;
                global const float* const plane = picture + i / row / rows * height * width;
                const int x0 = max(x, 0), x1 = min(x + size, width), y0 = max(y, 0), y1 = min(y + size, height);
                float sum = 0;
                for (int v = y0; v < y1; ++v)
                    for (int u = x0; u < x1; ++u)
                        sum += plane[v * width + u];
                means[i] = sum / ((x1 - x0) * (y1 - y0));
            }
        })";
    for (const char* processor : all_processors)
        EXPECT_EQ(loops_with_lanes_in_any_group(source, processor), 1U) << processor;
}

// What the kernel's own vectors save counts as often as what lanes do.
TEST(WaitingLanes, InLoopsOverWindowsOfOwnVectors_AreFaster) {
    constexpr const char* source = R"(
        kernel void k(global const float4* in, global float4* out, int width, int height, float radius) {
            const int i = get_global_id(0), x = i % width, y = i / width, reach = (int)radius + 1;
            const int x0 = max(x - reach, 0), x1 = min(x + reach, width), y0 = max(y - reach, 0);
            const int y1 = min(y + reach, height);
            float weights = 0;
            float4 sum = 0;
            for (int v = y0; v < y1; ++v)
                for (int u = x0; u < x1; ++u) {
                    const float dx = x - u, dy = y - v, apart = dx * dx + dy * dy;
                    if (apart < radius * radius) {
                        const float weight = 1 / (apart + 0.4f);
                        weights += weight;
                        sum += weight * clamp(in[v * width + u], 0.0f, 100.0f);
                    }
                }
            out[i] = sum / weights;
        })";
    EXPECT_EQ(loops_with_lanes_in_any_group(source, processor_with_512_bits), 1U);
}

// What is loaded decides where the next iteration loads: one work-item after the other waits for each load.
TEST(WaitingLanes, OfSearchesThatWaitForLoads_AreFaster) {
    constexpr const char* tree = R"(
        typedef struct { int key, left, right; float value; } Node;
        kernel void k(global const Node* nodes, global const int* keys, global float* out) {
            const int i = get_global_id(0), key = keys[i];
            int at = 0;
            float value = -1;
            while (at != -1) {
                value = nodes[at].value;
                if (nodes[at].key == key)
                    break;
                at = key < nodes[at].key ? nodes[at].left : nodes[at].right;
            }
            out[i] = value;
        })";
    constexpr const char* lists = R"(
        kernel void k(global const int* starts, global const int* numbers, global int* out) {
            const int i = get_global_id(0);
            int common = 0;
            for (int n = starts[i]; n < starts[i + 1]; n++) {
                int a = starts[i], b = starts[numbers[n]];
                const int a_end = starts[i + 1], b_end = starts[numbers[n] + 1];
                while (a < a_end && b < b_end) {
                    const int p = numbers[a], q = numbers[b];
                    common += p == q;
                    a += p <= q;
                    b += q <= p;
                }
            }
            out[i] = common;
        })";
    for (const char* source : {tree, lists}) {
        EXPECT_EQ(loops_with_lanes_in_any_group(source, processor_with_512_bits), 1U) << source;
        EXPECT_EQ(loops_with_lanes_in_any_group(source, processor_with_256_bits), 1U) << source;
        EXPECT_EQ(loops_with_lanes_in_any_group(source, "x86-64-v2"), 0U) << source;
    }
}

// One work-item after the other waits where a branch that decides about a load was not predicted. Branches in front of stores mostly go one way.
TEST(WaitingLanes, OfBranchesInFrontOfLoads_AreFaster) {
    const auto picture = [](const std::string& statement) {
        return "kernel void k(global const float* in, global const float2* places, global float* out, int height, int "
               "width) {"
               " const int i = get_global_id(0);"
               " const int x = (int)floor(places[i].x * width), y = (int)floor(places[i].y * height);"
               " const bool left = x >= 0 && x < width, right = x + 1 >= 0 && x + 1 < width;"
               " const bool top = y >= 0 && y < height, bottom = y + 1 >= 0 && y + 1 < height;"
               " for (int c = 0; c < 4; c++) {"
               "  global const float* p = in + c * height * width;"
               "  float sum = 0;"
               "  if (top && left) sum += p[y * width + x];"
               "  if (top && right) sum += p[y * width + x + 1] * 0.5f;"
               "  if (bottom && left) sum += p[y * width + width + x] * 0.25f;"
               "  if (bottom && right) sum += p[y * width + width + x + 1] * 0.125f;" +
               statement + " } }";
    };
    EXPECT_EQ(loops_with_lanes_in_any_group(picture("out[c * 16384 + i] = sum;").c_str(), processor_with_512_bits), 1U);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
