// Indices of gathers that LLVM computes in 64 bits from narrow numbers, behind the pass that computes them in 32.
#include "parsed_ir.h"
#include "targets/host/instructions/narrow_indices.h"

#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <string>

namespace polder::compiler::test {
namespace {

struct Result {
    unsigned changed = 0;
    std::string code;
};

// `index`: what computes %i, a vector of four numbers of 64 bits.
Result after_pass(const std::string& index, const std::string& behind = "") {
    llvm::LLVMContext context;
    const auto module = parsed(
        "define <4 x i8> @f(ptr %p, <4 x i16> %x, <4 x i32> %y, <4 x i64> %z) {\n" + index + "\n" + behind +
            "\n%a = getelementptr i8, ptr %p, <4 x i64> %i\n%r = call <4 x i8> @llvm.masked.gather.v4i8.v4p0(<4 x ptr> "
            "align 1 %a, <4 x i1> splat (i1 true), <4 x i8> poison)\nret <4 x i8> %r\n}\n"
            "declare <4 x i8> @llvm.masked.gather.v4i8.v4p0(<4 x ptr>, <4 x i1>, <4 x i8>)\n"
            "declare void @use(<4 x i64>)\n",
        context);
    if (!module)
        return {};
    llvm::Function& function = *module->getFunction("f");
    Result result{.changed = narrow_gather_indices(function), .code = {}};
    llvm::raw_string_ostream out(result.code);
    EXPECT_FALSE(llvm::verifyFunction(function, &out)) << result.code;
    out << function;
    return result;
}

TEST(NarrowIndices, OfSmallNumbers_AreComputedIn32Bits) {
    for (const char* index : {
             "%w = zext <4 x i16> %x to <4 x i64>\n%m = mul <4 x i64> %w, splat (i64 3)\n"
             "%i = lshr <4 x i64> %m, splat (i64 8)",
             "%w = zext <4 x i16> %x to <4 x i64>\n%m = shl <4 x i64> %w, splat (i64 4)\n"
             "%i = or <4 x i64> %m, <i64 1, i64 2, i64 3, i64 4>",
             "%w = sext <4 x i32> %y to <4 x i64>\n%m = add <4 x i64> %w, splat (i64 -7)\n"
             "%i = and <4 x i64> %m, splat (i64 1023)",
             "%w = zext <4 x i32> %y to <4 x i64>\n%v = zext <4 x i16> %x to <4 x i64>\n"
             "%m = xor <4 x i64> %w, %v\n%i = and <4 x i64> %m, splat (i64 255)",
         }) {
        const Result result = after_pass(index);
        EXPECT_EQ(result.changed, 1U) << result.code;
        EXPECT_NE(result.code.find("zext nneg <4 x i32>"), std::string::npos) << result.code;
        EXPECT_EQ(result.code.find(" <4 x i64> %m"), std::string::npos) << result.code;
    }
}

TEST(NarrowIndices, ThatMayNeedMoreBits_StayWide) {
    for (const char* index : {
             // The index may be large, or negative.
             "%w = zext <4 x i32> %y to <4 x i64>\n%i = mul <4 x i64> %w, splat (i64 3)",
             "%w = sext <4 x i16> %x to <4 x i64>\n%i = add <4 x i64> %w, splat (i64 1)",
             // An index of 32 bits has a sign.
             "%w = zext <4 x i32> %y to <4 x i64>\n%v = zext <4 x i16> %x to <4 x i64>\n"
             "%m = add <4 x i64> %w, %v\n%i = and <4 x i64> %m, splat (i64 4294967295)",
             // What is shifted down has more bits.
             "%w = zext <4 x i32> %y to <4 x i64>\n%m = mul <4 x i64> %w, splat (i64 5)\n"
             "%n = lshr <4 x i64> %m, splat (i64 5)\n%i = and <4 x i64> %n, splat (i64 1023)",
             // Half of the bits and more are shifted away.
             "%w = zext <4 x i16> %x to <4 x i64>\n%m = mul <4 x i64> %w, splat (i64 3)\n"
             "%i = lshr <4 x i64> %m, splat (i64 40)",
             "%w = zext <4 x i16> %x to <4 x i64>\n%m = shl <4 x i64> %w, splat (i64 40)\n"
             "%n = or <4 x i64> %m, %w\n%i = and <4 x i64> %n, splat (i64 255)",
             "%w = zext <4 x i32> %y to <4 x i64>\n%m = mul <4 x i64> %w, splat (i64 5)\n"
             "%i = lshr <4 x i64> %m, splat (i64 24)",
             // Numbers of 64 bits.
             "%i = and <4 x i64> %z, splat (i64 255)",
             // What something else needs would be computed twice.
             "%w = zext <4 x i16> %x to <4 x i64>\n%m = mul <4 x i64> %w, splat (i64 3)\n"
             "call void @use(<4 x i64> %m)\n%i = lshr <4 x i64> %m, splat (i64 8)",
         }) {
        const Result result = after_pass(index);
        EXPECT_EQ(result.changed, 0U) << result.code;
    }
    const Result used = after_pass("%w = zext <4 x i16> %x to <4 x i64>\n%i = add <4 x i64> %w, splat (i64 1)",
                                   "call void @use(<4 x i64> %i)");
    EXPECT_EQ(used.changed, 0U) << used.code;
}

}  // namespace
}  // namespace polder::compiler::test
