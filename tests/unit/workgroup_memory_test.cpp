// Memory of work-items: private arrays that become registers.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
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

}  // namespace
}  // namespace polder::compiler::workgroup::test
