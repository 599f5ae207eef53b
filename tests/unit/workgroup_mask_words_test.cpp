// Masks between basic blocks: words as wide as the lanes' values where the processor has no mask registers.
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <numeric>
#include <regex>

namespace polder::compiler::workgroup::test {
namespace {

constexpr const char* processor_with_256_bits = "haswell";
constexpr const char* processor_with_mask_registers = "skylake-avx512";

// Lanes leave the loop one by one, and some of them count.
const std::string divergent_loop = R"(
    kernel void k(global const uint* in, global uint* out, uint odd) {
        uint x = in[get_global_id(0)], steps = 0;
        while (x > 1) {
            if ((x & 1) == odd) ++steps;
            x = x / 3;
        }
        out[get_global_id(0)] = steps;
    })";

// `lanes`: of one vector. Groups of three vectors run one at a time.
std::string optimised(const std::string& source, const char* processor, size_t lanes = 8) {
    Compiled program(source, processor);
    EXPECT_EQ(program.prepare("k", true, {3 * lanes, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible),
              "");
    EXPECT_EQ(program.result().lanes.loops, 1U) << program.result().lanes.reason;
    return program.optimised();
}

TEST(MaskWords, OfLanesInALoop_ArePhisOfWords) {
    const std::string code = optimised(divergent_loop, processor_with_256_bits);
    EXPECT_EQ(code.find("phi <8 x i1>"), std::string::npos) << code;
    EXPECT_NE(code.find("%words = phi <8 x i32>"), std::string::npos) << code;
}

TEST(MaskWords, OfProcessorsWithMaskRegisters_StayBits) {
    const std::string code = optimised(divergent_loop, processor_with_mask_registers, 16);
    EXPECT_NE(code.find("phi <16 x i1>"), std::string::npos) << code;
    EXPECT_EQ(code.find("%words"), std::string::npos) << code;
}

// Values of 64 bits in eight lanes have masks of two registers; those of 128 bits are as wide as what LLVM passes.
TEST(MaskWords, AreAsWideAsTheValues) {
    const std::string source = R"(
        kernel void k(global const ulong* in, global ulong* out) {
            ulong x = in[get_global_id(0)], steps = 0;
            while (x != 1) { x = x & 1 ? 3 * x + 1 : x >> 1; ++steps; }
            out[get_global_id(0)] = steps;
        })";
    EXPECT_NE(optimised(source, processor_with_256_bits).find("%words = phi <8 x i64>"), std::string::npos);
    EXPECT_EQ(optimised(divergent_loop, "x86-64-v2", 4).find("%words"), std::string::npos);
}

// Pairs are compared before they are taken apart.
const std::string compared_pairs = R"(
    kernel void k(global const float2* a, global const float2* b, global int* out) {
        const int i = get_global_id(0);
        if (a[i].x != b[i].x || a[i].y > b[i].y) out[i] = 1;
    })";

TEST(MaskWords, OfStructures_AreMovedAsWords) {
    for (const char* processor : {processor_with_256_bits, "x86-64-v2"}) {
        const std::string code = optimised(compared_pairs, processor);
        EXPECT_FALSE(std::regex_search(code, std::regex("shufflevector <[0-9]+ x i1>"))) << code;
    }
}

TEST(MaskWords, OfStructures_LeaveResultsAsTheyAre) {
    if (!__builtin_cpu_supports("avx2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    constexpr size_t count = 128;
    std::vector<float> a(2 * count), b(2 * count);
    for (size_t i = 0; i < 2 * count; ++i) {
        a[i] = static_cast<float>(i % 7);
        b[i] = static_cast<float>(i % 3 == 0 ? i % 5 : i % 7);
    }
    for (const char* processor : {processor_with_256_bits, "x86-64-v2"}) {
        Compiled program(compared_pairs, processor);
        ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
        std::vector<int> out(count);
        program.run({1, {count, 1, 1}, {64, 1, 1}}, Arguments().add(a.data()).add(b.data()).add(out.data()));
        for (size_t i = 0; i < count; ++i)
            EXPECT_EQ(out[i], a[2 * i] != b[2 * i] || a[2 * i + 1] > b[2 * i + 1] ? 1 : 0) << processor << ' ' << i;
    }
}

TEST(MaskWords, OfDivergentLoops_LeaveResultsAsTheyAre) {
    if (!__builtin_cpu_supports("avx2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    Compiled program(divergent_loop, processor_with_256_bits);
    ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
    constexpr uint64_t count = 256;
    std::vector<uint32_t> in(count), out(count);
    std::iota(in.begin(), in.end(), 0U);
    program.run({1, {count, 1, 1}, {64, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(uint32_t{1}));
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t steps = 0;
        for (uint32_t x = i; x > 1; x /= 3)
            steps += x & 1;
        EXPECT_EQ(out[i], steps) << i;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
