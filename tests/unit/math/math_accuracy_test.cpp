// Every math function of OpenCL C, compiled as a kernel, against correctly rounded references.
#include "check.h"
#include "functions.h"
#include "inputs.h"
#include "kernel_runner.h"

#include <gtest/gtest.h>

namespace polder::math {
namespace {

constexpr size_t random_samples = 12000;

template <class T>
Outputs<T> evaluate(test::KernelRunner& runner, const std::string& kernel, Inputs<T>& inputs) {
    const size_t count = inputs.a.size();
    Outputs<T> outputs{std::vector<T>(count), std::vector<T>(count), std::vector<int>(count)};
    void* const pointers[] = {inputs.a.data(),    inputs.b.data(),       inputs.c.data(),     inputs.n.data(),
                              outputs.out.data(), outputs.second.data(), outputs.out_n.data()};
    runner.run(kernel, pointers, count);
    return outputs;
}

template <class T>
void expect_within_bound(const Function& function, Precision precision) {
    const std::string kernel = std::string(function.name) + (precision == Precision::single ? "_float" : "_double");
    test::KernelRunner runner{kernel_source(function, precision)};
    Inputs<T> inputs = make_inputs<T>(function.domain, random_samples);
    const Outputs<T> outputs = evaluate(runner, kernel, inputs);
    const Verdict verdict = check(function, inputs, outputs);
    EXPECT_EQ(verdict.failures, 0u) << kernel << ": " << verdict.failures << " of " << inputs.a.size()
                                    << " results are out of bounds, the worst by " << verdict.worst_ulp << " ulp\n"
                                    << verdict.first_failures;
    ::testing::Test::RecordProperty("worst_ulp_" + kernel, std::to_string(verdict.worst_ulp));
}

class MathAccuracy : public ::testing::TestWithParam<Function> {};

TEST_P(MathAccuracy, SampledResults_StayWithinTheSpecificationsBound) {
    expect_within_bound<float>(GetParam(), Precision::single);
    if (GetParam().ulp_double >= 0)
        expect_within_bound<double>(GetParam(), Precision::double_);
}

INSTANTIATE_TEST_SUITE_P(All, MathAccuracy, ::testing::ValuesIn(functions().begin(), functions().end()),
                         [](const auto& instance) { return std::string(instance.param.name); });

} // namespace
} // namespace polder::math
