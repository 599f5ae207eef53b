// PTX of floating-point operations: the options and functions that permit less than exact results, or no subnormal numbers.
#include "ptx_support.h"

#include <fstream>

namespace polder::compiler::test {
namespace {

PtxOutcome kernel_of_spirv(const std::string& options) {
    std::ifstream module(POLDER_TEST_PRECISION, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(module), {}};
    std::string log;
    auto object = compile({bytes, {}, options, target(), true, CompileInput::Language::spirv, {}}, log);
    if (!object)
        return {nullptr, {}, log};
    auto program = link({{*object}, options, target(), true}, log);
    return first_kernel(outcome_of(std::move(program), log));
}

void expect_precision(const PtxOutcome& usual, const PtxOutcome& exact) {
    EXPECT_EQ(usual.error, "");
    EXPECT_EQ(count(usual.code.code, "div.full.f32"), 5u);
    EXPECT_EQ(count(usual.code.code, "\tsqrt.approx.f32"), 1u);
    EXPECT_EQ(count(usual.code.code, "rsqrt.approx.f32"), 1u);
    EXPECT_EQ(exact.error, "");
    EXPECT_EQ(count(exact.code.code, "div.rn.f32"), 5u);
    EXPECT_EQ(count(exact.code.code, "sqrt.rn.f32"), 1u);
    EXPECT_EQ(count(exact.code.code, "rsqrt.approx.f32"), 1u);
}

// The same kernel from source and from SPIR-V.
TEST(NvptxPrecision, OfUsualCode_IsNoMoreThanOpenClAsksFor) {
    std::ifstream file(POLDER_TEST_PRECISION_SOURCE);
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    const char* const exact = "-cl-fp32-correctly-rounded-divide-sqrt";
    expect_precision(one_kernel(source), one_kernel(source, exact));
    expect_precision(kernel_of_spirv(""), kernel_of_spirv(exact));
}

TEST(NvptxPrecision, OfRelaxedMath_IsTheProcessorsOwn) {
    const char* const source = "kernel void k(global float* a, global float2* b) {"
                               "  a[0] = exp(a[1]) + log(a[2]) + sin(a[3]) + pow(a[4], a[5]); b[0] = exp2(b[1]); }";
    const PtxOutcome relaxed = one_kernel(source, "-cl-fast-relaxed-math");
    EXPECT_EQ(relaxed.error, "");
    EXPECT_EQ(count(relaxed.code.code, "ex2.approx.ftz.f32"), 4u);
    EXPECT_EQ(count(relaxed.code.code, "lg2.approx.ftz.f32"), 2u);
    EXPECT_EQ(count(relaxed.code.code, "sin.approx.ftz.f32"), 1u);
    EXPECT_EQ(count(relaxed.code.code, ".f64"), 0u);
    const PtxOutcome usual = one_kernel(source);
    EXPECT_EQ(usual.error, "");
    EXPECT_EQ(count(usual.code.code, "lg2.approx") + count(usual.code.code, "sin.approx") +
                  count(usual.code.code, ".ftz."),
              0u);
}

TEST(NvptxPrecision, WithoutSubnormalNumbers_FlushesFloats) {
    const char* const source =
        "kernel void k(global float* a, global double* b) { a[0] = a[1] * a[2] / a[3]; b[0] = b[1] * b[2]; }";
    for (const char* options :
         {"-cl-denorms-are-zero", "-cl-denorms-are-zero -cl-fp32-correctly-rounded-divide-sqrt"}) {
        const PtxOutcome flushing = one_kernel(source, options);
        EXPECT_EQ(flushing.error, "");
        EXPECT_HAS(flushing, "mul.rn.ftz.f32");
        EXPECT_EQ(count(flushing.code.code, ".ftz.f32"), 2u) << flushing.code.code;
    }
    EXPECT_FALSE(one_kernel(source).has(".ftz"));
}

}  // namespace
}  // namespace polder::compiler::test
