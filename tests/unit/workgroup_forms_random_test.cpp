// Random kernels of workgroup_forms_program.h in lanes, against their plain form one work-item after the other.
//
// POLDER_RANDOM_SEEDS=first:count runs other seeds than CI's.
#include "random_seeds.h"
#include "support/checked_apart.h"
#include "workgroup_forms_program.h"
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <new>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint32_t kernels_of_a_source = 10;

struct Launch {
    Range range;
    bool is_specialised;
    WorkGroupOptions::Ends ends;
};

Launch launch_of(uint32_t seed) {
    constexpr auto whole = WorkGroupOptions::Ends::whole, ragged = WorkGroupOptions::Ends::ragged;
    const Launch all[] = {
        {{2, {38, 6, 1}, {16, 2, 1}}, false, ragged}, {{1, {96, 1, 1}, {48, 1, 1}}, false, ragged},
        {{2, {32, 12, 1}, {16, 4, 1}}, true, whole},  {{2, {40, 5, 1}, {20, 3, 1}, {3, 1, 0}}, false, ragged},
        {{1, {77, 1, 1}, {40, 1, 1}}, true, ragged},  {{2, {8, 40, 1}, {4, 16, 1}}, true, ragged},
        {{1, {128, 1, 1}, {64, 1, 1}}, true, whole},  {{2, {6, 64, 1}, {3, 20, 1}}, false, ragged},
    };
    return all[seed % std::size(all)];
}

// A vector type may begin at a multiple of 16 words.
struct alignas(64) Words {
    uint32_t values[own_words];
};

// What a launch reads and writes.
struct Buffers {
    std::vector<Words> middle, own, alias;
    std::vector<uint32_t> out;
    std::vector<uint8_t> bytes;

    Buffers(uint32_t seed, uint64_t items)
        : middle(2 * margin_words / own_words), own(items + 8), out(items, 0xdeadbeef), bytes(4096) {
        std::mt19937 random(seed);
        for (Words& words : middle)
            for (uint32_t& word : words.values) {
                word = static_cast<uint32_t>(random());
                word >>= word % 4 * 8;
            }
        for (Words& words : own)
            for (uint32_t& word : words.values)
                word = static_cast<uint32_t>(random());
        for (uint8_t& byte : bytes)
            byte = static_cast<uint8_t>(random());
    }
};

// What the work-items wrote.
std::vector<uint32_t> written(const Compiled& compiled, const Launch& launch, uint32_t seed, int32_t width, uint32_t n,
                              int32_t reach, uint32_t stage) {
    Buffers buffers(seed, launch.range.global[0] * launch.range.global[1]);
    compiled.run(launch.range, Arguments()
                                   .add(buffers.middle.data())
                                   .add(buffers.out.data())
                                   .add(buffers.own.data())
                                   .add(buffers.own.data())
                                   .add(buffers.bytes.data())
                                   .add_local(1024)
                                   .add(width)
                                   .add(width / 2 + 1)
                                   .add(n)
                                   .add(reach)
                                   .add(stage));
    std::vector<uint32_t> result = buffers.out;
    for (const Words& words : buffers.own)
        result.insert(result.end(), std::begin(words.values), std::end(words.values));
    return result;
}

struct Form {
    const char* processor;
    Lanes lanes = Lanes::wherever_possible;
    unsigned vectors = 0;  // as in WorkGroupOptions
};

// Empty when the kernel computes what its plain form does.
std::string compare(Compiled& plain, Compiled& tested, const std::string& kernel, uint32_t seed, const Form& form) {
    const Launch launch = launch_of(seed);
    if (std::string problem = plain.prepare(kernel, false, {}, WorkGroupOptions::Ends::ragged, Lanes::none);
        !problem.empty())
        return "plain: " + problem;
    tested.run_at_once(form.vectors);
    tested.run_all_passes();
    if (std::string problem =
            tested.prepare(kernel, launch.is_specialised, launch.range.local, launch.ends, form.lanes);
        !problem.empty())
        return problem;
    for (const auto& [width, n, reach, stage] :
         {std::tuple{29, 0U, 5, 1U}, {12, 3U, 40, 3U}, {40, 14U, 1000, 1U}, {7, 0xfffffffdU, 0, 16U}}) {
        const std::vector<uint32_t> expected = written(plain, launch, seed, width, n, reach, stage),
                                    got = written(tested, launch, seed, width, n, reach, stage);
        const auto differs = std::ranges::mismatch(expected, got);
        if (differs.in1 != expected.end())
            return "differs at " + std::to_string(differs.in1 - expected.begin()) + ": " +
                   std::to_string(*differs.in2) + " instead of " + std::to_string(*differs.in1) + " for width " +
                   std::to_string(width) + ", n " + std::to_string(n) + ", reach " + std::to_string(reach) +
                   ", stage " + std::to_string(stage);
    }
    return {};
}

void expect_right(uint32_t usual_first, uint32_t usual_count, const std::vector<Form>& forms) {
    const auto [first, count] = seeds_or({usual_first, usual_count});
    for (uint32_t done = 0; done < count; done += kernels_of_a_source) {
        const uint32_t here = std::min(count - done, kernels_of_a_source);
        std::vector<std::string> texts;
        std::string source = forms_prelude();
        for (uint32_t i = 0; i < here; ++i) {
            texts.push_back(FormsProgram(first + done + i).text("k" + std::to_string(i)));
            source += texts.back();
        }
        Compiled plain(plain_definitions + source);
        std::vector<std::unique_ptr<Compiled>> tested;
        for (const Form& form : forms)
            tested.push_back(std::make_unique<Compiled>(tested_definitions + source, form.processor));
        for (uint32_t i = 0; i < here; ++i)
            for (size_t f = 0; f < forms.size(); ++f) {
                const uint32_t seed = first + done + i;
                const std::string problem = polder::test::checked_apart(
                    [&] { return compare(plain, *tested[f], "k" + std::to_string(i), seed, forms[f]); });
                EXPECT_EQ(problem, "") << "seed " << seed << ", form " << f << " (" << forms[f].processor << ")\n"
                                       << texts[i];
            }
    }
}

// Otherwise a failing seed would name another program when another compiler has built the test. The hash changes with the generator.
TEST(WorkGroupForms, ProgramsAreTheSameForEveryCompilerOfThisTest) {
    EXPECT_EQ(hash_of_programs([](uint32_t seed) { return FormsProgram(seed).text("k"); }), 17831101981822436558U);
}

#if defined(__x86_64__)

TEST(WorkGroupForms, WithVectorsOf512Bits) {
    if (!runs_here("skylake-avx512"))
        GTEST_SKIP() << "needs a processor like Skylake's server";
    expect_right(1, 20, {{.processor = "skylake-avx512"}, {.processor = "", .lanes = Lanes::where_they_pay}});
}

TEST(WorkGroupForms, WithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_right(10001, 20, {{.processor = "haswell"}, {.processor = "haswell", .lanes = Lanes::where_they_pay}});
}

TEST(WorkGroupForms, WithVectorsOf128Bits) { expect_right(20001, 20, {{.processor = "x86-64-v2"}}); }

TEST(WorkGroupForms, SeveralVectorsAtOnce) {
    expect_right(30001, 10, {{.processor = "", .vectors = 2}, {.processor = "x86-64-v2", .vectors = 4}});
}

#endif

TEST(WorkGroupForms, OneWorkItemAfterTheOther) {
    expect_right(40001, 10, {{.processor = "", .lanes = Lanes::none}, {.processor = "", .lanes = Lanes::later}});
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
