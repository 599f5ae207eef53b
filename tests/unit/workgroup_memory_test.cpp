// Memory of work-items: private arrays that become registers, atomic operations on local memory, and rows of elements.
#include "workgroup_harness.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// The body of the middle loop is too long for LLVM's own limits.
constexpr const char* eight_values = R"(
    constant int order[8] = {0, 4, 2, 6, 1, 5, 3, 7};
    kernel void k(global int* a, int m) {
        local int t[64];
        int l = get_local_id(0), v[8];
        for (int i = 0; i < 8; ++i) v[i] = a[get_global_id(0) * 8 + i];
        for (int j = 1; j < 8; ++j) {
            int x = v[order[j]];
            for (int r = 0; r < m; ++r)
                x = ((x << 3) ^ (x >> 5)) + ((x & 255) * (x | 7)) - ((x ^ m) & (x >> 2)) + ((x * 5) ^ (x + r)) - (x >> 9) + ((x | r) << 1);
            v[j] = x + j;
        }
        t[l] = v[3];
        barrier(CLK_LOCAL_MEM_FENCE);
        int other = t[(l + 1) % get_local_size(0)];
        for (int i = 0; i < 8; ++i) a[get_global_id(0) * 8 + i] = v[order[i]] + other;
    })";

int mixed(int value, int m) {
    auto x = static_cast<uint32_t>(value);
    const auto shifted = [](uint32_t v, int by) { return static_cast<uint32_t>(static_cast<int32_t>(v) >> by); };
    for (int r = 0; r < m; ++r) {
        const auto round = static_cast<uint32_t>(r), mask = static_cast<uint32_t>(m);
        x = ((x << 3) ^ shifted(x, 5)) + ((x & 255) * (x | 7)) - ((x ^ mask) & shifted(x, 2)) +
            ((x * 5) ^ (x + round)) - shifted(x, 9) + ((x | round) << 1);
    }
    return static_cast<int>(x);
}

TEST(PrivateArrays, IndexedByCountersOfShortLoops_AreRegisters) {
    constexpr int order[8] = {0, 4, 2, 6, 1, 5, 3, 7}, group = 24, m = 3;
    Compiled program(eight_values);
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().private_bytes_per_work_item, 0u) << program.optimised();
    std::vector<int> a(2 * group * 8), expected(a.size());
    std::iota(a.begin(), a.end(), -100);
    std::vector<int> v = a;
    for (size_t item = 0; item < 2 * group; ++item)
        for (size_t j = 1; j < 8; ++j)
            v[item * 8 + j] = mixed(v[item * 8 + static_cast<size_t>(order[j])], m) + static_cast<int>(j);
    for (size_t item = 0; item < 2 * group; ++item) {
        const size_t other = item / group * group + (item + 1) % group;
        for (size_t i = 0; i < 8; ++i)
            expected[item * 8 + i] =
                static_cast<int>(static_cast<uint32_t>(v[item * 8 + static_cast<size_t>(order[i])]) +
                                 static_cast<uint32_t>(v[other * 8 + 3]));
    }
    program.run({1, {2 * group, 1, 1}, {group, 1, 1}}, Arguments().add(a.data()).add(m));
    EXPECT_EQ(a, expected);
}

