// Random kernels that access memory (workgroup_memory_program.h) in lanes, for processors with vectors of 128, 256 and 512 bits.
//
// POLDER_RANDOM_SEEDS=first:count runs other seeds than CI's; first:0 goes on until something fails, for the first
// test that --gtest_filter lets run. What fails is printed without the statements that do not matter.
#include "random_seeds.h"
#include "support/checked_apart.h"
#include "workgroup_memory_program.h"

#include <cstdio>
#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint32_t kernels_of_a_source = 25;

struct WantedLanes {
    Lanes lanes = Lanes::wherever_possible;
    unsigned vectors = 0;  // as in WorkGroupOptions
};

struct Launch {
    Range range;
    bool is_specialised;
    WorkGroupOptions::Ends ends;
    Lanes lanes;
};

Launch launch_of(uint32_t seed, Lanes lanes) {
    constexpr auto whole = WorkGroupOptions::Ends::whole, ragged = WorkGroupOptions::Ends::ragged;
    const Launch all[] = {
        {{1, {96, 1, 1}, {48, 1, 1}}, false, ragged, Lanes::wherever_possible},
        {{1, {77, 1, 1}, {40, 1, 1}}, false, ragged, Lanes::wherever_possible},
        {{2, {40, 6, 1}, {20, 3, 1}}, false, ragged, Lanes::wherever_possible},
        {{2, {16, 16, 1}, {8, 8, 1}}, true, whole, Lanes::wherever_possible},
        {{2, {4, 50, 1}, {4, 20, 1}}, true, ragged, Lanes::wherever_possible},
        {{1, {128, 1, 1}, {64, 1, 1}}, true, whole, Lanes::where_they_pay},
    };
    Launch launch = all[seed % std::size(all)];
    if (lanes == Lanes::with_whole_vectors)
        launch.lanes = lanes;
    return launch;
}

// Empty when the kernel computes what the program does.
std::string compare(const MemoryProgram& program, uint32_t seed, Compiled& compiled, const std::string& kernel,
                    WantedLanes wanted) {
    const Launch launch = launch_of(seed, wanted.lanes);
    compiled.run_at_once(wanted.vectors);
    if (std::string problem =
            compiled.prepare(kernel, launch.is_specialised, launch.range.local, launch.ends, launch.lanes);
        !problem.empty())
        return problem;
    for (const int32_t n : {0, 3, 22}) {
        MemoryBuffers expected(seed, launch.range.global[0] * launch.range.global[1]);
        MemoryBuffers got = expected;
        program.run(launch.range, n, expected);
        compiled.run(launch.range, memory_arguments(got, n));
        if (!(got == expected))
            return "differs for n = " + std::to_string(n) + ", local size " + std::to_string(launch.range.local[0]) +
                   " x " + std::to_string(launch.range.local[1]);
    }
    return {};
}

std::string kind_of(const std::string& problem) { return problem.substr(0, problem.find(' ')); }

// The smaller program that still fails in the same way.
std::string minimised(MemoryProgram& program, uint32_t seed, const std::string& processor, const std::string& problem,
                      WantedLanes wanted) {
    program.minimise([&] {
        const std::string now = polder::test::checked_apart([&] {
            Compiled compiled(program.text("k"), processor);
            compiled.run_all_passes();
            return compare(program, seed, compiled, "k", wanted);
        });
        return kind_of(now) == kind_of(problem);
    });
    return program.text("k");
}

using Structures = MemoryProgram::Structures;

enum class Guards : uint8_t { none, used };

void expect_right(uint32_t usual_first, uint32_t usual_count, const char* processor,
                  Structures structures = Structures::none, Guards guards = Guards::none, WantedLanes wanted = {}) {
    const auto [first, count] = seeds_or({usual_first, usual_count});
    const bool is_endless = count == 0;
    for (uint32_t done = 0; is_endless || done < count; done += kernels_of_a_source) {
        if (is_endless && done != 0 && done % 500 == 0)
            std::fprintf(stderr, "%u seeds from %u on are right\n", done, first);
        const uint32_t here = is_endless ? kernels_of_a_source : std::min(count - done, kernels_of_a_source);
        std::string source;
        std::vector<std::unique_ptr<MemoryProgram>> programs;
        for (uint32_t i = 0; i < here; ++i) {
            programs.push_back(std::make_unique<MemoryProgram>(first + done + i, structures));
            if (guards == Guards::used)
                programs.back()->guard(first + done + i);
            source += programs.back()->text("k" + std::to_string(i));
        }
        Compiled compiled(source, processor);
        compiled.run_all_passes();
        for (uint32_t i = 0; i < here; ++i) {
            const uint32_t seed = first + done + i;
            const std::string problem = polder::test::checked_apart(
                [&] { return compare(*programs[i], seed, compiled, "k" + std::to_string(i), wanted); });
            if (problem.empty())
                continue;
            std::fprintf(stderr, "seed %u %s; taking statements away\n", seed, problem.c_str());
            FAIL() << problem << ", seed " << seed << "\n" << minimised(*programs[i], seed, processor, problem, wanted);
        }
    }
}

// Otherwise a failing seed would name another program when another compiler has built the test. The hash changes with the generator.
TEST(WorkGroupMemory, ProgramsAreTheSameForEveryCompilerOfThisTest) {
    EXPECT_EQ(hash_of_programs([](uint32_t seed) { return MemoryProgram(seed).text("k"); }), 15714605787370839827U);
}

