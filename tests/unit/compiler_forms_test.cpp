// Other forms of a kernel's code (decision 325): which ones are worth measuring, and that the best one is found again by another process.
#include "compiler_support.h"
#include "module/module.h"
#include "targets/host/code_generator.h"
#include "targets/host/other_forms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <unistd.h>

namespace polder::compiler::test {
namespace {

using Forms = std::vector<Form>;
constexpr uint64_t short_code = 4000;

workgroup::LaneReport lanes(unsigned vectors, double estimate = 0.1) {
    workgroup::LaneReport report;
    report.loops = 1;
    report.width = 16;
    report.vectors = vectors;
    report.estimate = estimate;
    return report;
}

workgroup::LaneReport no_lanes(double estimate) {
    workgroup::LaneReport report;
    report.scalar_loops = 1;
    report.estimate = estimate;
    return report;
}

TEST(OtherForms, AreOtherNumbersOfVectors_AndNoLanes) {
    EXPECT_EQ(other_forms(lanes(1), short_code, true),
              (Forms{Form::two_vectors, Form::four_vectors, Form::without_lanes}));
    EXPECT_EQ(other_forms(lanes(2), short_code, true),
              (Forms{Form::four_vectors, Form::one_vector, Form::without_lanes}));
    EXPECT_EQ(other_forms(lanes(4), short_code, true),
              (Forms{Form::two_vectors, Form::one_vector, Form::without_lanes}));
}

// A process that ends early should have measured what may gain most.
TEST(OtherForms, AreWithoutLanesFirstWhereLanesGainLittle) {
    workgroup::LaneReport report = lanes(1);
    report.estimate = 0.56;
    EXPECT_EQ(other_forms(report, short_code, true),
              (Forms{Form::without_lanes, Form::two_vectors, Form::four_vectors}));
    EXPECT_EQ(other_forms(report, short_code, false), (Forms{Form::two_vectors, Form::four_vectors}));
    report.estimate = 0.2;
    EXPECT_EQ(other_forms(report, short_code, true),
              (Forms{Form::two_vectors, Form::four_vectors, Form::without_lanes}));
}

TEST(OtherForms, HaveLanesWhereTheEstimateIsNotFarFromThem) {
    EXPECT_EQ(other_forms(no_lanes(1.2), short_code, true), Forms{Form::with_lanes});
    EXPECT_EQ(other_forms(no_lanes(20), short_code, true), Forms{});
    EXPECT_EQ(other_forms(no_lanes(0), short_code, true), Forms{});  // they are not possible
}

TEST(OtherForms, HaveLanesInsteadOfTheVectorsOfTheKernel) {
    workgroup::LaneReport own_vectors = no_lanes(0);
    own_vectors.keeps_vectors = true;
    EXPECT_EQ(other_forms(own_vectors, short_code, true), Forms{Form::with_lanes});
    EXPECT_EQ(other_forms(own_vectors, short_code, false), Forms{});
    workgroup::LaneReport side_by_side = lanes(1);
    side_by_side.keeps_vectors = true;
    EXPECT_EQ(other_forms(side_by_side, short_code, true),
              (Forms{Form::two_vectors, Form::four_vectors, Form::with_lanes, Form::without_lanes}));
}

TEST(OtherForms, WithoutLanesNeedTheSameResults) {
    EXPECT_EQ(other_forms(lanes(1), short_code, false), (Forms{Form::two_vectors, Form::four_vectors}));
    EXPECT_EQ(other_forms(no_lanes(1.2), short_code, false), Forms{});
}

TEST(OtherForms, OfLongCodeHaveNotMoreVectors) {
    EXPECT_EQ(other_forms(lanes(1), uint64_t{60} << 10, false), Forms{Form::two_vectors});
    EXPECT_EQ(other_forms(lanes(1), uint64_t{1} << 20, false), Forms{});
    EXPECT_EQ(other_forms(lanes(4), uint64_t{1} << 20, false), (Forms{Form::two_vectors, Form::one_vector}));
}

constexpr const char* chain = R"(kernel void chain(global float* a, int n) {
    float x = a[get_global_id(0)];
    for (int i = 0; i < n; ++i)
        x = 3.7f * x * (1 - x) / (1 + x * i);
    a[get_global_id(0)] = x;
})";

std::shared_ptr<Executable> open(const Outcome& built) {
    auto opened = Executable::open(built.module, target());
    EXPECT_TRUE(opened.has_value());
    return *opened;
}

bool have(const Forms& forms, Form form) { return std::ranges::find(forms, form) != forms.end(); }

Forms forms_of(Executable& executable, const std::string& kernel) {
    EXPECT_TRUE(executable.code(kernel, CodeVersion{}).has_value());
    return executable.other_forms(kernel, CodeVersion{});
}