// The inner loops of an elimination run fewer times in each iteration of the outer one. The matrix lives across a barrier.
TEST(PrivateArrays, IndexedByCountersOfTriangles_AreRegisters) {
    constexpr size_t n = 5, items = 40;
    Compiled program(R"(
        kernel void k(global float* matrices) {
            float a[25];
            for (int i = 0; i < 25; i++) a[i] = matrices[get_global_id(0) * 25 + i];
            barrier(CLK_GLOBAL_MEM_FENCE);
            for (int k = 0; k < 5; k++)
                for (int i = k + 1; i < 5; i++) {
                    a[i * 5 + k] /= a[k * 6];
                    for (int j = k + 1; j < 5; j++) a[i * 5 + j] -= a[i * 5 + k] * a[k * 5 + j];
                }
            for (int i = 0; i < 25; i++) matrices[get_global_id(0) * 25 + i] = a[i];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_EQ(program.result().private_bytes_per_work_item, 0U) << program.optimised();
    std::vector<float> a(items * n * n), expected;
    for (size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<float>(i * 7 % 13) + (i % (n * n) % (n + 1) == 0 ? 40.0F : 1.0F);
    expected = a;
    for (size_t item = 0; item < items; ++item) {
        float* const m = &expected[item * n * n];
        for (size_t k = 0; k < n; ++k)
            for (size_t i = k + 1; i < n; ++i) {
                m[i * n + k] /= m[k * (n + 1)];
                for (size_t j = k + 1; j < n; ++j)
                    m[i * n + j] -= m[i * n + k] * m[k * n + j];
            }
    }
    program.run({1, {items, 1, 1}, {20, 1, 1}}, Arguments().add(a.data()));
    for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], expected[i], 1e-3) << i;
}

TEST(PrivateArrays, WithAnIndexFromMemory_StayInMemory) {
    Compiled program(R"(
        kernel void k(global int* a) {
            int v[8];
            for (int i = 0; i < 8; ++i) v[i] = i * i;
            a[get_global_id(0)] = v[a[get_global_id(0)] & 7];
        })");
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<int> a(40);
    std::iota(a.begin(), a.end(), 0);
    program.run({1, {40, 1, 1}, {40, 1, 1}}, Arguments().add(a.data()));
    for (int i = 0; i < 40; ++i)
        EXPECT_EQ(a[static_cast<size_t>(i)], (i & 7) * (i & 7));
}

constexpr const char* histogram = R"(
    kernel void k(global const uchar* in, global uint* out, global uint* old, uint n, local uint* other) {
        local uint h[16];
        uint l = get_local_id(0);
        if (l < 16) h[l] = 0;
        if (l == 0) *other = 100;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&h[in[i] & 15]);
        old[get_global_id(0)] = atomic_add(other, l);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < 16) ATOMIC_OUT(&out[l], h[l]);
    })";

// Neighbours count the same byte often.
TEST(LocalAtomics, WithoutUsesInLoops_KeepLanesAndTakeNoLockedInstructions) {
    constexpr uint32_t n = 1003, items = 96, group = 48;
    Compiled program("#define ATOMIC_OUT(p, v) *(p) += v\n" + std::string{histogram});
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_FALSE(has(program, "atomicrmw")) << program.optimised();
    EXPECT_EQ(program.result().lanes.scalar_loops, 0u) << program.result().lanes.reason;
    std::vector<uint8_t> in(n);
    std::vector<uint32_t> out(16), old(items), expected(16);
    for (size_t i = 0; i < n; ++i) {
        in[i] = static_cast<uint8_t>(i * i / 40);
        ++expected[in[i] & 15];
    }
    program.run({1, {items, 1, 1}, {group, 1, 1}},
                Arguments().add(in.data()).add(out.data()).add(old.data()).add(n).add_local(4));
    EXPECT_EQ(out, expected);
    // One work-item after the other.
    for (uint32_t i = 0, sum = 0; i < items; ++i) {
        if (i % group == 0)
            sum = 100;
        EXPECT_EQ(old[i], sum) << i;
        sum += i % group;
    }
}

// A work-item takes the lock, changes two variables, and releases it: lanes in step would wait for ever.
TEST(LocalAtomics, OfALoopThatWaits_RunOneWorkItemAfterTheOther) {
    Compiled program(R"(
        kernel void k(global int* out) {
            local int lock, sum;
            int l = get_local_id(0);
            if (l == 0) lock = sum = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (bool done = false; !done;)
                if (atomic_cmpxchg(&lock, 0, 1) == 0) {
                    out[get_global_id(0)] = sum;
                    sum += l;
                    atomic_xchg(&lock, 0);
                    done = true;
                }
        })");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    EXPECT_FALSE(has(program, "atomicrmw") || has(program, "cmpxchg")) << program.optimised();
    EXPECT_GT(program.result().lanes.scalar_loops, 0u);
    std::vector<int> out(60);
    program.run({1, {60, 1, 1}, {30, 1, 1}}, Arguments().add(out.data()));
    for (int i = 0; i < 60; ++i)
        EXPECT_EQ(out[static_cast<size_t>(i)], (i % 30) * (i % 30 - 1) / 2) << i;
}