#if defined(__x86_64__)

bool has_512_bits() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

TEST(WorkGroupMemory, WithVectorsOf512Bits) {
    if (!has_512_bits())
        GTEST_SKIP() << "needs a processor like Skylake's server";
    expect_right(1, 700, "x86-64-v4");
}

TEST(WorkGroupMemory, StructuresWithVectorsOf512Bits) {
    if (!has_512_bits())
        GTEST_SKIP() << "needs a processor like Skylake's server";
    expect_right(30001, 200, "x86-64-v4", Structures::used);
}

TEST(WorkGroupMemory, StructuresWithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_right(31001, 100, "haswell", Structures::used);
}

// The check of a likely step used numbers of a block that is skipped when no lane is active.
TEST(WorkGroupMemory, NumbersOfSkippedBlocksWithVectorsOf128Bits) { expect_right(620262029, 1, "x86-64-v2"); }

TEST(WorkGroupMemory, GuardsWithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_right(33001, 100, "haswell", Structures::none, Guards::used);
}

TEST(WorkGroupMemory, GuardsWithVectorsOf128Bits) {
    expect_right(34001, 100, "x86-64-v2", Structures::none, Guards::used);
}

TEST(WorkGroupMemory, StructuresWithVectorsOf128Bits) { expect_right(32001, 100, "x86-64-v2", Structures::used); }

void expect_whole_vectors_right(uint32_t first, uint32_t count, const char* processor) {
    expect_right(first, count, processor, Structures::vectors, Guards::none, {.lanes = Lanes::with_whole_vectors});
}

// Each explicit vector stays whole in lanes: work-items' vectors are side by side in a register.
TEST(WorkGroupMemory, WholeVectorsWithVectorsOf512Bits) {
    if (!has_512_bits())
        GTEST_SKIP() << "needs a processor like Skylake's server";
    expect_whole_vectors_right(35001, 300, "x86-64-v4");
}

TEST(WorkGroupMemory, WholeVectorsWithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_whole_vectors_right(36001, 200, "haswell");
}

TEST(WorkGroupMemory, WholeVectorsWithVectorsOf128Bits) { expect_whole_vectors_right(37001, 100, "x86-64-v2"); }

// The same vectors, split into their elements.
TEST(WorkGroupMemory, SplitVectorsWithVectorsOf512Bits) {
    if (!has_512_bits())
        GTEST_SKIP() << "needs a processor like Skylake's server";
    expect_right(38001, 100, "x86-64-v4", Structures::vectors);
}

void expect_several_vectors_right(uint32_t first, uint32_t count, const char* processor) {
    expect_right(first, count, processor, Structures::none, Guards::none, {.vectors = 2});
    expect_right(first + 1000, count / 2, processor, Structures::used, Guards::none, {.vectors = 2});
    expect_right(first + 2000, count, processor, Structures::none, Guards::used, {.vectors = 4});
    expect_right(first + 3000, count / 2, processor, Structures::vectors, Guards::none, {.vectors = 2});
    expect_right(first + 4000, count / 2, processor, Structures::vectors, Guards::none,
                 {.lanes = Lanes::with_whole_vectors, .vectors = 2});
}

TEST(WorkGroupMemory, SeveralVectorsOf512Bits) {
    if (!has_512_bits())
        GTEST_SKIP() << "needs a processor like Skylake's server";
    expect_several_vectors_right(41001, 40, "x86-64-v4");
}

TEST(WorkGroupMemory, SeveralVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_several_vectors_right(45001, 24, "haswell");
}

TEST(WorkGroupMemory, SeveralVectorsOf128Bits) { expect_several_vectors_right(49001, 24, "x86-64-v2"); }

// In a work-group of a known size, a multiple of an id was extended from 32 bits with a step, but its first half, a shift, had none.
TEST(WorkGroupMemory, ExtendedMultiplesOfIdsWithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_right(7400289, 1, "haswell", Structures::constant_tables);
}

// icelake-server also permutes bytes.
TEST(WorkGroupMemory, TablesWithVectorsOf512Bits) {
    if (!has_512_bits())
        GTEST_SKIP() << "needs a processor like Skylake's server";
    expect_right(39001, 60, "x86-64-v4", Structures::constant_tables);
    if (__builtin_cpu_supports("avx512vbmi"))
        expect_right(39501, 60, "icelake-server", Structures::constant_tables);
}

TEST(WorkGroupMemory, TablesWithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_right(40001, 60, "haswell", Structures::constant_tables);
}

TEST(WorkGroupMemory, WithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_right(10001, has_512_bits() ? 700 : 1400, "haswell");
}

TEST(WorkGroupMemory, WithVectorsOf128Bits) {
    // A number that one block makes, which no lane may enter, and that another one needs in more bits.
    expect_right(20101366, 1, "x86-64-v2");
    expect_right(20001, 600, "x86-64-v2");
}

#else

TEST(WorkGroupMemory, WithThisProcessor) { expect_right(1, 2000, ""); }

TEST(WorkGroupMemory, StructuresWithThisProcessor) { expect_right(30001, 400, "", Structures::used); }

#endif

}  // namespace
}  // namespace polder::compiler::workgroup::test
