// Divisions under conditions in loops that LLVM makes vectors of (vectorizer/preparation/loop_divisions.h).
#include "workgroup_harness.h"

#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// LLVM computed one quotient for each vector, only where the first iteration in it passed the condition.
TEST(LoopDivisions, UnderConditions_AreComputedForAllIterations) {
    constexpr uint32_t size = 96, divisor = 53;
    struct Case {
        const char* place;
        uint32_t (*computed)(uint32_t i, uint32_t divisor);
    };
    const Case cases[] = {
        {"4089u % divisor", [](uint32_t, uint32_t d) { return 4089 % d; }},
        {"4089u / divisor", [](uint32_t, uint32_t d) { return 4089 / d; }},
        {"divisor * 9 / max(4089u % divisor, 1u)", [](uint32_t, uint32_t d) { return d * 9 / (4089 % d); }},
        // The same for 16 or eight neighbouring iterations.
        {"4089u % ((uint)(i >> 4) + divisor)", [](uint32_t i, uint32_t d) { return 4089 % ((i >> 4) + d); }},
        {"(uint)(i / 16 * 77) % divisor", [](uint32_t i, uint32_t d) { return i / 16 * 77 % d; }},
        {"(uint)(i >> 3) / divisor", [](uint32_t i, uint32_t d) { return (i >> 3) / d; }},
        {"(uint)i * 77 % divisor", [](uint32_t i, uint32_t d) { return i * 77 % d; }},
    };
    for (const Case& tested : cases)
        for (const std::string processor : processors) {
            if (!runs_here(processor))
                continue;
            // Nothing that is written can be in the table.
            const std::string source = R"(
                kernel void k(global const uint* restrict in, global uint* restrict out, uint divisor) {
                    uint table[128];
                    for (int k = 0; k < 128; ++k) table[k] = in[k & 63] + divisor;
                    for (ulong i = 0; i < 96; ++i) {
                        if (in[i] & 1) continue;
                        out[i] = table[()" +
                                       std::string(tested.place) + ") & 127] ^ in[i]; } }";
            Compiled program(source, processor);
            ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
            std::vector<uint32_t> in(size), out(size, 7), expected(size, 7);
            for (uint32_t i = 0; i < size; ++i)
                in[i] = i * 2654435761U >> 7 | (i % 8 == 0 ? 1 : 0);
            for (uint32_t i = 0; i < size; ++i)
                if (in[i] % 2 == 0)
                    expected[i] = (in[tested.computed(i, divisor) & 63] + divisor) ^ in[i];
            program.run({}, Arguments().add(in.data()).add(out.data()).add(divisor));
            EXPECT_EQ(out, expected) << tested.place << " " << processor;
        }
}

// A branch around the loop leads to it without a block of its own in between. The divisor is guarded as divisions of a program are.
TEST(LoopDivisions, OfLoopsBehindABranch_AreTheSameForAllIterations) {
    constexpr size_t size = 112;
    const std::string source = R"(
        kernel void k(global const uint* restrict in, global uint* restrict out, uint divisor) {
            const size_t at = get_global_id(0);
            if (at % 7 != 0) return;
            for (int i = 0; i < 112; ++i) {
                if (in[i + at] & 1) continue;
                out[at * 16 + i] = in[4089u % max(divisor, 1u)] ^ in[i + at];
            }
        })";
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(source, processor);
        ASSERT_EQ(program.prepare("k", true, {1, 1, 1}, WorkGroupOptions::Ends::whole), "");
        std::vector<uint32_t> in(2 * size), out(3 * size, 7), expected(3 * size, 7);
        for (uint32_t i = 0; i < in.size(); ++i)
            in[i] = i * 2654435761U >> 7 | (i % 8 == 0 ? 1 : 0);
        const uint32_t divisor = 53;
        for (size_t at = 0; at < 20; at += 7)
            for (size_t i = 0; i < size; ++i)
                if (in[i + at] % 2 == 0)
                    expected[at * 16 + i] = in[4089 % divisor] ^ in[i + at];
        program.run({1, {20, 1, 1}, {1, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(divisor));
        EXPECT_EQ(out, expected) << processor;
    }
}

// The loop is not entered, or no iteration passes the condition: nothing is divided by zero.
TEST(LoopDivisions, ThatAreNotReached_DivideByNothing) {
    Compiled program(
        "kernel void k(global const uint* restrict in, global uint* restrict out, uint divisor, uint n) {"
        "  for (ulong i = 0; i < n; ++i) { if (in[i] & 1) continue; out[i] = in[4089u % divisor] ^ in[i]; } }");
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::none), "");
    const std::vector<uint32_t> in(64, 3);
    std::vector<uint32_t> out(64, 7);
    for (const uint32_t n : {0U, 64U})
        program.run({}, Arguments().add(in.data()).add(out.data()).add(0U).add(n));
    EXPECT_EQ(out, std::vector<uint32_t>(64, 7));
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