TEST(LocalAtomics, OperationsOnGlobalMemory_StayAtomic) {
    Compiled program("#define ATOMIC_OUT(p, v) atomic_add(p, v)\n" + std::string{histogram});
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "atomicrmw add")) << program.optimised();
}

// A pointer to either memory.
TEST(LocalAtomics, OperationsOnGenericMemory_StayAtomic) {
    Compiled program(R"(
        kernel void k(global int* g, local int* l, int n) {
            volatile int* p = n > 3 ? (volatile int*)g : (volatile int*)l;
            __opencl_atomic_fetch_add((volatile atomic_int*)p, 1, memory_order_relaxed, memory_scope_device);
        })");
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "atomicrmw volatile add")) << program.optimised();
}

// The same kernel with a stronger order has a barrier at each operation.
TEST(GlobalAtomics, ThatChangeNothing_OnlyRead) {
    const auto reducing = [](const std::string& order) {
        return "kernel void k(global const int* in, global int* least, global uint* bits, global int* old) {\n"
               "    int i = get_global_id(0);\n"
               "    old[i] = __opencl_atomic_fetch_min((volatile global atomic_int*)least, in[i], " +
               order +
               ", memory_scope_device);\n"
               "    atomic_max(least + 1, in[i]);\n"
               "    old[i] += (int)atomic_or(bits, 1u << (in[i] & 7));\n}";
    };
    Compiled program(reducing("memory_order_relaxed"));
    ASSERT_EQ(program.prepare("k"), "");
    EXPECT_TRUE(has(program, "load atomic volatile i32")) << program.optimised();
    Compiled ordered(reducing("memory_order_seq_cst"));
    ASSERT_EQ(ordered.prepare("k"), "");
    EXPECT_FALSE(has(ordered, "umin.i32") || has(ordered, "smin.i32")) << ordered.optimised();
    constexpr int n = 100;
    std::vector<int> in(n), old(n), expected(n);
    std::array<int, 2> limits{50, 60}, expected_limits = limits;
    uint32_t bits = 0, expected_bits = 0;
    for (int i = 0; i < n; ++i) {
        const int value = i * 37 % 101 - 20;
        in[static_cast<size_t>(i)] = value;
        expected[static_cast<size_t>(i)] = expected_limits[0] + static_cast<int>(expected_bits);
        expected_limits = {std::min(expected_limits[0], value), std::max(expected_limits[1], value)};
        expected_bits |= 1U << (value & 7);
    }
    program.run({1, {n, 1, 1}, {25, 1, 1}}, Arguments().add(in.data()).add(limits.data()).add(&bits).add(old.data()));
    EXPECT_EQ(old, expected);
    EXPECT_EQ(limits, expected_limits);
    EXPECT_EQ(bits, expected_bits);
}

constexpr const char* tile = R"(
    kernel void k(global const float* a, global float* b, int w) {
        local float t[4 * 24];
        int lx = get_local_id(0), ly = get_local_id(1), x = (int)get_group_id(0) * 16 - 4 + lx, y = get_global_id(1);
        t[ly * 24 + lx] = x >= 0 && x < w ? a[y * w + x] : 0;
        if (lx < 8) t[ly * 24 + lx + 16] = x + 16 < w ? a[y * w + x + 16] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        b[y * w + x + 4] = t[ly * 24 + lx] + 2 * t[ly * 24 + lx + 4] + t[ly * 24 + lx + 8];
    })";

