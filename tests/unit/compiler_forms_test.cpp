// Other forms of a kernel's code (decision 325): which ones are worth measuring, and that the best one is found again by another process.
#include "compiler_support.h"
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
                                   "normalize((float3)(x, 1, 2)).x", "pow(x, 1.5f)", "hypot(x, 3.0f)"}) {
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
