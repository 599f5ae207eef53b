// Ids of usual launches are divided without a sign, and lanes look up what they index so in registers.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

std::string kernel_named(const std::string& name, const std::string& index) {
    return "kernel void " + name + R"((global const int* in, global int* out, int n) {
        const int i = get_global_id(0), local_i = get_local_id(0);
        out[(uint)i] = in[)" +
           index + "] + local_i; }";
}

bool has_sign(const std::string& name, const std::string& index) {
    Compiled program(kernel_named(name, index), processor_with_512_bits);
    EXPECT_EQ(program.prepare(name), "");
    return has(program, "srem") || has(program, "sdiv") || has(program, "ashr");
}

TEST(IdLimits, OfUsualLaunches_ArePositive) {
    for (const char* index :
         {"i % 4", "i % 24", "i / 4 * 3", "(i + 3) % 5", "(i * 5 + 2) % 12", "(i % 100 + local_i) % 9"}) {
        EXPECT_TRUE(has_sign("any", index)) << index;
        EXPECT_FALSE(has_sign("usual_", index)) << index;
    }
    // They may be negative, or wrap around.
    for (const char* index : {"(i - 3) % 4 + 3", "(i * 16) % 7 + 6", "(i + n) % 5 + 4", "i % n"})
        EXPECT_TRUE(has_sign("usual_", index)) << index;
}

// Ids from 2^31 on are negative as an int, in launches that are not usual.
TEST(IdLimits, OfAnyLaunch_AreDividedRightly) {
    constexpr const char* source = R"(
        kernel void any(global const int* in, global int* out, ulong first) {
            const int i = get_global_id(0);
            out[get_global_id(0) - first] = in[i % 4 + 3] * 1000 + i / 7 % 100;
        })";
    const std::vector<int> in{1, 2, 3, 4, 5, 6, 7};
    for (const uint64_t first :
         {uint64_t{0}, uint64_t{5}, (uint64_t{1} << 31) - 32, uint64_t{1} << 31, (uint64_t{1} << 32) - 64}) {
        Compiled program(source);
        ASSERT_EQ(program.prepare("any"), "");
        std::vector<int> out(64);
        program.run({1, {64, 1, 1}, {64, 1, 1}, {first, 0, 0}}, Arguments().add(in.data()).add(out.data()).add(first));
        for (size_t item = 0; item < out.size(); ++item) {
            const auto i = static_cast<int>(static_cast<uint32_t>(first + item));
            EXPECT_EQ(out[item], in[index_of(i % 4 + 3)] * 1000 + i / 7 % 100) << first << " " << item;
        }
    }
}

// As in copies of a vector of four numbers, again and again.
TEST(IdLimits, OfIndicesOfFewNumbers_MakeLanes) {
    constexpr const char* source = R"(
        kernel void usual_(global const uchar* in, global uchar* out, int n) {
            const int i = get_global_id(0);
            if (i < n) out[i] = in[i % 4];
        })";
    Compiled program(source, processor_with_512_bits);
    ASSERT_EQ(program.prepare("usual_"), "");
    EXPECT_EQ(program.result().lanes.loops, 1U);
    EXPECT_LT(program.result().lanes.estimate, 0.5);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