TEST(Rows, SumsOfARowAndAColumn_AreCheckedOnceForTheRow) {
    Compiled wide(tile, "znver3");
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_FALSE(has(wide, "icmp eq <8 x ptr")) << wide.optimised();
}

// LLVM computes an index of ints with longs, and cuts the sum.
TEST(Rows, SumsOfARowAndAColumnBehindABarrier_AreRowsOfMemory) {
    Compiled wide(R"(
        kernel void k(global float* out, global const float* in, local float* tile, int pitch) {
            int x = get_local_id(0), y = get_local_id(1), i = pitch * y + x;
            tile[y * 16 + x] = in[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            tile[y * 16 + x] *= in[y];
            barrier(CLK_LOCAL_MEM_FENCE);
            out[i] = tile[y * 16 + x];
        })",
                  processor_with_512_bits);
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_FALSE(has(wide, "masked.gather")) << wide.optimised();
    EXPECT_FALSE(has(wide, "masked.scatter")) << wide.optimised();
}

// The check before the loop extends the base as the kernel extends the index: a negative base passes only as a signed number.
TEST(Rows, BasesBelowZero_KeepTheLanesOfSignedIndices) {
    const auto code = [](const std::string& type) {
        Compiled program("kernel void k(global float* a, " + type + " from) { a[(" + type +
                         ")get_local_id(0) + from] = 1; }");
        EXPECT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.scalar_loops, 0u);
        return program.optimised();
    };
    EXPECT_EQ(code("int").find("zext i32"), std::string::npos) << code("int");
    EXPECT_NE(code("uint").find("zext i32"), std::string::npos) << code("uint");
}

// The remainder of an index is extended as an unsigned number, and so is its absolute value. The index itself may be negative.
TEST(Rows, BasesBelowZero_KeepTheLanesOfRemainders) {
    for (const char* const place :
         {"abs((int)get_local_id(0) + from)", "((int)get_local_id(0) + from) % count + count"}) {
        Compiled program(std::string("kernel void k(global float* a, int from, int count) { a[") + place + "] = 1; }");
        ASSERT_EQ(program.prepare("k"), "");
        EXPECT_EQ(program.result().lanes.scalar_loops, 0u);
        EXPECT_TRUE(has(program, "icmp sge i64")) << program.optimised();
    }
}

TEST(Rows, OfPeriodicGrids_AreRight) {
    constexpr int w = 48, h = 3;
    Compiled program(R"(
        kernel void k(global const int* in, global int* out, int w, int h) {
            const int x = get_global_id(0), y = get_global_id(1);
            int sum = 0;
            for (int d = -1; d <= 1; ++d)
                sum = 3 * sum + in[(y + d + h) % h * w + (x - 1 - d + w) % w];
            out[y * w + x] = sum;
        })");
    std::vector<int> in(w * h), out(w * h), expected(w * h);
    std::iota(in.begin(), in.end(), 1);
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x)
            for (int d = -1; d <= 1; ++d) {
                int& sum = expected[index_of(y * w + x)];
                sum = 3 * sum + in[index_of((y + d + h) % h * w + (x - 1 - d + w) % w)];
            }
    for (const bool is_specialised : {false, true}) {
        ASSERT_EQ(program.prepare("k", is_specialised, {24, 1, 1}), "");
        program.run({2, {w, h, 1}, {24, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(w).add(h));
        EXPECT_EQ(out, expected);
    }
}

TEST(Rows, BasesBelowZero_AreRight) {
    constexpr int w = 64, h = 8;
    Compiled program(tile);
    std::vector<float> a(w * h), b(w * h), expected(w * h);
    std::iota(a.begin(), a.end(), 1.0F);
    const auto at = [&](int y, int x) { return x >= 0 && x < w ? a[index_of(y * w + x)] : 0.0F; };
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x)
            expected[index_of(y * w + x)] = at(y, x - 4) + 2 * at(y, x) + at(y, x + 4);
    for (const bool is_specialised : {false, true}) {
        ASSERT_EQ(program.prepare("k", is_specialised, {16, 4, 1}), "");
        std::ranges::fill(b, 0.0F);
        program.run({2, {w, h, 1}, {16, 4, 1}}, Arguments().add(a.data()).add(b.data()).add(w));
        EXPECT_EQ(b, expected);
    }
}

