// Powers with constant exponents: which calls are folded, and that the results are those of the functions.
#include "compiler_support.h"
#include "module/powers.h"

#include <array>
#include <cmath>
#include <limits>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::test {
namespace {

// The IR of a function with `body` after folding.
std::string folded(const std::string& body) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module =
        llvm::parseAssemblyString("declare float @_Z3powff(float, float)\ndeclare float @_Z4powrff(float, float)\n"
                                  "declare float @_Z4pownfi(float, i32)\ndeclare float @_Z5rootnfi(float, i32)\n"
                                  "declare <4 x float> @_Z3powDv4_fS_(<4 x float>, <4 x float>)\n"
                                  "define float @f(float %x, <4 x float> %v, ptr %p) {\n" +
                                      body + "}\n",
                                  error, context);
    EXPECT_NE(module, nullptr) << error.getMessage().str();
    if (!module)
        return {};
    fold_powers(*module);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    std::string text;
    llvm::raw_string_ostream(text) << *module->getFunction("f");
    return text;
}

bool has_call(const std::string& text) { return text.find("@_Z") != std::string::npos; }

TEST(Powers, SmallConstantExponents_AreNoCalls) {
    for (const char* call :
         {"@_Z3powff(float %x, float 2.0)", "@_Z3powff(float %x, float -8.0)", "@_Z3powff(float %x, float 0.5)",
          "@_Z3powff(float %x, float -0.5)", "@_Z3powff(float %x, float 2.5)", "@_Z3powff(float %x, float 0.0)",
          "@_Z4powrff(float %x, float 3.0)", "@_Z4pownfi(float %x, i32 -1)", "@_Z5rootnfi(float %x, i32 2)"})
        EXPECT_FALSE(has_call(folded("%r = call float " + std::string{call} + "\nret float %r\n"))) << call;
}

TEST(Powers, OtherExponents_AreCalls) {
    for (const char* call :
         {"@_Z3powff(float %x, float 9.0)", "@_Z3powff(float %x, float 0.25)", "@_Z3powff(float %x, float %x)",
          "@_Z4powrff(float %x, float 0.0)", "@_Z4pownfi(float %x, i32 100)", "@_Z5rootnfi(float %x, i32 3)"})
        EXPECT_TRUE(has_call(folded("%r = call float " + std::string{call} + "\nret float %r\n"))) << call;
}

TEST(Powers, ExponentInAVariableAndInAVector_IsKnown) {
    EXPECT_FALSE(has_call(folded("%e = alloca float\nstore float 3.0, ptr %e\n%n = load float, ptr %e\n"
                                 "%r = call float @_Z3powff(float %x, float %n)\nret float %r\n")));
    EXPECT_FALSE(has_call(folded("%r = call <4 x float> @_Z3powDv4_fS_(<4 x float> %v, <4 x float> splat (float 2.0))\n"
                                 "store <4 x float> %r, ptr %p\nret float %x\n")));
}

TEST(Powers, OfTwo_AreExp2) {
    EXPECT_NE(folded("%r = call float @_Z3powff(float 2.0, float %x)\nret float %r\n").find("@_Z4exp2f(float %x)"),
              std::string::npos);
    EXPECT_NE(folded("%r = call <4 x float> @_Z3powDv4_fS_(<4 x float> splat (float 2.0), <4 x float> %v)\n"
                     "store <4 x float> %r, ptr %p\nret float %x\n")
                  .find("@_Z4exp2Dv4_f(<4 x float> %v)"),
              std::string::npos);
}

// The distance in units of the last place of `expected`; 0 when both are the same number, infinity or NaN.
double ulps(float value, double expected) {
    const auto rounded = static_cast<float>(expected);
    if (std::isnan(rounded) || std::isinf(rounded) || rounded == 0)
        return (std::isnan(rounded) && std::isnan(value)) ||
                       (value == rounded && std::signbit(value) == std::signbit(rounded))
                   ? 0
                   : std::numeric_limits<double>::infinity();
    int exponent = 0;
    std::frexp(expected, &exponent);
    return std::abs(value - expected) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

const std::vector<float>& bases() {
    static const std::vector<float> all = [] {
        const float inf = std::numeric_limits<float>::infinity();
        std::vector<float> values{0.0F,   1.0F,   2.0F,    0.5F,     3.7F,    1e-20F,   1e20F, 1e38F,
                                  1e-38F, 1e-45F, 1.8e19F, 5.4e-20F, 1.7e38F, 2.9e-39F, 1e10F, inf};
        for (float value = 1e-6F; value < 1e7F; value *= 1.37F)
            values.push_back(value);
        for (size_t i = 0, count = values.size(); i < count; ++i)
            values.push_back(-values[i]);
        values.push_back(std::numeric_limits<float>::quiet_NaN());
        return values;
    }();
    return all;
}

void expect_near(const std::string& call, double (*expected)(double)) {
    const Outcome built = build("kernel void k(global const float* in, global float* out) {"
                                " size_t i = get_global_id(0); float x = in[i]; out[i] = " +
                                call + "; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    std::vector<float> out(bases().size());
    Launch{built, "k"}.set(0, bases().data()).set(1, out.data()).run(out.size(), out.size());
    for (size_t i = 0; i < out.size(); ++i)
        EXPECT_LE(ulps(out[i], expected(bases()[i])), 16) << call << " of " << bases()[i] << " is " << out[i];
}

template <int N>
double whole(double x) {
    return std::pow(x, N);
}

double positive(double x) { return x < 0 ? std::numeric_limits<double>::quiet_NaN() : std::abs(x); }

TEST(Powers, Pow_IsRightForAllBases) {
    expect_near("pow(x, 0.0f)", whole<0>);
    expect_near("pow(x, 1.0f)", whole<1>);
    expect_near("pow(x, 2.0f)", whole<2>);
    expect_near("pow(x, 3.0f)", whole<3>);
    expect_near("pow(x, 7.0f)", whole<7>);
    expect_near("pow(x, -1.0f)", whole<-1>);
    expect_near("pow(x, -2.0f)", whole<-2>);
    expect_near("pow(x, -5.0f)", whole<-5>);
    expect_near("pown(x, 8)", whole<8>);
    expect_near("pown(x, -3)", whole<-3>);
    expect_near("pow(x, 0.5f)", [](double x) { return std::pow(x, 0.5); });
    expect_near("pow(x, -0.5f)", [](double x) { return std::pow(x, -0.5); });
    expect_near("pow(x, 1.5f)", [](double x) { return std::pow(x, 1.5); });
    expect_near("pow(x, 2.5f)", [](double x) { return std::pow(x, 2.5); });
    expect_near("pow(2.0f, x)", [](double x) { return std::exp2(x); });
}

TEST(Powers, PowrAndRootn_AreRightForAllBases) {
    expect_near("powr(x, 2.0f)", [](double x) { return std::pow(positive(x), 2); });
    expect_near("powr(x, -3.0f)", [](double x) { return std::pow(positive(x), -3); });
    expect_near("powr(x, 0.5f)", [](double x) { return std::pow(positive(x), 0.5); });
    expect_near("rootn(x, 1)", [](double x) { return x; });
    expect_near("rootn(x, -1)", [](double x) { return 1 / x; });
    expect_near("rootn(x, 2)", [](double x) { return std::sqrt(positive(x)); });
    expect_near("rootn(x, -2)", [](double x) { return 1 / std::sqrt(positive(x)); });
}

}  // namespace
}  // namespace polder::compiler::test
