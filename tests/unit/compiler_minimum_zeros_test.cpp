// fmin and fmax: they return the other operand when one is a NaN, and either of two zeros.
#include "compiler_support.h"
#include "machine/host.h"
#include "targets/host/minimum_zeros.h"

#include <cmath>
#include <limits>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
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
    llvm::SMDiagnostic error;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
    ASSERT_NE(module, nullptr) << error.getMessage().str();
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

}  // namespace
}  // namespace polder::compiler::test