std::string backward_rows(const std::string& type) {
    return "kernel void k(global const " + type + "* in, global " + type + R"(* out, int from, int count) {
        const int i = get_global_id(0), j = from - i;
        if (j >= 0 && j < count) out[j] = in[j] + in[i];
    })";
}

TEST(Rows, Backwards_AreRowsUnderMasks) {
    Compiled wide(backward_rows("uchar"), processor_with_512_bits);
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_FALSE(has(wide, "masked.gather")) << wide.optimised();
    EXPECT_FALSE(has(wide, "masked.scatter")) << wide.optimised();
}

template <class T>
void expect_backward_rows(const std::string& type) {
    constexpr int items = 64;
    for (const std::string processor : {"", "haswell", "x86-64-v2"}) {
        if (processor == "haswell" && __builtin_cpu_supports("avx2") == 0)
            continue;
        Compiled program(backward_rows(type), processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        std::vector<T> in(items);
        std::iota(in.begin(), in.end(), T{1});
        for (const int from : {63, 40, 7, 0, -5, 70, 100, 140})
            for (const int count : {64, 33, 3, 0}) {
                std::vector<T> out(items), expected(items);
                for (int i = 0; i < items; ++i)
                    if (const int j = from - i; j >= 0 && j < count)
                        expected[static_cast<size_t>(j)] =
                            static_cast<T>(in[static_cast<size_t>(j)] + in[static_cast<size_t>(i)]);
                program.run({1, {items, 1, 1}, {32, 1, 1}},
                            Arguments().add(in.data()).add(out.data()).add(from).add(count));
                EXPECT_EQ(out, expected) << processor << ' ' << type << ' ' << from << ' ' << count;
            }
    }
}

TEST(Rows, Backwards_AreRight) {
    expect_backward_rows<uint8_t>("uchar");
    expect_backward_rows<int16_t>("short");
    expect_backward_rows<float>("float");
    expect_backward_rows<double>("double");
}

// Work-items whose index wraps around read other elements than their neighbours.
TEST(Rows, IndicesThatWrapAround_AreRight) {
    constexpr const char* source = R"(
        kernel void k(global const int* a, global int* b, int from, uint above) {
            int i = (int)((uint)get_global_id(0) + (uint)from);
            uint u = (uint)get_global_id(0) + above;
            b[get_global_id(0)] = a[i & 63] + 100 * a[u >> 26] + 10000 * (i < 0) + (u < above ? 20000 : 0);
            if (i >= -8 && i < 40) b[64 + i + 8] = a[i + 8];
            if (u < 40) b[128 + u] = a[u];
        })";
    Compiled program(source);
    ASSERT_EQ(program.prepare("k"), "");
    std::vector<int> a(64);
    std::iota(a.begin(), a.end(), 1);
    const std::pair<int, uint32_t> starts[] = {
        {-8, 0}, {0, 0}, {INT32_MAX - 20, UINT32_MAX - 20}, {-40, UINT32_MAX - 3}};
    for (const auto& [from, above] : starts) {
        std::vector<int> b(192), expected(192);
        for (uint32_t item = 0; item < 64; ++item) {
            const auto i = static_cast<int32_t>(item + static_cast<uint32_t>(from));
            const uint32_t u = item + above;
            expected[item] =
                a[static_cast<size_t>(i & 63)] + 100 * a[u >> 26] + 10000 * (i < 0) + (u < above ? 20000 : 0);
            if (i >= -8 && i < 40)
                expected[index_of(64 + i + 8)] = a[index_of(i + 8)];
            if (u < 40)
                expected[128 + u] = a[u];
        }
        program.run({1, {64, 1, 1}, {32, 1, 1}}, Arguments().add(a.data()).add(b.data()).add(from).add(above));
        EXPECT_EQ(b, expected) << from;
    }
}

