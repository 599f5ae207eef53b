// Work-group functions of hand-written kernels against what OpenCL says they compute.

#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>

namespace polder::compiler::workgroup::test {
namespace {

TEST(WorkGroup, IdsAndSizes_AreThoseOfEveryDimension) {
    Compiled program(R"(
        kernel void k(global ulong* out) {
            size_t at = get_global_linear_id();
            for (uint d = 0; d < 4; ++d) {
                out += at == 0 ? 0 : 0;
                global ulong* mine = out + (at * 4 + d) * 8;
                mine[0] = get_global_id(d);
                mine[1] = get_local_id(d);
                mine[2] = get_group_id(d);
                mine[3] = get_global_size(d);
                mine[4] = get_local_size(d);
                mine[5] = get_num_groups(d);
                mine[6] = get_enqueued_local_size(d);
                mine[7] = get_work_dim() * 1000 + get_local_linear_id();
            }
        })");
    ASSERT_EQ(program.prepare("k"), "");
    Range range{3, {7, 5, 3}, {4, 2, 2}, {10, 20, 30}};
    std::vector<uint64_t> out(7 * 5 * 3 * 4 * 8, ~0ULL);
    program.run(range, Arguments().add(out.data()));
    for (uint64_t z = 0; z < 3; ++z)
        for (uint64_t y = 0; y < 5; ++y)
            for (uint64_t x = 0; x < 7; ++x) {
                const uint64_t id[3] = {x, y, z};
                const uint64_t* mine = &out[((z * 5 + y) * 7 + x) * 32];
                uint64_t linear = 0;
                for (int d = 2; d >= 0; --d) {
                    const uint64_t group = id[d] / range.local[d];
                    const uint64_t size = std::min(range.local[d], range.global[d] - group * range.local[d]);
                    linear = linear * size + id[d] % range.local[d];
                    EXPECT_EQ(mine[d * 8 + 0], id[d] + range.offset[d]);
                    EXPECT_EQ(mine[d * 8 + 1], id[d] % range.local[d]);
                    EXPECT_EQ(mine[d * 8 + 2], group);
                    EXPECT_EQ(mine[d * 8 + 3], range.global[d]);
                    EXPECT_EQ(mine[d * 8 + 4], size);
                    EXPECT_EQ(mine[d * 8 + 5], (range.global[d] + range.local[d] - 1) / range.local[d]);
                    EXPECT_EQ(mine[d * 8 + 6], range.local[d]);
                }
                EXPECT_EQ(mine[7], 3000 + linear);
                EXPECT_EQ(mine[24 + 0], 0U);
                EXPECT_EQ(mine[24 + 4], 1U);
                EXPECT_EQ(mine[24 + 5], 1U);
            }
}

TEST(WorkGroup, ArgumentsOfEveryKind_Arrive) {
    Compiled program(R"(
        typedef struct { int a; float b[4]; } S;
        kernel void k(global float* out, float4 f, S s, local float* l, char c, float3 v, S t) {
            size_t i = get_local_id(0);
            t.b[i & 3] += 1;
            l[i] = s.b[i & 3] + f.y + c + v.z + t.b[i & 3] + t.b[0];
            out[get_global_id(0)] = l[i] + s.a;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    struct S {
        int32_t a;
        float b[4];
    };
    std::vector<float> out(16);
    const S s{3, {10, 20, 30, 40}};
    const S t{4, {1, 2, 3, 4}};
    Arguments arguments;
    arguments.add(out.data()).add(std::array<float, 4>{1, 2, 3, 4}, 16).add(s).add_local(64 * 4);
    arguments.add(int8_t{-5}).add(std::array<float, 4>{100, 200, 300, 0}, 16).add(t);
    program.run({1, {16, 1, 1}, {8, 1, 1}}, arguments);
    for (int i = 0; i < 16; ++i) {
        const float mine = t.b[i & 3] + 1;
        EXPECT_EQ(out[static_cast<size_t>(i)], s.b[i & 3] + 2 - 5 + 300 + mine + ((i & 3) == 0 ? mine : t.b[0]) + 3)
            << i;
    }
}

TEST(WorkGroup, LocalReduction_InALoopOfBarriers) {
    Compiled program(R"(
        kernel void k(global const float* in, global float* out) {
            local float part[64];
            uint l = get_local_id(0);
            part[l] = in[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint step = get_local_size(0) / 2; step > 0; step >>= 1) {
                if (l < step) part[l] += part[l + step];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (l == 0) out[get_group_id(0)] = part[0];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<float> in(256);
    std::iota(in.begin(), in.end(), 1.0F);
    std::vector<float> out(4);
    program.run({1, {256, 1, 1}, {64, 1, 1}}, Arguments().add(in.data()).add(out.data()));
    for (size_t group = 0; group < 4; ++group)
        EXPECT_EQ(out[group], std::accumulate(in.begin() + static_cast<long>(group) * 64,
                                              in.begin() + static_cast<long>(group + 1) * 64, 0.0F));
    EXPECT_EQ(program.result().local_bytes, 256U);
}

TEST(WorkGroup, ItemsThatReturnBeforeABarrier_AreDone) {
    Compiled program(R"(
        kernel void k(global int* out, int n) {
            local int shared[16];
            int i = get_local_id(0);
            shared[i] = 0;
            if (i >= n) return;
            shared[i] = i + 1;
            barrier(CLK_LOCAL_MEM_FENCE);
            int sum = 0;
            for (int k = 0; k < n; ++k) {
                sum += shared[k];
                barrier(CLK_LOCAL_MEM_FENCE);
                shared[i] += 1;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            out[i] = sum;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    for (int n = 0; n <= 16; ++n) {
        std::vector<int> out(16, -1);
        program.run({1, {16, 1, 1}, {16, 1, 1}}, Arguments().add(out.data()).add(n));
        for (int i = 0; i < 16; ++i)
            EXPECT_EQ(out[static_cast<size_t>(i)], i < n ? n * (n + 1) / 2 + n * (n - 1) / 2 : -1) << n;
    }
}

TEST(WorkGroup, PrivateArrayAcrossBarriers_IsEachItemsOwn) {
    Compiled program(R"(
        void fill(int* a, int i) { for (int k = 0; k < 8; ++k) a[k] = i * 10 + k; barrier(CLK_LOCAL_MEM_FENCE); }
        kernel void k(global int* out) {
            int mine[8];
            int i = get_global_id(0);
            fill(mine, i);
            for (int round = 0; round < 3; ++round) {
                mine[(i + round) & 7] += 1000;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            int sum = 0;
            for (int k = 0; k < 8; ++k) sum += mine[k] * (k + 1);
            out[i] = sum;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<int> out(20, -1);
    program.run({1, {20, 1, 1}, {8, 1, 1}}, Arguments().add(out.data()));
    for (int i = 0; i < 20; ++i) {
        int sum = 0;
        for (int k = 0; k < 8; ++k) {
            int value = i * 10 + k;
            for (int round = 0; round < 3; ++round)
                value += ((i + round) & 7) == k ? 1000 : 0;
            sum += value * (k + 1);
        }
        EXPECT_EQ(out[static_cast<size_t>(i)], sum) << i;
    }
}

// `n & 3` is the same for all work-items, and the switch names all its cases: LLVM gives it a default that is never reached.
// Work-items meet the switch in different rounds.
TEST(WorkGroup, UniformSwitchAfterADivergentOne_IsExecutedByThoseThatReachIt) {
    Compiled program(R"(
        kernel void k(global ulong* out, int n) {
            ulong kept = 0, marks = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int round = 0; round < 3; ++round)
                switch ((round + kept) & 3) {
                case 0:
                    switch (n & 3) {
                    case 0: break;
                    case 1:
                    case 3: kept = get_local_id(0);
                    }
                    break;
                default: marks |= 1 << round;
                }
            out[get_global_id(0)] = kept * 16 + marks;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<uint64_t> out(16);
    program.run({1, {16, 1, 1}, {8, 1, 1}}, Arguments().add(out.data()).add(int32_t{3}));
    for (uint64_t i = 0; i < out.size(); ++i) {
        const uint64_t id = i % 8;
        uint64_t kept = 0, marks = 0;
        for (uint64_t round = 0; round < 3; ++round)
            if (((round + kept) & 3) == 0)
                kept = id;
            else
                marks |= uint64_t{1} << round;
        EXPECT_EQ(out[i], kept * 16 + marks) << i;
    }
}

TEST(WorkGroup, RecursionThroughABarrier_IsAnError) {
    Compiled program(R"(
        void again(int n) { barrier(CLK_LOCAL_MEM_FENCE); if (n > 0) again(n - 1); }
        kernel void k(int n) { again(n); })");
    EXPECT_NE(program.prepare("k").find("recursive"), std::string::npos);
}

TEST(WorkGroup, Saxpy_IsVectorized) {
    Compiled program(R"(
        kernel void k(global const float* x, global float* y, float a) {
            int i = get_global_id(0);
            y[i] = a * x[i] + y[i];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_NE(program.optimised().find("x float>"), std::string::npos) << program.optimised();
}

// Divergent control, gathers and scatters, for sizes below, at and above the width of vectors.
TEST(WorkGroup, DivergentLoopsWithMemory_ComputeWhatEachItemWouldAlone) {
    Compiled program(R"(
        kernel void k(global const uint* in, global uint* out, global uint* counts, uint n) {
            uint i = get_global_id(0);
            uint bins[4] = {0, 0, 0, 0};
            uint sum = 0;
            for (uint k = 0; k < in[i]; ++k) {
                uint at = (i * 7 + k * k) % n;
                if (in[at] & 1) { sum += in[at]; if (sum > 500) break; }
                else {
                    for (uint j = at; j != 0; j >>= 1) { if (j == 5) continue; bins[j & 3] += j; if (bins[0] > 1000) goto done; }
                }
            }
        done:
            if (sum & 1) atomic_add(counts + (sum & 3), in[i]);
            out[(i * 5) % n] = sum + bins[0] + 3 * bins[1] + 5 * bins[2] + 7 * bins[3];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    const uint32_t n = 173;  // not a multiple of 5: every item has its own place
    std::vector<uint32_t> in(n);
    for (uint32_t i = 0; i < n; ++i)
        in[i] = (i * 2654435761U >> 20) % 40;
    std::vector<uint32_t> expected(n);
    std::array<uint32_t, 4> expected_counts{};
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t bins[4] = {0, 0, 0, 0};
        uint32_t sum = 0;
        [&] {
            for (uint32_t k = 0; k < in[i]; ++k) {
                const uint32_t at = (i * 7 + k * k) % n;
                if (in[at] & 1) {
                    sum += in[at];
                    if (sum > 500)
                        break;
                } else {
                    for (uint32_t j = at; j != 0; j >>= 1) {
                        if (j == 5)
                            continue;
                        bins[j & 3] += j;
                        if (bins[0] > 1000)
                            return;
                    }
                }
            }
        }();
        if (sum & 1)
            expected_counts[sum & 3] += in[i];
        expected[(i * 5) % n] = sum + bins[0] + 3 * bins[1] + 5 * bins[2] + 7 * bins[3];
    }
    for (uint64_t local : {1, 7, 16, 33, 173}) {
        std::vector<uint32_t> out(n);
        std::array<uint32_t, 4> counts{};
        program.run({1, {n, 1, 1}, {local, 1, 1}},
                    Arguments().add(in.data()).add(out.data()).add(counts.data()).add(n));
        EXPECT_EQ(out, expected) << local;
        EXPECT_EQ(counts, expected_counts) << local;
    }
}

TEST(WorkGroup, IndicesOfEveryType_WrapAsTheyWould) {
    Compiled program(R"(
        kernel void k(global uint* out, uint base, int start) {
            uint u = get_global_id(0) + base;
            int s = (int)get_global_id(0) + start;
            ushort h = get_global_id(0);
            uchar c = get_global_id(0) * 3;
            out[u] += 1;
            out[s] += 10;
            out[h] += 100;
            out[c] += 1000;
            out[get_global_id(0) ^ 1] += 10000;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    for (uint32_t base : {0U, 5U, 0xfffffff0U}) {
        std::vector<uint32_t> out(512), expected(512);
        for (uint32_t i = 16; i < 16 + 64; ++i) {
            expected[i + base] += 1;
            expected[i + 100] += 10;
            expected[i] += 100;
            expected[(i * 3) & 255] += 1000;
            expected[i ^ 1] += 10000;
        }
        // One item at a time would be the same: no two items of a group share a place in one statement.
        program.run({1, {64, 1, 1}, {32, 1, 1}, {16, 0, 0}}, Arguments().add(out.data()).add(base).add(100));
        EXPECT_EQ(out, expected) << base;
    }
}

// The product overflows in the first of a vector's work-items, which the guard excludes, and not in the others.
TEST(WorkGroup, AProductThatAGuardKeepsSmall_IsRightWhereTheGuardExcludesTheFirstLane) {
    Compiled program(R"(
        kernel void k(global const long* in, global long* out, int from) {
            int c = from - (int)get_global_id(0);
            long result = 1;
            if (c >= 0 && c < 0x20000000) result = (long)(c * 4) + in[c & 63];
            out[get_global_id(0)] = result;
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    constexpr size_t n = 96;
    std::vector<int64_t> in(64), out(n), expected(n);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<int64_t>(i * 3);
    for (const int32_t above : {0, 1, 7, 13, 50}) {
        const int32_t limit = 0x20000000, from = limit + above;
        for (size_t i = 0; i < n; ++i) {
            const int64_t c = from - static_cast<int64_t>(i);
            expected[i] = c < limit ? c * 4 + in[static_cast<size_t>(c & 63)] : 1;
        }
        program.run({1, {n, 1, 1}, {48, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(from));
        EXPECT_EQ(out, expected) << above;
    }
}

// Two or six rounds: LLVM knows that there is one at least, so that nothing but the loop is between the value and its use.
TEST(WorkGroup, AValueOfALoopThatWorkItemsLeaveAtDifferentTimes_IsKeptForEachOverABarrier) {
    Compiled program(R"(
        kernel void k(global ulong* out, local long* s) {
            int u = 1;
            for (int r = (int)(get_global_id(0) * 4 + 2) & 7; r > 0; --r) u = (u * 5 + 23) & 31;
            barrier(CLK_LOCAL_MEM_FENCE);
            s[get_local_id(0)] = get_local_id(0);
            barrier(CLK_LOCAL_MEM_FENCE);
            out[get_global_id(0)] = (ulong)s[(get_local_id(0) + 4) % get_local_size(0)] * 100 + u;
        })");
    constexpr size_t n = 96, group = 48;
    std::vector<uint64_t> out(n);
    for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        program.run({1, {n, 1, 1}, {group, 1, 1}}, Arguments().add(out.data()).add_local(group * sizeof(int64_t)));
        for (size_t i = 0; i < n; ++i)
            EXPECT_EQ(out[i], (i % group + 4) % group * 100 + (i % 2 == 0 ? 3 : 23)) << i;
    }
}

// The usual end of a scan: one work-item takes the total out of local memory, and stores it after the next barrier. The other
// work-items have no value, and what they have instead took the place of the total.
TEST(WorkGroup, AValueOfOneWorkItem_IsKeptOverABarrier) {
    Compiled program(R"(
        kernel void k(global int* out, local int* s) {
            uint i = get_local_id(0);
            s[i] = (int)i + 100;
            barrier(CLK_LOCAL_MEM_FENCE);
            int total;
            if (i == 20) { total = s[47]; s[47] = 0; }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (i == 20) out[get_global_id(0)] = total;
            else out[get_global_id(0)] = s[i];
        })");
    constexpr size_t n = 96, group = 48;
    std::vector<int32_t> out(n);
    for (const Lanes lanes : {Lanes::none, Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        program.run({1, {n, 1, 1}, {group, 1, 1}}, Arguments().add(out.data()).add_local(group * sizeof(int32_t)));
        for (size_t i = 0; i < n; ++i)
            EXPECT_EQ(out[i], static_cast<int32_t>(i % group == 20 ? 147 : i % group == 47 ? 0 : i % group + 100)) << i;
    }
}

// Four stores fill a structure, and another one to one of its members, which one depends on n, stands between them.
TEST(WorkGroup, StoresToOnePlace_KeepTheirOrderWhenOthersAreMerged) {
    Compiled program(R"(
        kernel void k(global int* out, global float* result, global const float* in, int n) {
            size_t at = get_global_id(0);
            float f = in[(n * 3 + 6) & 63];
            int e = get_local_id(0);
            out[at * 4 + 3] = e;
            out[at * 4] = e ^ 1;
            out[at * 4 + ((n + 2) & 3)] = n;
            out[at * 4 + 2] = e ^ 2;
            out[at * 4 + 1] = e ^ 3;
            barrier(CLK_LOCAL_MEM_FENCE);
            result[at] = f;
        })");
    constexpr size_t n = 64;
    std::vector<float> in(64, 2.5F), result(n);
    std::vector<int32_t> out(4 * n);
    for (const Lanes lanes : {Lanes::where_they_pay, Lanes::wherever_possible}) {
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, lanes), "");
        const int32_t value = 22;  // into the first member
        program.run({1, {n, 1, 1}, {16, 1, 1}},
                    Arguments().add(out.data()).add(result.data()).add(in.data()).add(value));
        for (size_t i = 0; i < n; ++i) {
            const auto e = static_cast<int32_t>(i % 16);
            EXPECT_EQ(std::vector(&out[4 * i], &out[4 * i + 4]), (std::vector{value, e ^ 3, e ^ 2, e})) << i;
            EXPECT_EQ(result[i], 2.5F);
        }
    }
}

TEST(WorkGroup, VectorsOfOpenCL_AreSplitIntoLanes) {
    Compiled program(R"(
        kernel void k(global const float4* in, global float4* out, global uchar4* bytes, int n) {
            int i = get_global_id(0);
            float4 sum = (float4)(0);
            for (int k = 0; k < n; ++k) sum = sum * 0.5f + in[(i + k) % n].wzyx;
            out[i] = sum;
            bytes[i] = convert_uchar4(sum.xxyy);
        })");
    ASSERT_EQ(program.prepare("k"), "");
    constexpr size_t n = 48;
    struct alignas(16) Four {
        float v[4];
        bool operator==(const Four&) const = default;
    };
    std::vector<Four> in(n), out(n), expected(n);
    for (size_t i = 0; i < n; ++i)
        in[i] = {{float(i), float(i % 7), float(i % 5), 1}};
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < n; ++k)
            for (size_t c = 0; c < 4; ++c)
                expected[i].v[c] = expected[i].v[c] * 0.5F + in[(i + k) % n].v[3 - c];
    std::vector<std::array<uint8_t, 4>> bytes(n);
    program.run({1, {n, 1, 1}, {24, 1, 1}},
                Arguments().add(in.data()).add(out.data()).add(bytes.data()).add(int32_t{n}));
    EXPECT_TRUE(out == expected);
    for (size_t i = 0; i < n; ++i)
        EXPECT_EQ(bytes[i][2], static_cast<uint8_t>(expected[i].v[1]));
}

TEST(WorkGroup, ItemsThatWaitForALock_GetItOneAfterAnother) {
    Compiled program(R"(
        kernel void k(global int* lock, global int* value) {
            while (atomic_cmpxchg(lock, 0, 1) != 0) {}
            *value = *value * 3 + 1;
            atomic_xchg(lock, 0);
        })");
    ASSERT_EQ(program.prepare("k"), "");
    int lock = 0;
    uint32_t value = 0;
    uint32_t expected = 0;
    for (int i = 0; i < 64; ++i)
        expected = expected * 3 + 1;
    program.run({1, {64, 1, 1}, {32, 1, 1}}, Arguments().add(&lock).add(&value));
    EXPECT_EQ(value, expected);
}

TEST(WorkGroup, DivergentLoop_IsVectorized) {
    Compiled program(R"(
        kernel void k(global int* out, int most) {
            float cx = get_global_id(0) * 0.01f - 2, cy = get_global_id(1) * 0.01f;
            float x = 0, y = 0;
            int i = 0;
            while (i < most && x * x + y * y < 4) { float t = x * x - y * y + cx; y = 2 * x * y + cy; x = t; ++i; }
            out[get_global_id(1) * get_global_size(0) + get_global_id(0)] = i;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_NE(program.optimised().find("fmul <"), std::string::npos) << program.optimised();
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
