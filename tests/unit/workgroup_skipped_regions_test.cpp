// A branch around the body of an if that has several blocks (vectorizer/estimates/skipped_code.h).

#include "workgroup_harness.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// The four nearest of all values, as a search for neighbours keeps them. `guard` is at the beginning.
std::string nearest(const std::string& guard) {
    return R"(
    kernel void k(global const float* in, global const float* all, global int* out, int count, int last) {
        const int i = get_global_id(0);
        )" +
           guard + R"(
        float distance[4];
        int index[4];
        for (int j = 0; j < 4; ++j) { distance[j] = 1e30f; index[j] = -1; }
        for (int j = 0; j < count; ++j) {
            const float here = fabs(all[j] - in[i]);
            if (here < distance[3]) {
                int place = 3;
                while (place > 0 && distance[place - 1] > here) {
                    distance[place] = distance[place - 1];
                    index[place] = index[place - 1];
                    --place;
                }
                distance[place] = here;
                index[place] = j;
            }
        }
        for (int j = 0; j < 4; ++j) out[4 * i + j] = index[j];
    })";
}

std::vector<int> expected_nearest(const std::vector<float>& in, const std::vector<float>& all, int last) {
    std::vector<int> out(4 * in.size(), -7);
    for (size_t i = 0; i < in.size() && static_cast<int>(i) < last; ++i) {
        std::vector<int> order(all.size());
        for (size_t j = 0; j < all.size(); ++j)
            order[j] = static_cast<int>(j);
        std::ranges::sort(order, {},
                          [&](int j) { return std::pair(std::abs(all[static_cast<size_t>(j)] - in[i]), j); });
        for (size_t j = 0; j < 4; ++j)
            out[4 * i + j] = j < order.size() ? order[j] : -1;
    }
    return out;
}

// A division takes as long as many instructions, so a short body with one is passed, too. In the loops around it lanes wait for the last one in each.
TEST(SkippedRegions, HaveOneBlockWithADivision) {
    const auto close = [](const std::string& force) {
        return R"(
        kernel void k(global const float* restrict at, global float* restrict out, int n, float cut) {
            const int i = get_global_id(0);
            const float x = at[i];
            float sum = 0;
            for (int j = 0; j < n; ++j) {
                const float d = x - at[j], r = d * d;
                if (r < cut) sum += )" +
               force + R"( * d;
            }
            out[i] = sum;
        })";
    };
    Compiled divided(
        close("(1 - r * (r + 3)) / (r + 0.1f) * (r - 2) * (r + d) * (1 + d * r) * (2 - d) * (r - 5) * (r + 7)"),
        processor_with_512_bits);
    ASSERT_EQ(divided.prepare("k"), "");
    EXPECT_TRUE(has(divided, "if.some")) << divided.optimised();
    Compiled multiplied(close("(1 - r * (r + 3)) * (r + 0.1f) * (r - 2) * (r + d) * (1 + d * r) * (2 - d) * (r - 5)"),
                        processor_with_512_bits);
    ASSERT_EQ(multiplied.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole),
              "");  // no work-items are left over
    EXPECT_FALSE(has(multiplied, "if.some")) << multiplied.optimised();
}

// Particles in the cells around each: four loops whose lanes leave them at different times, around loads of the kernel's own vectors.
TEST(SkippedRegions, AreNotEnoughForLanesThatWaitInEachLoop) {
    Compiled program(R"(
        kernel void k(global const float4* restrict at, global const int* restrict first, global float4* restrict out, int n, float cut) {
            const int i = get_global_id(0);
            const float4 p = at[i];
            const int cx = (int)p.x, cy = (int)p.y, cz = (int)p.z;
            float fx = 0, fy = 0, fz = 0;
            for (int z = max(cz - 1, 0); z <= min(cz + 1, n - 1); ++z)
                for (int y = max(cy - 1, 0); y <= min(cy + 1, n - 1); ++y)
                    for (int x = max(cx - 1, 0); x <= min(cx + 1, n - 1); ++x) {
                        const int c = (z * n + y) * n + x;
                        for (int j = first[c]; j < first[c + 1]; ++j) {
                            const float4 q = at[j];
                            const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z, r = dx * dx + dy * dy + dz * dz;
                            if (j != i && r < cut) {
                                const float f = 1 / (r + 0.1f);
                                fx += f * dx;
                                fy += f * dy;
                                fz += f * dz;
                            }
                        }
                    }
            out[i] = (float4)(fx, fy, fz, 0);
        })",
                     "znver4");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 0U) << program.optimised();
}