// LLVM subtracts before it extends an index of 64 bits that is cut to an int: ((x << 32) - (1 << 32)) >> 30.
constexpr const char* neighbours_before = R"(
    kernel void k(global int* out, global const int* in, local int* tile) {
        int i = get_local_id(0);
        tile[i] = 0;
        i += get_local_size(0);
        tile[i] = in[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        out[get_global_id(0)] = tile[i - 1];
    })";

TEST(Rows, IndicesOneBelowACutSum_AreRowsOfMemory) {
    Compiled wide(neighbours_before, processor_with_512_bits);
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_FALSE(has(wide, "masked.gather")) << wide.optimised();
}

TEST(Rows, IndicesOneBelowACutSum_AreRight) {
    for (const int summand : {-1, -5, 1, 3}) {
        Compiled program("kernel void k(global const int* a, global long* b, ulong from) {"
                         " int i = (int)((uint)(get_global_id(0) + from) + (uint)(" +
                         std::to_string(summand) +
                         ")); b[get_global_id(0)] = i * 4L; if (i >= -8 && i < 72) b[get_global_id(0)] += a[i]; }");
        ASSERT_EQ(program.prepare("k"), "");
        std::vector<int> a(80);
        std::iota(a.begin(), a.end(), 1);
        constexpr uint64_t half = uint64_t{1} << 31;
        for (const uint64_t from : {uint64_t{0}, uint64_t{8}, half - 40, half - 2, half + 4, 2 * half - 40,
                                    2 * half - 7, 2 * half, 2 * half + 1, 4 * half - 3, UINT64_MAX - 4}) {
            std::vector<int64_t> b(64), expected(64);
            for (uint64_t item = 0; item < 64; ++item) {
                const auto i =
                    static_cast<int32_t>(static_cast<uint32_t>(item + from) + static_cast<uint32_t>(summand));
                expected[item] = int64_t{i} * 4;
                if (i >= -8 && i < 72)
                    expected[item] += a[index_of(i + 8)];
            }
            program.run({1, {64, 1, 1}, {32, 1, 1}}, Arguments().add(a.data() + 8).add(b.data()).add(from));
            EXPECT_EQ(b, expected) << from << ' ' << summand;
        }
    }
}

// LLVM would not find that the loads for the four members are the same.
TEST(Structures, UnderAMask_AreLoadedOnce) {
    constexpr const char* source = "kernel void k(global float4* a, int n) {\n"
                                   "    local float4 all[256];\n    int l = get_local_id(0);\n    all[l] = a[l];\n"
                                   "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                                   "    if (l < n) all[l] = fmax(all[l], all[l + n]);\n"
                                   "    barrier(CLK_LOCAL_MEM_FENCE);\n    a[l] = all[l];\n}";
    Compiled wide(source, processor_with_512_bits);
    ASSERT_EQ(wide.prepare("k"), "");
    EXPECT_EQ(count(wide, "call <64 x float> @llvm.masked.load"), 2U) << wide.optimised();
    Compiled program(source);
    ASSERT_EQ(program.prepare("k"), "");
    for (const int n : {0, 1, 5, 16, 23, 32}) {
        std::vector<float> a(size_t{64} * 4), expected(a.size());
        for (size_t i = 0; i < a.size(); ++i)
            expected[i] = a[i] = static_cast<float>((i * 37) % 101);
        for (size_t i = 0; i < static_cast<size_t>(n) * 4; ++i)
            expected[i] = std::max(a[i], a[i + static_cast<size_t>(n) * 4]);
        program.run({1, {64, 1, 1}, {64, 1, 1}}, Arguments().add(a.data()).add(n));
        EXPECT_EQ(a, expected) << n;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
