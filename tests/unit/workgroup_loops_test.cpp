// Loops of work-items: sums that are kept in registers, breaks, and loops around barriers.

#include "workgroup_harness.h"

#include <array>
#include <gtest/gtest.h>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* forces = R"(
    typedef struct { float x, y, z, w; } P;
    kernel void k(global P* out, global const P* p, int n) {
        int i = get_global_id(0);
        for (int k = 0; k < n; ++k) {
            float d = p[k].x - p[k].w;
            out[i].x += d * p[k].y; out[i].y -= d * p[k].z; out[i].z += p[k].w;
        }
    })";

struct Particle {
    float x, y, z, w;
};

std::vector<Particle> particles(size_t count) {
    std::vector<Particle> all(count);
    for (size_t i = 0; i < count; ++i) {
        const auto v = static_cast<float>(i % 7);
        all[i] = {v, v - 2, 3 - v, 0.5F * v};
    }
    return all;
}

// Computes what the kernel says, one work-item after the other.
void run_forces(Particle* out, const Particle* p, size_t items, int n) {
    for (size_t i = 0; i < items; ++i)
        for (int k = 0; k < n; ++k) {
            const float d = p[k].x - p[k].w;
            out[i].x += d * p[k].y;
            out[i].y -= d * p[k].z;
            out[i].z += p[k].w;
        }
}

void expect_equal(const std::vector<Particle>& a, const std::vector<Particle>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(a[i].x, b[i].x) << i;
        ASSERT_EQ(a[i].y, b[i].y) << i;
        ASSERT_EQ(a[i].z, b[i].z) << i;
        ASSERT_EQ(a[i].w, b[i].w) << i;
    }
}

TEST(Accumulators, ElementsThatALoopAddsTo_AreKeptInRegisters) {
    Compiled program(forces, processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0u) << program.result().lanes.reason;
    // One copy of the loop stores behind it.
    EXPECT_TRUE(has(program, "found.conflict")) << program.optimised();
    EXPECT_FALSE(has(program, "polder.any_work_item"));
    Compiled one(R"(
        kernel void k(global int4* out, global const int4* p, int n) {
            int i = get_global_id(0);
            for (int k = 0; k < n; ++k) out[i].x += p[k].x * p[k + 1].y + p[k + 2].z * p[k + 3].w * p[k + 4].x;
        })",
                 processor_with_512_bits);
    ASSERT_EQ(one.prepare("k"), "");
    EXPECT_TRUE(has(one, "found.conflict")) << one.optimised();
}

