// What remains in loops of the products that lanes' addresses have.
#include "targets/host/instructions/lane_products.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::test {
namespace {

// The code of function @f of `text`, behind the pass.
std::string after_pass(const std::string& text) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(text, error, context);
    if (module == nullptr)
        return ADD_FAILURE() << error.getMessage().str() << text, "";
    llvm::Function& function = *module->getFunction("f");
    move_out_lane_products(function);
    std::string result;
    llvm::raw_string_ostream out(result);
    EXPECT_FALSE(llvm::verifyFunction(function, &out)) << result;
    out << function;
    return result;
}

// A loop over %k with the body `text`, of which `%result` is stored. %y are rows, %x are places of the base address %in.
std::string loop(const std::string& text, const std::string& type = "<16 x float>") {
    return R"(
define void @f(<16 x i64> %y, <16 x i64> %x, i64 %width, ptr %in, ptr %out, i64 %n) {
entry:
  %first = insertelement <16 x i64> poison, i64 %width, i64 0
  %widths = shufflevector <16 x i64> %first, <16 x i64> poison, <16 x i32> zeroinitializer
  %bases = getelementptr float, ptr %in, <16 x i64> %x
  br label %body
body:
  %k = phi i64 [ 0, %entry ], [ %next, %end ]
  %one = insertelement <16 x i64> poison, i64 %k, i64 0
  %ks = shufflevector <16 x i64> %one, <16 x i64> poison, <16 x i32> zeroinitializer
)" + text + R"(  br label %end
end:
  store )" +
           type + R"( %result, ptr %out
  %next = add i64 %k, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %exit, label %body
exit:
  ret void
}
declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, <16 x i1>, <16 x float>)
)";
}

const char* const row_of_lanes = R"(
  %sum = add nsw <16 x i64> %ks, %y
  %row = mul nsw <16 x i64> %sum, %widths
  %place = getelementptr float, <16 x ptr> %bases, <16 x i64> %row
  %sure = freeze <16 x ptr> %place
)";
const char* const gather = "  %result = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %sure, <16 x i1> "
                           "splat (i1 true), <16 x float> "
                           "poison)\n";

std::string in_loop(const std::string& code) { return code.substr(code.find("body:")); }

TEST(LaneProducts, OfRowsPlusACounter_AreComputedBeforeTheLoop) {
    const std::string code = after_pass(loop(std::string(row_of_lanes) + gather));
    EXPECT_EQ(in_loop(code).find("mul <16 x i64>"), std::string::npos) << code;
    EXPECT_EQ(in_loop(code).find("mul nsw <16 x i64>"), std::string::npos) << code;
    EXPECT_NE(in_loop(code).find("mul i64 %k, %width"), std::string::npos) << code;
}

// The comparison of likely_steps.cpp: whether the lanes' places are a row.
TEST(LaneProducts, OfPlacesThatAreComparedWithEachOther_LeaveTheComparisonBeforeTheLoop) {
    const std::string code = after_pass(loop(std::string(row_of_lanes) + R"(
  %row_start = shufflevector <16 x ptr> %sure, <16 x ptr> poison, <16 x i32> zeroinitializer
  %places = getelementptr i8, <16 x ptr> %row_start, <16 x i64> <i64 0, i64 4, i64 8, i64 12, i64 16, i64 20, i64 24, i64 28, i64 32, i64 36, i64 40, i64 44, i64 48, i64 52, i64 56, i64 60>
  %differ = icmp ne <16 x ptr> %sure, %places
  %bits = bitcast <16 x i1> %differ to i16
  %is_row = icmp eq i16 %bits, 0
  br i1 %is_row, label %together, label %apart
together:
  %place0 = extractelement <16 x ptr> %sure, i64 0
  %of_row = load <16 x float>, ptr %place0, align 4
  br label %both
apart:
  %of_all = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %sure, <16 x i1> splat (i1 true), <16 x float> poison)
  br label %both
both:
  %result = phi <16 x float> [ %of_row, %together ], [ %of_all, %apart ]
)"));
    const std::string inside = in_loop(code);
    EXPECT_EQ(inside.find("icmp ne <16 x ptr>"), std::string::npos) << code;
    EXPECT_EQ(inside.find("icmp eq i16"), std::string::npos) << code;
    EXPECT_EQ(inside.find("extractelement"), std::string::npos) << code;
    // The vector is computed only where it is gathered.
    EXPECT_GT(inside.find("getelementptr i8, <16 x ptr>"), inside.find("apart:")) << code;
}

