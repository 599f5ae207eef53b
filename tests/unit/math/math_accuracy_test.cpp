// Every math function of OpenCL C, compiled as a kernel, against correctly rounded references.
#include "buffer.h"
#include "check.h"
#include "functions.h"
#include "inputs.h"
#include "kernel_runner.h"

#include <gtest/gtest.h>

namespace polder::math {
namespace {

constexpr size_t random_samples = 12000;
constexpr size_t vector_random_samples = 1000;
constexpr int vector_widths[] = {2, 3, 4, 8, 16};

template <class T>
Outputs<T> evaluate(test::KernelRunner& runner, const std::string& kernel, Inputs<T>& inputs, int width = 1) {
    const size_t count = inputs.a.size();
    Outputs<T> outputs{Buffer<T>(count), Buffer<T>(count), Buffer<int>(count)};
    void* const pointers[] = {inputs.a.data(),    inputs.b.data(),       inputs.c.data(),     inputs.n.data(),
                              outputs.out.data(), outputs.second.data(), outputs.out_n.data()};
    runner.run(kernel, pointers, count / static_cast<size_t>(width));
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

// The elements of `inputs` for which `other` is not what the scalar form gives, to the bit.
template <class T>
std::vector<size_t> differing(const Outputs<T>& scalars, const Outputs<T>& other) {
    const auto is_same = [](T a, T b) {
        return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
    };
    std::vector<size_t> found;
    for (size_t i = 0; i < other.out.size(); ++i)
        if (!is_same(scalars.out[i], other.out[i]) || !is_same(scalars.second[i], other.second[i]) ||
            scalars.out_n[i] != other.out_n[i])
            found.push_back(i);
    return found;
}

template <class V>
Buffer<V> chosen(const Buffer<V>& values, const std::vector<size_t>& places) {
    Buffer<V> result;
    for (const size_t place : places)
        result.push_back(values[place]);
    return result;
}

// Vector forms give what the scalar form gives, or at least what the specification allows.
template <class T>
void expect_vectors_agree(const Function& function, Precision precision) {
    const std::string type = precision == Precision::single ? "float" : "double";
    std::string source;
    for (const int width : vector_widths)
        source += kernel_source(function, precision, width);
    test::KernelRunner runner{source + kernel_source(function, precision)};
    Inputs<T> inputs = make_inputs<T>(function.domain, vector_random_samples);
    const auto cut = [&](auto& values) { values.resize(values.size() / 48 * 48); };
    cut(inputs.a), cut(inputs.b), cut(inputs.c), cut(inputs.n);
    const std::string kernel = std::string(function.name) + "_" + type;
    const Outputs<T> scalars = evaluate(runner, kernel, inputs);
    for (const int width : vector_widths) {
        const Outputs<T> vectors = evaluate(runner, kernel + std::to_string(width), inputs, width);
        const std::vector<size_t> places = differing(scalars, vectors);
        const Inputs<T> few{chosen(inputs.a, places), chosen(inputs.b, places), chosen(inputs.c, places),
                            chosen(inputs.n, places)};
        const Verdict verdict = check(
            function, few,
            Outputs<T>{chosen(vectors.out, places), chosen(vectors.second, places), chosen(vectors.out_n, places)});
        EXPECT_EQ(verdict.failures, 0u) << kernel << width << " differs from the scalar form in " << places.size()
                                        << " results, of which " << verdict.failures
                                        << " are out of bounds, the worst by " << verdict.worst_ulp << " ulp\n"
                                        << verdict.first_failures;
    }
}

class MathAccuracy : public ::testing::TestWithParam<Function> {};

TEST_P(MathAccuracy, SampledResults_StayWithinTheSpecificationsBound) {
    expect_within_bound<float>(GetParam(), Precision::single);
    if (GetParam().ulp_double >= 0)
        expect_within_bound<double>(GetParam(), Precision::double_);
}

TEST_P(MathAccuracy, VectorForms_GiveWhatTheScalarFormGives) {
    expect_vectors_agree<float>(GetParam(), Precision::single);
    if (GetParam().ulp_double >= 0)
        expect_vectors_agree<double>(GetParam(), Precision::double_);
}

INSTANTIATE_TEST_SUITE_P(All, MathAccuracy, ::testing::ValuesIn(functions().begin(), functions().end()),
                         [](const auto& instance) { return std::string(instance.param.name); });

} // namespace
} // namespace polder::math