TEST(Forms, OfFastMathHaveAllLanes) {
    const Outcome exact = build(chain), fast = build(chain, "-cl-fast-relaxed-math");
    EXPECT_TRUE(have(forms_of(*open(exact), "chain"), Form::without_lanes));
    const Forms forms = forms_of(*open(fast), "chain");
    EXPECT_FALSE(have(forms, Form::without_lanes));
    EXPECT_TRUE(have(forms, Form::two_vectors) || have(forms, Form::one_vector));
}

// A kernel whose own vectors the compiler keeps, because lanes of their elements seem slower, and which has no lanes therefore.
constexpr const char* own_vectors = R"(
kernel void rows(global float* out, global const float* in, global const float* weights, int width, int height, int blocks, int taps) {
    const int x = get_global_id(0) % blocks * 4, channel = get_global_id(0) / blocks, y = get_global_id(1);
    float4 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (int ky = 0; ky < taps; ++ky) {
        const int row = y + ky - 1;
        if (row < 0 || row >= height) continue;
        const int at = (channel * height + row) * width + x - 1;
        for (int kx = 0; kx < taps; ++kx) {
            const float4 weight = vload4(channel * taps * taps + ky * taps + kx, weights);
            sum0 = mad(x + kx - 1 < 0 ? (float4)0 : vload4(at + kx, in), weight, sum0);
            sum1 = mad(x + kx >= width ? (float4)0 : vload4(at + kx + 1, in), weight, sum1);
            sum2 = mad(x + kx + 1 >= width ? (float4)0 : vload4(at + kx + 2, in), weight, sum2);
            sum3 = mad(x + kx + 2 >= width ? (float4)0 : vload4(at + kx + 3, in), weight, sum3);
        }
    }
    const int to = (channel * height + y) * width + x;
    vstore4(sum0, to, out);
    vstore4(sum1, to + 1, out);
    vstore4(sum2, to + 2, out);
    vstore4(sum3, to + 3, out);
})";

// Whole vectors of neighbours fill a register of the processor, split ones one for each element.
TEST(Forms, WithLanesOfVectorsThatPlannedCodeKeeps_HaveThemWhole) {
    if (default_sub_group_size() < 8)
        GTEST_SKIP() << "registers of four words hold one vector";
    const Outcome built = build(own_vectors);
    ASSERT_EQ(built.status, Status::success) << built.log;
    const auto& module = static_cast<const CompiledModule&>(*built.module);
    KernelRequest request{module, module.host_bitcode(), module.kernels()[0], std::nullopt};
    const auto planned = generate_code(request);
    ASSERT_TRUE(planned.has_value());
    ASSERT_TRUE(planned->lanes.starts_with("no lanes")) << planned->lanes;
    ASSERT_TRUE(have(planned->other_forms, Form::with_lanes));
    request.form = Form::with_lanes;
    const auto other = generate_code(request);
    ASSERT_TRUE(other.has_value());
    EXPECT_TRUE(other->lanes.starts_with("4 lanes") || other->lanes.starts_with("2 lanes")) << other->lanes;
}

constexpr size_t numbers = 256;

// Floats of all sizes, and those that built-in functions treat apart.
std::vector<float> special_and_random_floats() {
    constexpr float tiny = std::numeric_limits<float>::denorm_min(), infinite = std::numeric_limits<float>::infinity();
    std::vector<float> values{0.0F,     -0.0F,     tiny, -tiny, 0x1p-127F, 0x1p-126F, std::numeric_limits<float>::max(),
                              infinite, -infinite, 1.0F, -1.0F};
    std::mt19937 random(1);
    while (values.size() < numbers)
        values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x7fffffffU));
    return values;
}

std::vector<uint32_t> results_of(Launch& launch) {
    std::vector<float> values = special_and_random_floats();
    float* const argument = values.data();
    launch.set(0, argument).run(numbers, numbers);
    std::vector<uint32_t> bits(numbers);
    std::ranges::transform(values, bits.begin(), [](float value) {
        return std::isnan(value) ? 0x7fc00000U : std::bit_cast<uint32_t>(value);
    });
    return bits;
}

// Flags that permit nothing do not count, such as contraction of the quotient and the root of rsqrt().
TEST(Forms, OfBuiltinFunctionsAreMadeWithoutLanes_AndComputeTheSame) {
    for (const std::string call : {"rsqrt(x)", "rsqrt((double)x)", "native_rsqrt(x)", "half_rsqrt(x)", "sqrt(x)",
                                   "normalize((float3)(x, 1, 2)).x", "pow(x, 1.5f)", "hypot(x, 3.0f)", "exp(x)",
                                   "exp2(-x)", "exp((double)x)", "ldexp(x, (int)i - 200)"}) {
        const Outcome built = build(
            "kernel void one(global float* a) { size_t i = get_global_id(0); float x = a[i]; a[i] = " + call + "; }");
        ASSERT_EQ(built.status, Status::success) << built.log;
        Launch launch(built, "one");
        const std::vector<uint32_t> planned = results_of(launch);
        const Forms forms = launch.executable().other_forms("one", CodeVersion{});
        EXPECT_TRUE(have(forms, Form::without_lanes)) << call;
        for (const Form form : forms) {
            CodeVersion version;
            version.form = form;
            if (launch.executable().code("one", version)) {  // nothing when it is the planned code
                EXPECT_EQ(results_of(launch.use(version)), planned) << call << ", form " << static_cast<int>(form);
            }
        }
    }
}