TEST(LaneProducts, OfAVectorThatGrows_GrowToo) {
    const std::string code = after_pass(R"(
define void @f(<16 x i64> %y, <16 x i64> %step, <16 x i64> %width, ptr %out, i64 %n) {
entry:
  br label %body
body:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %row = phi <16 x i64> [ %y, %entry ], [ %next_row, %body ]
  %result = mul nsw <16 x i64> %row, %width
  store <16 x i64> %result, ptr %out
  %next_row = add nuw nsw <16 x i64> %row, %step
  %next = add i64 %k, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %exit, label %body
exit:
  ret void
}
)");
    EXPECT_EQ(in_loop(code).find("mul"), std::string::npos) << code;
    EXPECT_NE(code.find("mul <16 x i64> %y, %width"), std::string::npos) << code;
    EXPECT_NE(code.find("mul <16 x i64> %step, %width"), std::string::npos) << code;
}

// In the inner loop, the product of the outer loop's sum is a vector that stays the same.
TEST(LaneProducts, OfTwoLoops_LeaveBoth) {
    const std::string code = after_pass(R"(
define void @f(<8 x i64> %y, i64 %width, ptr %out, i64 %n) {
entry:
  %first = insertelement <8 x i64> poison, i64 %width, i64 0
  %widths = shufflevector <8 x i64> %first, <8 x i64> poison, <8 x i32> zeroinitializer
  br label %body
body:
  %j = phi i64 [ 0, %entry ], [ %next_j, %end ]
  %one_j = insertelement <8 x i64> poison, i64 %j, i64 0
  %js = shufflevector <8 x i64> %one_j, <8 x i64> poison, <8 x i32> zeroinitializer
  %rows = sub <8 x i64> %y, %js
  br label %inner
inner:
  %k = phi i64 [ 0, %body ], [ %next, %inner ]
  %one = insertelement <8 x i64> poison, i64 %k, i64 0
  %ks = shufflevector <8 x i64> %one, <8 x i64> poison, <8 x i32> zeroinitializer
  %sum = add nsw <8 x i64> %ks, %rows
  %result = mul nsw <8 x i64> %sum, %widths
  store <8 x i64> %result, ptr %out
  %next = add i64 %k, 1
  %is_last = icmp eq i64 %next, %n
  br i1 %is_last, label %end, label %inner
end:
  %next_j = add i64 %j, 1
  %is_last_j = icmp eq i64 %next_j, %n
  br i1 %is_last_j, label %exit, label %body
exit:
  ret void
}
)");
    EXPECT_EQ(in_loop(code).find("mul <8 x i64>"), std::string::npos) << code;
    EXPECT_NE(code.find("mul <8 x i64>"), std::string::npos) << code;
}

TEST(LaneProducts, OfVectorsThatChange_Stay) {
    const std::string code = after_pass(loop(R"(
  %gathered = load <16 x i64>, ptr %in
  %sum = add <16 x i64> %ks, %gathered
  %result = mul <16 x i64> %sum, %widths
)",
                                             "<16 x i64>"));
    EXPECT_NE(in_loop(code).find("mul <16 x i64>"), std::string::npos) << code;
}

// A phi with the same predecessor twice must have the same value twice.
TEST(LaneProducts, OfASwitchWithTwoEqualEdges_AreOneValue) {
    const std::string code = after_pass(loop(R"(
  %sum = add <16 x i64> %ks, %y
  %row = mul <16 x i64> %sum, %widths
  %kind = trunc i64 %k to i32
  switch i32 %kind, label %other [ i32 1, label %both
                                   i32 2, label %both ]
other:
  br label %both
both:
  %result = phi <16 x i64> [ %row, %body ], [ %row, %body ], [ %ks, %other ]
)",
                                             "<16 x i64>"));
    EXPECT_EQ(in_loop(code).find("mul <16 x i64>"), std::string::npos) << code;
}

}  // namespace
}  // namespace polder::compiler::test
