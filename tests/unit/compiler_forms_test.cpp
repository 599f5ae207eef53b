// Other forms of a kernel's code (decision 325): which ones are worth measuring, and that the best one is found again by another process.
#include "compiler_support.h"
#include "targets/host/other_forms.h"

#include <algorithm>

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
    EXPECT_FALSE(have(forms_of(*open(fast), "chain"), Form::without_lanes));
    EXPECT_TRUE(have(forms_of(*open(fast), "chain"), Form::four_vectors));
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

TEST(Forms, TheBestOneIsFoundAgain) {
    const Outcome built = build(chain);
    CodeVersion preferred;
    preferred.form = Form::planned;  // whatever an earlier run of this test has left
    open(of_another_process(built))->prefer("chain", preferred);
    preferred.form = Form::four_vectors;
    {
        const auto first = open(of_another_process(built));
        EXPECT_FALSE(have(forms_of(*first, "chain"), Form::planned));
        first->prefer("chain", preferred);
    }
    const auto second = open(of_another_process(built));
    const Forms forms = forms_of(*second, "chain");
    EXPECT_EQ(forms.front(), Form::planned);  // measured first, because the preference may be wrong
    EXPECT_FALSE(have(forms, Form::four_vectors));
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

}  // namespace
}  // namespace polder::compiler::test
