// Choices between the result of code that may be skipped and the value before.
#include "targets/host/instructions/skipped_results.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>

namespace polder::compiler::test {
namespace {

// @late_mask chooses by what is known only after the code, which stays.
constexpr const char* text = R"(
declare <4 x float> @rare(<4 x float>)
define <4 x float> @choice(<4 x float> %x, <4 x i1> %mask, i1 %any) {
entry:
  br i1 %any, label %some, label %none
some:
  %made = call <4 x float> @rare(<4 x float> %x)
  br label %none
none:
  %either = phi <4 x float> [ poison, %entry ], [ %made, %some ]
  %result = select <4 x i1> %mask, <4 x float> %either, <4 x float> %x
  ret <4 x float> %result
}
define <4 x float> @late_mask(<4 x float> %x, <4 x float> %y, i1 %any) {
entry:
  br i1 %any, label %some, label %none
some:
  %made = call <4 x float> @rare(<4 x float> %x)
  br label %none
none:
  %either = phi <4 x float> [ poison, %entry ], [ %made, %some ]
  %mask = fcmp olt <4 x float> %x, %y
  %result = select <4 x i1> %mask, <4 x float> %either, <4 x float> %x
  ret <4 x float> %result
}
)";

class SkippedResults : public testing::Test {
protected:
    void SetUp() override {
        llvm::SMDiagnostic problem;
        module_ = llvm::parseAssemblyString(text, problem, context_);
        ASSERT_NE(module_, nullptr) << problem.getMessage().str();
    }
    // The value that `name` returns afterwards.
    llvm::Value* result_of(const char* name) {
        llvm::Function& function = *module_->getFunction(name);
        choose_where_computed(function);
        EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
        return function.back().getTerminator()->getOperand(0);
    }

    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
};

TEST_F(SkippedResults, AreChosenWhereTheyAreMade) {
    const auto* const phi = llvm::dyn_cast<llvm::PHINode>(result_of("choice"));
    ASSERT_NE(phi, nullptr);
    EXPECT_EQ(phi->getIncomingValue(0), module_->getFunction("choice")->getArg(0));
    EXPECT_TRUE(llvm::isa<llvm::SelectInst>(phi->getIncomingValue(1)));
}

TEST_F(SkippedResults, OfAMaskThatIsKnownLater_Stay) {
    EXPECT_TRUE(llvm::isa<llvm::SelectInst>(result_of("late_mask")));
}

}  // namespace
}  // namespace polder::compiler::test
