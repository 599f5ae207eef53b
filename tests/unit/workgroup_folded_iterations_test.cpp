// Loops that repeat a product and a sum with constants: one of several iterations, where the order of sums may change.
#include "targets/host/workgroup/frame/simplify.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <vector>

namespace polder::compiler::workgroup::test {
namespace {

// Repeats `body`, which makes %next of %s.
std::string loop_with(const std::string& body) {
    return "define float @f(float %begin, i32 %n, ptr %p) {\n"
           "entry:\n"
           "  %any = icmp sgt i32 %n, 0\n"
           "  br i1 %any, label %loop, label %end\n"
           "loop:\n"
           "  %i = phi i32 [ 0, %entry ], [ %after, %loop ]\n"
           "  %s = phi float [ %begin, %entry ], [ %next, %loop ]\n" +
           body +
           "  %after = add nuw nsw i32 %i, 1\n"
           "  %again = icmp slt i32 %after, %n\n"
           "  br i1 %again, label %loop, label %end\n"
           "end:\n"
           "  %last = phi float [ %begin, %entry ], [ %next, %loop ]\n"
           "  ret float %last\n"
           "}\n";
}

// The constants of the products that remain, without their signs.
std::vector<double> factors_of(const std::string& body) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const auto module = llvm::parseAssemblyString(loop_with(body), problem, context);
    if (!module) {
        ADD_FAILURE() << problem.getMessage().str();
        return {};
    }
    simplify_body(*module->getFunction("f"), nullptr);
    std::vector<double> factors;
    for (llvm::Instruction& one : llvm::instructions(*module->getFunction("f")))
        if (one.getOpcode() == llvm::Instruction::FMul)
            if (const auto* const factor = llvm::dyn_cast<llvm::ConstantFP>(one.getOperand(1)))
                factors.push_back(std::abs(factor->getValueAPF().convertToDouble()));
    std::ranges::sort(factors);
    return factors;
}

TEST(FoldedIterations, AreFourOfAProductAndASum) {
    const std::vector<double> factors = factors_of("  %product = fmul reassoc nsz contract float %s, 0.5\n"
                                                   "  %next = fsub reassoc nsz contract float 10.0, %product\n");
    ASSERT_EQ(factors.size(), 2U);
    EXPECT_NEAR(factors[0], std::pow(0.5, 4), 1e-6);
    EXPECT_NEAR(factors[1], 0.5, 1e-6);  // of the rest
}

TEST(FoldedIterations, KeepTheOrderOfOthers) {
    for (const std::string body :
         {"  %product = fmul float %s, 0.5\n  %next = fsub float 10.0, %product\n",
          "  %product = fmul reassoc nsz float %s, 0.5\n  %next = fsub nsz float 10.0, %product\n",
          "  %product = fmul reassoc nsz float %s, 0.5\n"
          "  %next = fsub reassoc nsz float 10.0, %product\n"
          "  store volatile float %next, ptr %p\n",
          "  %product = fmul reassoc nsz float %s, 0.5\n"
          "  %x = load volatile float, ptr %p\n"
          "  %next = fsub reassoc nsz float %x, %product\n"}) {
        const std::vector<double> factors = factors_of(body);
        ASSERT_EQ(factors.size(), 1U) << body;
        EXPECT_EQ(factors[0], 0.5) << body;
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
