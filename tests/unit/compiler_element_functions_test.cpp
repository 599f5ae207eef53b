// Cold functions of explicit vectors become functions of one element, where vectors are split.
#include "machine/retarget.h"
#include "parsed_ir.h"
#include "targets/host/workgroup/vectorizer/preparation/element_functions.h"

#include <gtest/gtest.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

namespace polder::compiler::workgroup::test {
namespace {

// `cold` looks up in a table and shifts, and has a number as its second argument.
constexpr const char* text = R"(
@table = internal constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0]
define internal <4 x float> @cold(<4 x float> %x, i32 %more) #0 {
  %bits = bitcast <4 x float> %x to <4 x i32>
  %at = and <4 x i32> %bits, splat (i32 3)
  %a0 = extractelement <4 x i32> %at, i64 0
  %p0 = getelementptr [4 x float], ptr @table, i64 0, i32 %a0
  %t0 = load float, ptr %p0
  %v0 = insertelement <4 x float> poison, float %t0, i64 0
  %a1 = extractelement <4 x i32> %at, i64 1
  %p1 = getelementptr [4 x float], ptr @table, i64 0, i32 %a1
  %t1 = load float, ptr %p1
  %v1 = insertelement <4 x float> %v0, float %t1, i64 1
  %a2 = extractelement <4 x i32> %at, i64 2
  %p2 = getelementptr [4 x float], ptr @table, i64 0, i32 %a2
  %t2 = load float, ptr %p2
  %v2 = insertelement <4 x float> %v1, float %t2, i64 2
  %a3 = extractelement <4 x i32> %at, i64 3
  %p3 = getelementptr [4 x float], ptr @table, i64 0, i32 %a3
  %t3 = load float, ptr %p3
  %v3 = insertelement <4 x float> %v2, float %t3, i64 3
  %is_more = icmp ne i32 %more, 0
  %sum = fadd <4 x float> %v3, %x
  %result = select i1 %is_more, <4 x float> %sum, <4 x float> %v3
  ret <4 x float> %result
}
define internal <4 x float> @own(<4 x float> %x) #1 {
  %reversed = shufflevector <4 x float> %x, <4 x float> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  ret <4 x float> %reversed
}
define <4 x float> @user(<4 x float> %x, i32 %more) {
  %once = call <4 x float> @cold(<4 x float> %x, i32 %more)
  %twice = call <4 x float> @cold(<4 x float> %once, i32 1)
  ret <4 x float> %twice
}
define <4 x float> @user_of_own(<4 x float> %x) {
  %result = call <4 x float> @own(<4 x float> %x)
  ret <4 x float> %result
}
define internal <4 x float> @element_of_image(ptr %image, i32 %order, <4 x i32> %place) #2 {
  %x = extractelement <4 x i32> %place, i64 0
  %p = getelementptr <4 x float>, ptr %image, i32 %x
  %v = load <4 x float>, ptr %p
  ret <4 x float> %v
}
define <4 x float> @user_of_image(ptr %image, <4 x i32> %place) {
  %result = call <4 x float> @element_of_image(ptr %image, i32 1, <4 x i32> %place)
  ret <4 x float> %result
}
define internal <4 x float> @swapped(<4 x float> %x) #0 {
  %swapped = shufflevector <4 x float> %x, <4 x float> poison, <4 x i32> <i32 2, i32 1, i32 0, i32 3>
  ret <4 x float> %swapped
}
define <4 x float> @user_of_swapped(<4 x float> %x) {
  %result = call <4 x float> @swapped(<4 x float> %x)
  ret <4 x float> %result
}
define internal <4 x float> @first(<4 x float> %x) #0 {
  %number = extractelement <4 x float> %x, i64 0
  %one = insertelement <4 x float> poison, float %number, i64 0
  %all = shufflevector <4 x float> %one, <4 x float> poison, <4 x i32> zeroinitializer
  ret <4 x float> %all
}
define <4 x float> @user_of_first(<4 x float> %x) {
  %result = call <4 x float> @first(<4 x float> %x)
  ret <4 x float> %result
}
define internal <4 x float> @chosen(<4 x float> %x, <4 x float> %y) #0 {
  %number = extractelement <4 x float> %x, i64 1
  %is_less = fcmp olt float %number, 0.0
  %result = select i1 %is_less, <4 x float> %x, <4 x float> %y
  ret <4 x float> %result
}
define <4 x float> @user_of_chosen(<4 x float> %x) {
  %result = call <4 x float> @chosen(<4 x float> %x, <4 x float> %x)
  ret <4 x float> %result
}
define internal <4 x float> @branch(<4 x float> %x) #0 {
  %number = extractelement <4 x float> %x, i64 1
  %is_less = fcmp olt float %number, 0.0
  br i1 %is_less, label %less, label %more
less:
  ret <4 x float> %x