TEST(Forms, OfSubGroupsAreOne) {
    const Outcome built =
        build("kernel void sub(global int* a) { a[get_global_id(0)] = sub_group_reduce_add(a[get_global_id(0)]); }",
              "-cl-std=CL3.0");
    ASSERT_EQ(built.status, Status::success) << built.log;
    EXPECT_EQ(forms_of(*open(built), "sub"), Forms{});
}

TEST(Forms, ThatAreTheBestCodeAreNotMade) {
    const Outcome built = build(chain);
    const auto executable = open(built);
    CodeVersion planned;
    ASSERT_TRUE(executable->code("chain", planned).has_value());
    planned.form = Form::planned;
    EXPECT_FALSE(executable->code("chain", planned).has_value());
    planned.form = Form::without_lanes;
    EXPECT_TRUE(executable->code("chain", planned).has_value());
}

// Modules that were stored and read have no code in common but that on disk, as those of several processes.
Outcome of_another_process(const Outcome& built) {
    auto read = Module::deserialize(built.module->serialize());
    EXPECT_TRUE(read.has_value());
    return {*read, Status::success, {}};
}

// A process that ends early has measured some forms only. The next one begins with others.
TEST(Forms, ThatWereMeasuredComeLastInLaterProcesses) {
    // A program that no earlier run of this test has left in the cache.
    std::string source = chain;
    source.replace(source.find("3.7f"), 1, std::to_string(::getpid()));
    const Outcome built = build(source);
    Forms before;
    {
        const auto first = open(of_another_process(built));
        before = forms_of(*first, "chain");
        ASSERT_GE(before.size(), 2U);
        CodeVersion measured;
        measured.form = before.front();
        first->note_measured("chain", measured);
    }
    std::ranges::rotate(before, before.begin() + 1);
    EXPECT_EQ(forms_of(*open(of_another_process(built)), "chain"), before);
}

TEST(Forms, TheBestOneIsFoundAgain) {
    const Outcome built = build(chain);
    CodeVersion preferred;
    preferred.form = Form::planned;  // whatever an earlier run of this test has left
    open(of_another_process(built))->prefer("chain", preferred);
    {
        const auto first = open(of_another_process(built));
        const Forms forms = forms_of(*first, "chain");
        EXPECT_FALSE(have(forms, Form::planned));
        preferred.form = forms.front();
        first->prefer("chain", preferred);
    }
    const auto second = open(of_another_process(built));
    const Forms forms = forms_of(*second, "chain");
    EXPECT_EQ(forms.front(), Form::planned);  // measured first, because the preference may be wrong
    EXPECT_FALSE(have(forms, preferred.form));
    EXPECT_FALSE(second->code("chain", preferred).has_value());  // it is the best one
    // What the application sees, and the sizes of work-groups, are as planned.
    const auto multiple = [](Executable& of) {
        return std::get<driver::HostCode>(**of.code("chain", CodeVersion{})).preferred_multiple;
    };
    preferred.form = Form::without_lanes;
    const uint64_t before = multiple(*second);
    second->prefer("chain", preferred);
    const auto third = open(of_another_process(built));
    EXPECT_EQ(multiple(*third), before);
    preferred.form = Form::planned;
    third->prefer("chain", preferred);
    EXPECT_FALSE(have(forms_of(*open(of_another_process(built)), "chain"), Form::planned));
}

// When forms are measured again, the one with which the process began may win.
TEST(Forms, TheFirstOneOfAProcessMayBeTheBestAgain) {
    const Outcome built = build(chain);
    const CodeVersion first_one;
    CodeVersion other;
    other.form = Form::without_lanes;
    const auto process = [&] { return open(of_another_process(built)); };
    process()->prefer("chain", other);
    const auto second = process();
    EXPECT_FALSE(have(forms_of(*second, "chain"), other.form));  // it began with this form
    CodeVersion third = other;
    third.form = Form::planned;
    second->prefer("chain", third);
    EXPECT_TRUE(have(forms_of(*process(), "chain"), other.form));
    second->prefer("chain", first_one);
    EXPECT_FALSE(have(forms_of(*process(), "chain"), other.form));
    second->prefer("chain", third);
}

}  // namespace
}  // namespace polder::compiler::test