TEST(Accumulators, BesideLoadsThatOverlapNothing_AreKeptInRegisters) {
    Compiled program(R"(
        kernel void k(global float4* out, global const float* in, int n) {
            const int i = get_global_id(0);
            float factors[64];
            for (int k = 0; k < 64; ++k) factors[k] = in[k] + i;
            for (int k = 0; k < n; ++k) out[i].x += in[k] * factors[k];
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    EXPECT_TRUE(has(program, "found.conflict")) << program.optimised();
}

// A load of a constant table has no range that could be compared with the others, and needs none.
TEST(Accumulators, BesideLoadsOfConstantTables_AreKeptInRegisters) {
    Compiled program(R"(
        constant float table[64] = {1, 5, 2, 8, 3};
        kernel void k(global float4* out, global const float4* in, int n) {
            const int i = get_global_id(0);
            const float4 own = in[i];
            for (int k = 0; k < n; ++k) {
                const float factor = table[(int)(in[k].w * own.w) & 63];
                out[i].x += in[k].x * factor;
                out[i].y += in[k].y * factor;
            }
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
    EXPECT_TRUE(has(program, "found.conflict")) << program.optimised();

    // Many work-items with sums apart, and one whose sums are among what is added.
    constexpr std::array<float, 64> table{1, 5, 2, 8, 3};
    constexpr size_t n = 5;
    for (const auto& [items, distance] : {std::pair{16, 40}, std::pair{1, 3}}) {
        std::vector<Particle> all = particles(60);
        for (size_t i = 0; i < all.size(); ++i)
            all[i].w = static_cast<float>(i);
        std::vector<Particle> expected = all;
        for (int i = 0; i < items; ++i)
            for (size_t k = 0; k < n; ++k) {
                const float factor = table[static_cast<int>(expected[k].w * expected[i].w) & 63];
                expected[distance + i].x += expected[k].x * factor;
                expected[distance + i].y += expected[k].y * factor;
            }
        const auto count = static_cast<uint64_t>(items);
        program.run({1, {count, 1, 1}, {count, 1, 1}},
                    Arguments().add(&all[distance]).add(all.data()).add(static_cast<int>(n)));
        expect_equal(all, expected);
    }
}

TEST(Accumulators, SumsAreRight_AlsoInGroupsThatFillNoVector) {
    Compiled program(forces);
    ASSERT_EQ(program.prepare("k"), "");
    constexpr size_t items = 77;
    for (uint64_t local : {1, 11, 16, 33, 77})
        for (int n : {0, 1, 13}) {
            std::vector<Particle> out = particles(items), expected = out;
            const std::vector<Particle> p = particles(13);
            run_forces(expected.data(), p.data(), items, n);
            program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments().add(out.data()).add(p.data()).add(n));
            expect_equal(out, expected);
        }
}

// A work-item reads the element that it adds to; the other elements are only read.
TEST(Accumulators, PointersThatOverlap_AreRight) {
    Compiled program(forces);
    ASSERT_EQ(program.prepare("k"), "");
    for (uint64_t n : {1, 2, 5, 9}) {
        std::vector<Particle> all = particles(20), expected = all;
        run_forces(&expected[4], expected.data(), 1, static_cast<int>(n));
        program.run({1, {1, 1, 1}, {1, 1, 1}}, Arguments().add(&all[4]).add(all.data()).add(static_cast<int>(n)));
        expect_equal(all, expected);
    }
    // All lanes take the copy as written because their addresses overlap, though no element is both read and written.
    Compiled words(R"(
        kernel void k(global int* a, global const int* b, int n) {
            int i = get_global_id(0);
            for (int k = 0; k < n; ++k) a[2 * i] += b[2 * k];
        })");
    ASSERT_EQ(words.prepare("k"), "");
    std::vector<int> a(200);
    std::iota(a.begin(), a.end(), 5);
    std::vector<int> expected = a;
    for (size_t i = 0; i < 50; ++i)
        for (size_t k = 0; k < 30; ++k)
            expected[2 * i] += expected[2 * k + 1];
    words.run({1, {50, 1, 1}, {50, 1, 1}}, Arguments().add(a.data()).add(&a[1]).add(30));
    EXPECT_EQ(a, expected);
}

constexpr const char* orbit = R"(
    kernel void k(global int* out, float cr, float ci) {
        float2 z = (float2)(0.125f * get_global_id(0), ci);
        int k = 0;
        for (; k < 50; ++k) {
            const float2 square = z * z;
            if (square.x + square.y > 4.0f) break;
            z = (float2)(square.x - square.y + cr, 2.0f * z.x * z.y + ci);
        }
        out[get_global_id(0)] = k;
    })";

// Whether a line has both.
bool has_line(const Compiled& program, const char* first, const char* second) {
    std::istringstream lines(program.optimised());
    for (std::string line; std::getline(lines, line);)
        if (line.find(first) != std::string::npos && line.find(second) != std::string::npos)
            return true;
    return false;
}

TEST(Breaks, OutOfABlockWithVariables_LeaveNoSelectsInTheLoop) {
    Compiled wide(orbit, "znver3");
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_GT(wide.result().lanes.loops, 0u);
    EXPECT_FALSE(has_line(wide, "= select <8 x i1>", "<8 x float>")) << wide.optimised();
}

TEST(Breaks, OutOfABlockWithVariables_CountRounds) {
    std::vector<int> out(40), expected(40);
    for (size_t item = 0; item < expected.size(); ++item) {
        float x = 0.125F * static_cast<float>(item), y = 0.25F;
        for (; expected[item] < 50 && x * x + y * y <= 4.0F; ++expected[item]) {
            const float next = x * x - y * y - 0.5F;
            y = 2 * x * y + 0.25F;
            x = next;
        }
    }
    Compiled program(orbit);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    program.run({1, {40, 1, 1}, {20, 1, 1}}, Arguments().add(out.data()).add(-0.5F).add(0.25F));
    EXPECT_EQ(out, expected);
}

// Loops without an end ----------------------------------------------------------------------------

// Work-items that wait for ever under conditions that are never true: one loop in another, one with two entries, one of all work-items.
TEST(EndlessLoops, InKernelsWithSubGroups_AreCompiledAndLeftAlone) {
    Compiled program(R"(
        uint _polder_sub_group_reduce_add_uint(uint x) __attribute__((const, convergent));
        __attribute__((intel_reqd_sub_group_size(8)))
        kernel void k(global const uint* in, global volatile uint* out, uint n) {
            const size_t i = get_global_id(0);
            uint x = _polder_sub_group_reduce_add_uint(in[i]);
            if (in[i] == 77)
                for (;;) {
                    out[i] += 1;
                    for (uint j = 0; j < x; ++j) out[i] += in[j];
                }
            x += _polder_sub_group_reduce_add_uint(x);
            if (in[i] == 78) {
                if (x & 1) goto second;
            first:
                out[i] += 2;
            second:
                out[i] += x;
                goto first;
            }
            if (n == 79) while (1) out[i] = x;
            out[i] = x;
        })");
    for (const bool specialised : {false, true}) {
        ASSERT_EQ(program.prepare("k", specialised, {16, 1, 1}), "");
        std::vector<uint32_t> in(16), out(16);
        std::iota(in.begin(), in.end(), 1U);
        program.run({1, {16, 1, 1}, {16, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(3U));
        for (uint32_t i = 0; i < 16; ++i)
            EXPECT_EQ(out[i], 9 * (i < 8 ? 36U : 100U)) << i;
    }
}

// A structure is aligned in the one iteration of eight that accesses it, and not where the first of a vector of iterations would.
TEST(LoopsOfKernels, IterationsThatAccessNothing_AreNotAligned) {
    constexpr const char* source = R"(
        typedef struct __attribute__((aligned(64))) { long x, y; } S;
        kernel void k(global const long* in, global long* out, int n) {
            for (int i = 0; i < n; ++i)
                if (i % 8 == 3)
                    ((global S*)(out + (i - 3)))->x = ((global const S*)(in + (i - 3)))->x * i;
        })";
    Compiled wide(source, processor_with_512_bits);
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_TRUE(has(wide, "@llvm.masked.store")) << wide.optimised();
    EXPECT_FALSE(has(wide, "ptr addrspace(1) align 64")) << wide.optimised();
    Compiled program(source);
    ASSERT_EQ(program.prepare("k"), "");
    constexpr int n = 96;
    struct alignas(64) Line {
        int64_t numbers[8];
    };
    std::vector<Line> in(n / 8), out(n / 8);
    for (int i = 0; i < n; ++i)
        in[i / 8].numbers[i % 8] = i + 5;
    program.run({1, {1, 1, 1}, {1, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(n));
    for (int i = 0; i < n; ++i)
        EXPECT_EQ(out[i / 8].numbers[i % 8], i % 8 == 0 ? (i + 5) * (i + 3) : 0) << i;
}

// Loops around barriers ----------------------------------------------------------------------------

// After the barrier, a work-item goes on with the rest of the iteration or with the next one, so it enters the loop at two places.
std::string entered_at_two_places(bool has_sub_groups) {
    return (has_sub_groups ? "uint _polder_sub_group_reduce_add_uint(uint x) __attribute__((const, convergent));\n"
                             "__attribute__((intel_reqd_sub_group_size(8)))\n"
                           : std::string{}) +
           R"(kernel void k(global const uint* flags, global const uint* zeros, global const uint* in, global uint* out, uint n) {
            local uint all[40];
            const uint l = get_local_id(0);
            uint x = in[l];
            for (uint j = 0; j < n; ++j) {
                x = x * 5 + j;
                if (flags[j + zeros[l]]) {  // the same for all, which the compiler does not know
                    all[l] = x;
                    barrier(CLK_LOCAL_MEM_FENCE);
                    const uint y = all[(l + 1) % 40];
                    barrier(CLK_LOCAL_MEM_FENCE);
                    x += )" +
           (has_sub_groups ? "_polder_sub_group_reduce_add_uint(l)" : "(l & ~7) * 8 + 28") + R"(;
                    if (y & 1) continue;
                    x += y;
                }
                if (x & 2) out[l] += x; else x ^= 3 + j;
            }
            out[l] += x;
        })";
}

TEST(LoopsAroundBarriers, AreEnteredAtSeveralPlaces) {
    constexpr uint32_t size = 40;
    const std::vector<uint32_t> flags{0, 1, 0, 0, 1, 1, 0, 1, 0}, zeros(size);
    std::vector<uint32_t> in(size), expected(size);
    for (uint32_t i = 0; i < size; ++i)
        in[i] = i * i + 3 * i;
    std::vector<uint32_t> x(in);
    for (uint32_t j = 0; j < flags.size(); ++j) {
        for (uint32_t& each : x)
            each = each * 5 + j;
        const std::vector<uint32_t> all(x);
        for (uint32_t i = 0; i < size; ++i) {
            if (flags[j]) {
                x[i] += i / 8 * 64 + 28;
                if (all[(i + 1) % size] & 1)
                    continue;
                x[i] += all[(i + 1) % size];
            }
            if (x[i] & 2)
                expected[i] += x[i];
            else
                x[i] ^= 3 + j;
        }
    }
    for (uint32_t i = 0; i < size; ++i)
        expected[i] += x[i];
    for (const bool has_sub_groups : {false, true})
        for (const bool specialised : {false, true}) {
            Compiled program(entered_at_two_places(has_sub_groups));
            ASSERT_EQ(program.prepare("k", specialised, {size, 1, 1}, WorkGroupOptions::Ends::ragged,
                                      Lanes::wherever_possible),
                      "");
            EXPECT_EQ(program.result().lanes.scalar_loops, 0U) << program.result().lanes.reason;
            EXPECT_GT(program.result().lanes.loops, 0U);
            std::vector<uint32_t> out(size);
            program.run({1, {size, 1, 1}, {size, 1, 1}}, Arguments()
                                                             .add(flags.data())
                                                             .add(zeros.data())
                                                             .add(in.data())
                                                             .add(out.data())
                                                             .add(static_cast<uint32_t>(flags.size())));
            EXPECT_EQ(out, expected) << has_sub_groups << specialised;
        }
}

// As in x264: sums that leave the barriers out where the rest fits a warp of a GPU.
constexpr const char* sums_of_warps = R"(
    kernel void k(global const int* in, global int* out) {
        local int buffer[256];
        volatile local int* a = buffer;
        int x = get_local_id(0);
        a[x] = in[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        int n = get_local_size(0);
        while (n > 1) {
            n >>= 1;
            if (x < n) a[x] += a[x + n];
            if (n > 32) barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (x == 0) out[get_group_id(0)] = a[0];
    })";

TEST(WarpLoops, AddEachElementOnce_InGroupsOfAnyAndOfAKnownSize) {
    constexpr uint64_t size = 256, groups = 3;
    std::vector<int> in(size * groups);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<int>(i * i % 1009);
    for (const bool is_specialised : {false, true}) {
        Compiled program(sums_of_warps);
        ASSERT_EQ(program.prepare("k", is_specialised, {size, 1, 1}, WorkGroupOptions::Ends::whole), "");
        std::vector<int> out(groups);
        program.run({1, {size * groups, 1, 1}, {size, 1, 1}}, Arguments().add(in.data()).add(out.data()));
        for (size_t group = 0; group < groups; ++group)
            EXPECT_EQ(out[group], std::accumulate(in.begin() + group * size, in.begin() + (group + 1) * size, 0))
                << "group " << group << (is_specialised ? " of a known size" : "");
    }
}

// LLVM would unroll the loop over rows.
TEST(Loops, OverOneRowOfEachWorkItem_AreNone) {
    Compiled program(R"(
        typedef int Wide __attribute__((ext_vector_type(16), aligned(4)));
        kernel void k(global Wide* out, global const Wide* in, int rows, int step) {
            const int x = get_global_id(0), y0 = get_global_id(1);
            for (int y = y0, y1 = min(rows, y0 + 1); y < y1; ++y) out[y * step + x] = in[y * step + x] * 12345;
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(count(program, "12345"), 1U) << program.optimised();
    std::vector<int> in(16 * 20), out(in.size()), expected = out;
    std::iota(in.begin(), in.end(), 3);
    for (size_t i = 0; i < 16 * 5 * 3; ++i)
        expected[i] = 12345 * in[i];
    program.run({2, {5, 4, 1}, {5, 2, 1}}, Arguments().add(out.data()).add(in.data()).add(3).add(5));
    EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
