// fmin and fmax: they return the other operand when one is a NaN, and either of two zeros. In chains, only the minimum waits for the one before.
#include "compiler_support.h"
#include "machine/host.h"
#include "parsed_ir.h"
#include "targets/host/instructions/masked_minimums.h"
#include "targets/host/instructions/minimum_zeros.h"

#include <cmath>
#include <limits>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <vector>

namespace polder::compiler::test {
namespace {

TEST(MinimumZeros, OfAllWidths_HaveNoOrder) {
    const char* text = R"(
        define <16 x float> @f(<16 x float> %a, <16 x float> %b) {
          %x = call <16 x float> @llvm.minimumnum.v16f32(<16 x float> %a, <16 x float> %b)
          %y = call <16 x float> @llvm.maximumnum.v16f32(<16 x float> %x, <16 x float> %b)
          %z = call <16 x float> @llvm.minimum.v16f32(<16 x float> %y, <16 x float> %b)
          ret <16 x float> %z
        })";
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    ASSERT_NE(module, nullptr);
    llvm::Function& function = *module->getFunction("f");
    ignore_order_of_zeros(function);
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
            EXPECT_EQ(call->hasNoSignedZeros(), call->getIntrinsicID() != llvm::Intrinsic::minimum);
            EXPECT_FALSE(call->hasNoNaNs());
        }
}

template <typename T>
void expect_numbers(const std::string& type) {
    const Outcome built = build("kernel void k(global const " + type + "* a, global const " + type + "* b, global " +
                                type + "* least, global " + type +
                                "* most) {\n"
                                "  int i = get_global_id(0);\n"
                                "  least[i] = fmin(a[i], b[i]); most[i] = fmax(a[i], b[i]); }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
    const std::vector<T> values{
        nan, -nan, infinity, -infinity, 1, -1, 0, T{-0.0}, std::numeric_limits<T>::denorm_min()};
    std::vector<T> a, b;
    for (const T x : values)
        for (const T y : values) {
            a.push_back(x);
            b.push_back(y);
        }
    std::vector<T> least(a.size()), most(a.size());
    Launch{built, "k"}
        .set(0, a.data())
        .set(1, b.data())
        .set(2, least.data())
        .set(3, most.data())
        .run(a.size(), a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        SCOPED_TRACE(type + " " + std::to_string(a[i]) + " " + std::to_string(b[i]));
        if (std::isnan(a[i]) && std::isnan(b[i])) {
            EXPECT_TRUE(std::isnan(least[i]) && std::isnan(most[i]));
            continue;
        }
        EXPECT_EQ(least[i], std::fmin(a[i], b[i]));
        EXPECT_EQ(most[i], std::fmax(a[i], b[i]));
    }
}

TEST(MinimumZeros, WithNaNs_AreNumbers) {
    expect_numbers<float>("float");
    expect_numbers<double>("double");
}

TEST(MaskedMinimums, OfChains_CompareOnlyTheOperandThatIsEarly) {
    Host target = host();
    target.triple = llvm::Triple("x86_64-unknown-linux-gnu");
    target.cpu = "sapphirerapids";
    target.features = "";
    const char* text = R"(
        define <16 x float> @f(<16 x float> %a, <16 x float> %b, <16 x float> %c, <16 x float> %d) {
          %x = call <16 x float> @llvm.minimumnum.v16f32(<16 x float> %a, <16 x float> %b)
          %y = call <16 x float> @llvm.maximumnum.v16f32(<16 x float> %c, <16 x float> %x)
          %z = call <16 x float> @llvm.minimumnum.v16f32(<16 x float> %y, <16 x float> %d)
          ret <16 x float> %z
        })";
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    ASSERT_NE(module, nullptr);
    llvm::Function& function = *module->getFunction("f");
    mask_minimums(function, *create_target_machine(target));
    std::string code;
    llvm::raw_string_ostream(code) << function;
    EXPECT_EQ(code.find("imumnum"), std::string::npos) << code;
    for (const char* early : {"%b, %b", "%c, %c", "%d, %d"})
        EXPECT_NE(code.find(std::string("fcmp ord <16 x float> ") + early), std::string::npos) << early << code;
}

TEST(MaskedMinimums, OfChains_AreNumbers) {
    const Outcome built = build("kernel void k(global const float* a, global float* least, global double* most) {\n"
                                "  int i = get_global_id(0);\n"
                                "  float l = a[4 * i]; double m = a[4 * i];\n"
                                "  for (int j = 1; j < 4; ++j) { l = fmin(l, a[4 * i + j]);"
                                " m = fmax((double)a[4 * i + j], m); }\n"
                                "  least[i] = l; most[i] = m; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> values{nan, infinity, -infinity, 1.5F};
    std::vector<float> a;
    for (size_t i = 0; i < 256; ++i)
        for (size_t j = 0; j < 4; ++j)
            a.push_back(values[i >> 2 * j & 3]);
    std::vector<float> least(256);
    std::vector<double> most(256);
    Launch{built, "k"}.set(0, a.data()).set(1, least.data()).set(2, most.data()).run(256, 64);
    for (size_t i = 0; i < 256; ++i) {
        const float* const of_item = &a[4 * i];
        const float low = std::fmin(std::fmin(of_item[0], of_item[1]), std::fmin(of_item[2], of_item[3]));
        const float high = std::fmax(std::fmax(of_item[0], of_item[1]), std::fmax(of_item[2], of_item[3]));
        EXPECT_TRUE(least[i] == low || (std::isnan(least[i]) && std::isnan(low))) << i;
        EXPECT_TRUE(most[i] == high || (std::isnan(most[i]) && std::isnan(high))) << i;
    }
}

}  // namespace
}  // namespace polder::compiler::test