more:
  %sum = fadd <4 x float> %x, %x
  ret <4 x float> %sum
}
define <4 x float> @user_of_branch(<4 x float> %x) {
  %result = call <4 x float> @branch(<4 x float> %x)
  ret <4 x float> %result
}
define internal <4 x float> @splat(<4 x float> %x, float %y) #0 {
  %is_less = fcmp olt float %y, 0.0
  br i1 %is_less, label %less, label %more
less:
  ret <4 x float> %x
more:
  %one = insertelement <4 x float> poison, float %y, i64 0
  %all = shufflevector <4 x float> %one, <4 x float> poison, <4 x i32> zeroinitializer
  %sum = fadd <4 x float> %x, %all
  ret <4 x float> %sum
}
define <4 x float> @user_of_splat(<4 x float> %x) {
  %result = call <4 x float> @splat(<4 x float> %x, float 2.0)
  ret <4 x float> %result
}
define internal <4 x float> @numbered(<4 x float> %x) #0 {
  %sum = fadd <4 x float> %x, <float 0.0, float 1.0, float 2.0, float 3.0>
  ret <4 x float> %sum
}
define <4 x float> @user_of_numbered(<4 x float> %x) {
  %result = call <4 x float> @numbered(<4 x float> %x)
  ret <4 x float> %result
}
define internal <4 x float> @one_replaced(<4 x float> %x) #0 {
  %result = insertelement <4 x float> %x, float 0.0, i64 3
  ret <4 x float> %result
}
define <4 x float> @user_of_one_replaced(<4 x float> %x) {
  %result = call <4 x float> @one_replaced(<4 x float> %x)
  ret <4 x float> %result
}
define internal <4 x float> @one_changed(<4 x float> %x) #0 {
  %number = extractelement <4 x float> %x, i64 2
  %sum = fadd float %number, 1.0
  %result = insertelement <4 x float> %x, float %sum, i64 2
  ret <4 x float> %result
}
define <4 x float> @user_of_one_changed(<4 x float> %x) {
  %result = call <4 x float> @one_changed(<4 x float> %x)
  ret <4 x float> %result
}
attributes #0 = { cold noinline memory(none) "BUILTIN" }
attributes #2 = { cold noinline memory(read) "BUILTIN" }
attributes #1 = { cold noinline memory(none) }
)";

class ElementFunctions : public ::testing::Test {
protected:
    void SetUp() override {
        std::string ir = text;
        for (size_t at = ir.find("BUILTIN"); at != std::string::npos; at = ir.find("BUILTIN"))
            ir.replace(at, 7, builtin_attribute);
        module_ = compiler::test::parsed(ir, context_);
        ASSERT_TRUE(module_);
    }

    // How many calls of `callee` are in a function after its calls have been split.
    size_t calls_in(const char* user, const char* callee) {
        llvm::Function& function = *module_->getFunction(user);
        call_for_each_element(function);
        EXPECT_FALSE(llvm::verifyModule(*module_, &llvm::errs()));
        size_t count = 0;
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction))
                count += call->getCalledFunction()->getName() == callee ? 1 : 0;
        return count;
    }

    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
};

TEST_F(ElementFunctions, AreCalledForEachElement) {
    EXPECT_EQ(calls_in("user", "cold.element"), 8U);
    EXPECT_EQ(calls_in("user", "cold"), 0U);
}

TEST_F(ElementFunctions, ComputeOneElement) {
    calls_in("user", "cold.element");
    const llvm::Function* const made = module_->getFunction("cold.element");
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->hasFnAttribute(llvm::Attribute::Cold) && made->hasFnAttribute(builtin_attribute));
    unsigned loads = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(*made)) {
        EXPECT_FALSE(instruction.getType()->isVectorTy());
        loads += llvm::isa<llvm::LoadInst>(instruction) ? 1 : 0;
    }
    EXPECT_EQ(loads, 1U);
}

// Its elements may depend on each other.
TEST_F(ElementFunctions, OfProgramsOwn_AreNotMade) { EXPECT_EQ(calls_in("user_of_own", "own"), 1U); }

TEST_F(ElementFunctions, WithNumbersAndBranchesOnThem_AreMade) { EXPECT_EQ(calls_in("user_of_splat", "splat"), 0U); }

// Reading an image has vectors, too: the place in the image, and the channels.
TEST_F(ElementFunctions, WhereElementsMeet_AreNotMade) {
    EXPECT_EQ(calls_in("user_of_image", "element_of_image"), 1U);
    EXPECT_EQ(calls_in("user_of_swapped", "swapped"), 1U);
    EXPECT_EQ(calls_in("user_of_first", "first"), 1U);
    EXPECT_EQ(calls_in("user_of_chosen", "chosen"), 1U);
    EXPECT_EQ(calls_in("user_of_branch", "branch"), 1U);
}

// The function of one element is that of the first one.
TEST_F(ElementFunctions, WhereElementsAreComputedDifferently_AreNotMade) {
    EXPECT_EQ(calls_in("user_of_numbered", "numbered"), 1U);
    EXPECT_EQ(calls_in("user_of_one_replaced", "one_replaced"), 1U);
    EXPECT_EQ(calls_in("user_of_one_changed", "one_changed"), 1U);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
