// sin and cos of one angle: which calls become one, and that the results are those of the functions.
#include "compiler_support.h"
#include "module/sine_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <regex>

namespace polder::compiler::test {
namespace {

// The IR of a function with `body` after pairing.
std::string paired(const std::string& body) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(
        "declare float @_Z3sinf(float) memory(none)\ndeclare float @_Z3cosf(float) memory(none)\n"
        "declare double @_Z3sind(double) memory(none)\n"
        "declare <4 x float> @_Z3sinDv4_f(<4 x float>)\ndeclare <4 x float> @_Z3cosDv4_f(<4 x float>)\n"
        "define float @f(float %x, float %y, <4 x float> %v, ptr %p, i1 %b) {\n" +
            body + "}\n",
        error, context);
    EXPECT_NE(module, nullptr) << error.getMessage().str();
    if (!module)
        return {};
    pair_sines(*module);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    std::string text;
    llvm::raw_string_ostream(text) << *module->getFunction("f");
    return text;
}

size_t calls_of(const std::string& function, const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find("@" + function + "("); at != std::string::npos;
         at = text.find("@" + function + "(", at + 1))
        ++count;
    return count;
}

TEST(SinePairs, SineAndCosineOfOneAngle_AreOneCall) {
    for (const char* body : {"%s = call float @_Z3sinf(float %x)\n%c = call float @_Z3cosf(float %x)\n"
                             "%r = fsub float %s, %c\nret float %r\n",
                             "%c = call float @_Z3cosf(float %x)\n%s = call float @_Z3sinf(float %x)\n"
                             "%r = fsub float %s, %c\nret float %r\n",
                             // The angle is in a variable, and computed twice.
                             "%e = alloca float\nstore float %x, ptr %e\n%1 = load float, ptr %e\n"
                             "%2 = fmul float %1, 2.0\n%s = call float @_Z3sinf(float %2)\n%3 = load float, ptr %e\n"
                             "%4 = fmul float %3, 2.0\n%c = call float @_Z3cosf(float %4)\n"
                             "%r = fsub float %s, %c\nret float %r\n"}) {
        const std::string text = paired(body);
        EXPECT_EQ(calls_of("_Z6sincosfPf", text), 1U) << text;
        EXPECT_EQ(calls_of("_Z3sinf", text) + calls_of("_Z3cosf", text), 0U) << text;
        EXPECT_TRUE(
            std::regex_search(text, std::regex("(%\\d+) = call float @_Z6sincosfPf.*\\n *(%\\d+) = load float.*\\n"
                                               " *%r = fsub float \\1, \\2")))
            << text;
    }
    const std::string text = paired(
        "%s = call <4 x float> @_Z3sinDv4_f(<4 x float> %v)\n%c = call <4 x float> @_Z3cosDv4_f(<4 x float> %v)\n"
        "%r = fsub <4 x float> %s, %c\nstore <4 x float> %r, ptr %p\nret float %x\n");
    EXPECT_EQ(calls_of("_Z6sincosDv4_fPS_", text), 1U) << text;
}

TEST(SinePairs, OtherCalls_Stay) {
    for (const char* body : {// of two angles
                             "%s = call float @_Z3sinf(float %x)\n%c = call float @_Z3cosf(float %y)\n"
                             "%r = fsub float %s, %c\nret float %r\n",
                             // one of them rarely
                             "%s = call float @_Z3sinf(float %x)\nbr i1 %b, label %some, label %all\n"
                             "some:\n%c = call float @_Z3cosf(float %x)\nbr label %all\n"
                             "all:\n%r = phi float [%s, %0], [%c, %some]\nret float %r\n"}) {
        const std::string text = paired(body);
        EXPECT_EQ(calls_of("_Z3sinf", text), 1U) << text;
        EXPECT_EQ(calls_of("_Z3cosf", text), 1U) << text;
    }
}

double ulps(double value, double expected, int digits) {
    if (std::isnan(expected) || expected == 0)
        return (std::isnan(expected) && std::isnan(value)) ||
                       (value == expected && std::signbit(value) == std::signbit(expected))
                   ? 0
                   : std::numeric_limits<double>::infinity();
    int exponent = 0;
    std::frexp(expected, &exponent);
    const int least = digits == 24 ? -149 : -1074;  // the exponent of the smallest denormal number
    return std::abs(value - expected) / std::ldexp(1.0, std::max(exponent - digits, least));
}

template <class T>
void expect_right_results(const std::string& type, int digits) {
    std::vector<T> in{T{0},
                      T{-0.0},
                      std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN(),
                      std::numeric_limits<T>::max(),
                      std::numeric_limits<T>::denorm_min()};
    for (T angle = T(1e-6); angle < T(1e12); angle *= T(1.17))
        in.insert(in.end(), {angle, -angle});
    in.resize((in.size() + 3) / 4 * 4);
    const Outcome built = build("typedef " + type + " T; typedef " + type + "4 T4;" +
                                R"(kernel void one(global const T* in, global T* out) {
               size_t i = get_global_id(0); out[2 * i] = sin(in[i]); out[2 * i + 1] = cos(in[i]); }
           kernel void four(global const T* in, global T* out) {
               size_t i = get_global_id(0); T4 x = vload4(i, in), c = cos(x), s = sin(x);
               vstore4((T4)(s.x, c.x, s.y, c.y), 2 * i, out); vstore4((T4)(s.z, c.z, s.w, c.w), 2 * i + 1, out); })");
    ASSERT_EQ(built.status, Status::success) << built.log;
    for (const char* kernel : {"one", "four"}) {
        std::vector<T> out(2 * in.size());
        const size_t items = in.size() / (std::string(kernel) == "four" ? 4 : 1);
        Launch{built, kernel}.set(0, in.data()).set(1, out.data()).run(items, items);
        for (size_t i = 0; i < in.size(); ++i) {
            const auto angle = static_cast<long double>(in[i]);
            EXPECT_LE(ulps(out[2 * i], static_cast<double>(std::sin(angle)), digits), 4) << kernel << " sin " << in[i];
            EXPECT_LE(ulps(out[2 * i + 1], static_cast<double>(std::cos(angle)), digits), 4)
                << kernel << " cos " << in[i];
        }
    }
}

TEST(SinePairs, Results_AreRight) {
    expect_right_results<float>("float", 24);
    expect_right_results<double>("double", 53);
}

}  // namespace
}  // namespace polder::compiler::test