// An arm of a switch over an argument, in code that the guard at the beginning masks.
constexpr auto arms = R"(
    kernel void k(global const float4* restrict in, global float4* restrict out, int width, int mode, float cut) {
        const int x = get_global_id(0);
        if (x >= width) return;
        float4 a = in[x], o = -1;
        float sum = 0;
        switch (mode & 7) {
        case 0: o = a.x < cut ? a.yzwx / (a + 1) : a * 2 - 1; if (a.y > cut) o.x = sqrt(a.z); break;
        case 1: for (int i = 0; i < mode; ++i) sum += a.x / (i + 1); o = a + sum; break;
        case 2: if (a.x > cut) { o = a / (a.w + 2); if (a.y < cut) o += a.zwxy / 3; } else o = sqrt(a) / (a + 3); break;
        case 3: for (float v = a.x; v > 0.1f; v /= 2) sum += a.y / (v + 1); o = sum; break;
        case 4: o = a; break;
        }
        o.w = mode & 8 ? a.w : cut;
        out[x] = o;
    })";

TEST(SkippedRegions, AreArmsOfASwitchOverAnArgument) {
    Compiled program(arms, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    // One arm runs, without a question whether any lane is active.
    const std::string& code = program.optimised();
    size_t sides = 0;
    for (size_t at = code.find(".side"); at != std::string::npos; at = code.find(".side", at + 1))
        ++sides;
    EXPECT_GE(sides, 4U) << code;
}

TEST(SkippedRegions, OfASwitchHaveTheResultsOfEachArm) {
    constexpr uint32_t count = 64;
    std::vector<float> in(size_t{4} * count);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i * 29 % 64) / 16;
    Compiled one_by_one(arms), in_lanes(arms);
    ASSERT_EQ(one_by_one.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    ASSERT_EQ(in_lanes.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_EQ(in_lanes.result().lanes.loops, 1U) << in_lanes.result().lanes.reason;
    for (const int width : {5, 40, 64})
        for (int mode = 0; mode < 16; ++mode) {
            const auto run = [&](const Compiled& program) {
                std::vector<float> out(in.size(), -7);
                program.run({1, {count, 1, 1}, {32, 1, 1}},
                            Arguments().add(in.data()).add(out.data()).add(width).add(mode).add(1.5F));
                return out;
            };
            const std::vector<float> expected = run(one_by_one), out = run(in_lanes);
            for (size_t i = 0; i < out.size(); ++i)
                EXPECT_NEAR(out[i], expected[i], 1e-5F * std::abs(expected[i])) << width << ' ' << mode << ' ' << i;
        }
}

// A switch over a number of each work-item. Nearly all arms have some lane, so that questions cost more than they save, above all those about several arms.
TEST(SkippedRegions, AreNotShortArmsOfASwitchOfEachLane) {
    for (const std::string processor : {processor_with_512_bits, "x86-64-v2"}) {
        Compiled program(R"(
            kernel void k(global const int* ops, global const float* a, global const float* b, global float* c) {
                const int i = get_global_id(0);
                const float x = a[i], y = b[i];
                float r;
                switch (ops[i]) {
                case 0: r = x + y; break;
                case 1: r = x / y + 3; break;
                case 2: r = x * y; break;
                case 3: r = x / y - sqrt(y); break;
                case 4: r = fmin(x, y) / (x + 1); break;
                case 5: r = sqrt(x) / y; break;
                case 6: r = fabs(x - y); break;
                default: r = 0; break;
                }
                c[i] = r;
            })",
                         processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
        EXPECT_FALSE(has(program, "\nif.some")) << program.optimised();
    }
}

// Arms that end with `return`, of which the work-items of a vector take one or several.
constexpr auto returning_arms = R"(
    kernel void k(global const int* restrict kinds, global const float* restrict in, global float* restrict out, int count) {
        const int i = get_global_id(0);
        if (i >= count) return;
        const int kind = kinds[i];
        const float a = in[i];
        if (kind == 0) {
            float sum = 0;
            for (int j = 0; j < (i & 3) + 1; ++j) sum += a / (j + 1);
            out[i] = sum;
            return;
        }
        if (kind == 1) {
            float b = in[kinds[count + i]];
            if (a < 1) b = sqrt(b) / (a + 2);
            out[i] = b / (a + 3);
            out[count + i] = a;
            return;
        }
        if (kind == 2 && a > 0.5f) {
            float v = a;
            while (v > 0.1f) { v /= 2; out[count + i] += 1; }
            out[i] = v;
            return;
        }
        out[i] = -a;
    })";

TEST(SkippedRegions, AreArmsThatReturn) {
    Compiled program(R"(
        kernel void k(global const int2* pairs, global const int* kinds, global const float4* places, global float4* contacts, int count) {
            const int i = get_global_id(0);
            if (i >= count) return;
            const int2 pair = pairs[i];
            const int one = kinds[pair.x], other = kinds[pair.y];
            if (one == 1 && other == 2) {
                float4 sum = 0;
                for (int k = 0; k < 8; ++k) {
                    const float4 apart = places[(pair.x + k) & 4095] - places[pair.y];
                    if (dot(apart, apart) < 1) sum += apart / (1 + length(apart));
                }
                contacts[i] = sum;
                return;
            }
            if (one == 2 && other == 1) {
                float4 nearest = places[pair.x];
                for (int k = 1; k < 8; ++k) {
                    const float4 here = places[(pair.y + k) & 4095];
                    if (distance(here, places[pair.x]) < distance(nearest, places[pair.y])) nearest = here;
                }
                contacts[i] = normalize(nearest);
                return;
            }
            if (one == 1 && other == 1) {
                const float4 apart = places[pair.x] - places[pair.y];
                const float far = length(apart);
                if (far < 2) contacts[i] = far > 1e-5f ? apart / far : (float4)(1, 0, 0, 0);
                return;
            }
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    const std::string& code = program.optimised();
    size_t questions = 0;  // also those of the loops in the arms, and of ifs in these
    for (size_t at = code.find("\nif.some"); at != std::string::npos; at = code.find("\nif.some", at + 1))
        ++questions;
    EXPECT_GE(questions, 12U) << code;
}

TEST(SkippedRegions, ThatReturnHaveTheResultsOfEachArm) {
    constexpr int count = 64;
    std::vector<float> in(count);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i * 29 % 64) / 32;
    Compiled one_by_one(returning_arms), in_lanes(returning_arms);
    ASSERT_EQ(one_by_one.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    ASSERT_EQ(in_lanes.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    for (int kinds_in_turn = 1; kinds_in_turn <= 4; ++kinds_in_turn)
        for (int first = 0; first < 4; ++first) {
            std::vector<int> kinds(size_t{2} * count);
            for (int i = 0; i < count; ++i) {
                kinds[static_cast<size_t>(i)] = (first + i * 7 % kinds_in_turn) % 4;
                kinds[static_cast<size_t>(count) + static_cast<size_t>(i)] = i * 11 % count;
            }
            const auto run = [&](const Compiled& program) {
                std::vector<float> out(size_t{2} * count, -7);
                program.run({1, {count, 1, 1}, {32, 1, 1}},
                            Arguments().add(kinds.data()).add(in.data()).add(out.data()).add(count));
                return out;
            };
            const std::vector<float> expected = run(one_by_one), out = run(in_lanes);
            for (size_t i = 0; i < out.size(); ++i)
                EXPECT_NEAR(out[i], expected[i], 1e-5F * std::abs(expected[i]))
                    << kinds_in_turn << ' ' << first << ' ' << i;
        }
}

TEST(SkippedRegions, ArePassedByVectorsInWhichNoLaneIsActive) {
    for (const std::string guard : {"", "if (i >= last) return;"}) {
        Compiled program(nearest(guard), processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
        // The first access under a mask moves a neighbour.
        const std::string& code = program.optimised();
        EXPECT_LT(code.find("\nif.some"), code.find("@llvm.masked.store.v16")) << code;
    }
}

TEST(SkippedRegions, HaveTheResultsOfTheLanesThatEnter) {
    constexpr uint32_t count = 64;
    std::vector<float> in(count), all(100);
    for (uint32_t i = 0; i < count; ++i)
        in[i] = static_cast<float>(i * 29 % 64);
    for (uint32_t j = 0; j < all.size(); ++j)
        all[j] = static_cast<float>(j * 37 % 101) + 0.25F;
    for (const std::string guard : {"", "if (i >= last) return;"}) {
        Compiled program(nearest(guard));
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        for (const int last : {3, 40, 64})
            for (const size_t values : {size_t{0}, size_t{1}, size_t{3}, all.size()}) {
                const std::vector<float> some(all.begin(), all.begin() + static_cast<ptrdiff_t>(values));
                std::vector<int> out(size_t{4} * count, -7);
                program.run(
                    {1, {count, 1, 1}, {32, 1, 1}},
                    Arguments().add(in.data()).add(all.data()).add(out.data()).add(static_cast<int>(values)).add(last));
                EXPECT_EQ(out, expected_nearest(in, some, guard.empty() ? 64 : last)) << guard << last << ' ' << values;
            }
    }
}

// Values of several kinds come from the region: of a loop that lanes leave one by one, the same for all lanes, and of one side.
TEST(SkippedRegions, PassOnWhatTheyComputed) {
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, int bound, int factor) {
            const int i = get_global_id(0);
            int sum = i, steps = -1, kind = 9;
            for (int j = 0; j < 5; ++j) {
                const int x = in[i * 5 + j];
                if (x > bound) {
                    steps = 0;
                    for (int y = x; y > 1; y /= 2) { sum += y; ++steps; }
                    if (x & 1) { out[i] += x; kind = factor; }
                    else { kind = in[j]; sum ^= kind; }
                    for (int y = 0; y < factor; ++y) sum += in[y];
                }
                sum += 3 * steps + kind;
            }
            out[64 + i] = sum;
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_GE(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    constexpr int items = 64;
    std::vector<int> in(items * 5);
    for (int i = 0; i < items * 5; ++i)
        in[static_cast<size_t>(i)] = i * 7919 % 1000;
    const auto at = [&](int i) { return in[static_cast<size_t>(i)]; };
    for (const int bound : {-1, 500, 990, 1000})
        for (const int factor : {0, 4}) {
            std::vector<int> out(2 * items), expected(2 * items);
            for (int i = 0; i < items; ++i) {
                int sum = i, steps = -1, kind = 9;
                for (int j = 0; j < 5; ++j) {
                    const int x = at(i * 5 + j);
                    if (x > bound) {
                        steps = 0;
                        for (int y = x; y > 1; y /= 2) {
                            sum += y;
                            ++steps;
                        }
                        if ((x & 1) != 0) {
                            expected[static_cast<size_t>(i)] += x;
                            kind = factor;
                        } else {
                            kind = at(j);
                            sum ^= kind;
                        }
                        for (int y = 0; y < factor; ++y)
                            sum += at(y);
                    }
                    sum += 3 * steps + kind;
                }
                expected[static_cast<size_t>(items) + static_cast<size_t>(i)] = sum;
            }
            program.run({1, {items, 1, 1}, {32, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(bound).add(factor));
            EXPECT_EQ(out, expected) << bound << ' ' << factor;
        }
}

// Conditions in conditions that all end at the same place; `with_others`: beside loops, stores and more conditions.
std::string nested(int depth, bool with_others) {
    std::string code =
        "kernel void k(global const float* a, global float* o, global const int* p) { const int i = get_global_id(0);"
        "float x = a[i]; int y = p[i];";
    for (int level = 0; level < depth; ++level) {
        const std::string number = std::to_string(level);
        code += "if (x > 0.0" + std::string(level < 10 ? "0" : "") + number + "f) { x = x * 1.01f + a[" + number +
                "] * 0.5f - 0.25f; y ^= p[(i + y + " + number + ") & 63];";
        if (with_others && level % 3 == 1)
            code += "if (y & 1) { x -= 0.125f; if (y & 2) { y += p[y & 63]; o[64 + i] = y; } }";
        if (with_others && level % 4 == 2)
            code += "for (int k = 0; k < (y & 3); ++k) x -= a[k] * 0.0625f;";
    }
    return code + std::string(static_cast<size_t>(depth), '}') + " o[i] = x + y; }";
}

// Each passes on what lanes have that did not enter it, or went no further. One value for each depth and all skipped conditions made code of quadratic length.
TEST(SkippedRegions, InOneAnother_PassOnOneValue) {
    const auto length = [](int depth) {
        Compiled program(nested(depth, false), processor_with_512_bits);
        EXPECT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
        EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
        return program.optimised().size();
    };
    const size_t ten = length(10), twenty = length(20), forty = length(40);
    EXPECT_LT(forty - twenty, 12 * (twenty - ten) / 5) << ten << ' ' << twenty << ' ' << forty;
}

TEST(SkippedRegions, InOneAnother_HaveTheResultsOfTheLanesThatEnter) {
    constexpr uint32_t count = 64;
    std::vector<int> numbers(count);
    for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<int>(i * 2654435761U >> 20);
    for (const std::string processor : {processor_with_512_bits, "x86-64-v3", "x86-64-v2"})
        for (const int depth : {2, 3, 5, 12}) {
            Compiled one_by_one(nested(depth, true), processor), in_lanes(nested(depth, true), processor);
            ASSERT_EQ(one_by_one.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
            ASSERT_EQ(in_lanes.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
            EXPECT_EQ(in_lanes.result().lanes.loops, 1U) << in_lanes.result().lanes.reason;
            for (const float least : {-1.0F, 0.0F, 0.02F, 0.5F}) {
                std::vector<float> in(count);
                for (size_t i = 0; i < in.size(); ++i)
                    in[i] = least + static_cast<float>(i * 29 % 64) / 128;
                const auto run = [&](const Compiled& program) {
                    std::vector<float> out(size_t{2} * count, -7);
                    program.run({1, {count, 1, 1}, {32, 1, 1}},
                                Arguments().add(in.data()).add(out.data()).add(numbers.data()));
                    return out;
                };
                const std::vector<float> expected = run(one_by_one), out = run(in_lanes);
                for (size_t i = 0; i < out.size(); ++i)
                    EXPECT_NEAR(out[i], expected[i], 1e-4F * (1 + std::abs(expected[i])))
                        << processor << ' ' << depth << ' ' << least << ' ' << i;
            }
        }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
