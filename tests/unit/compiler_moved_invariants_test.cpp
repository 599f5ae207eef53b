// What moves before a loop, compared with LLVM, which follows the operands of each value anew.
#include "parsed_ir.h"
#include "targets/host/workgroup/frame/moved_invariants.h"
#include "targets/host/workgroup/vectorizer/preparation/joined_questions.h"

#include <functional>
#include <gtest/gtest.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Support/raw_ostream.h>
#include <string>

namespace polder::compiler::test {
namespace {

std::string loop_with(const std::string& statements) {
    return "define void @f(ptr %p, i32 %x, i32 %y, i32 %n) {\nbefore:\n  br label %loop\nloop:\n"
           "  %i = phi i32 [ 0, %before ], [ %next, %loop ]\n" +
           statements +
           "  %next = add i32 %i, 1\n  %again = icmp ult i32 %next, %n\n"
           "  br i1 %again, label %loop, label %end\nend:\n  ret void\n}\n";
}

// The code after `move` was called for each operand of each sum in the loop.
std::string moved(const std::string& text, const std::function<void(llvm::Loop&, llvm::ArrayRef<llvm::Value*>)>& move) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(text, context);
    if (!module)
        return {};
    llvm::DominatorTree dominators(*module->getFunction("f"));
    const llvm::LoopInfo loops(dominators);
    llvm::Loop& loop = **loops.begin();
    llvm::SmallVector<llvm::Value*> summands;
    for (llvm::Instruction& each : *loop.getHeader())
        if (each.getOpcode() == llvm::Instruction::Add)
            summands.append(each.op_begin(), each.op_end());
    move(loop, summands);
    std::string result;
    llvm::raw_string_ostream(result) << *module;
    return result;
}

std::string moved_at_once(const std::string& text) {
    return moved(text, [](llvm::Loop& loop, llvm::ArrayRef<llvm::Value*> values) {
        workgroup::MovedInvariants invariants(loop);
        for (llvm::Value* const value : values)
            invariants.move_out(*value);
    });
}

std::string moved_one_by_one(const std::string& text) {
    return moved(text, [](llvm::Loop& loop, llvm::ArrayRef<llvm::Value*> values) {
        bool is_changed = false;
        for (llvm::Value* const value : values)
            loop.makeLoopInvariant(value, is_changed);
    });
}

TEST(MovedInvariants, AreThoseThatLlvmMoves) {
    for (const char* statements :
         {"  %a = mul i32 %x, %y\n  %b = add i32 %a, %i\n",
          // An operand moves although its product stays.
          "  %a = xor i32 %x, %y\n  %b = mul i32 %a, %i\n  %c = add i32 %b, %a\n  %d = add i32 %c, %b\n",
          // Loads, divisions and what is computed from them stay.
          "  %a = load i32, ptr %p\n  %b = mul i32 %a, %x\n  %c = add i32 %b, %x\n  %d = udiv i32 %x, %y\n"
          "  %e = add i32 %d, %c\n  %g = udiv i32 %x, 3\n  %h = add i32 %g, %e\n  store i32 %h, ptr %p\n"}) {
        const std::string code = moved_at_once(loop_with(statements));
        EXPECT_EQ(code, moved_one_by_one(loop_with(statements)));
        EXPECT_NE(code, moved(loop_with(statements), [](auto&&...) {}));
    }
}

// With one call inside the other for each sum, or all sums followed anew from each, this takes minutes or ends the process.
TEST(MovedInvariants, OfLongSums_AreFoundInLinearTime) {
    constexpr unsigned sums = 200'000;
    std::string statements = "  %s0 = add i32 %i, 1\n";
    for (unsigned i = 1; i < sums; ++i)
        statements += "  %s" + std::to_string(i) + " = add i32 %s" + std::to_string(i - 1) + ", %x\n";
    const std::string text = loop_with(statements);
    EXPECT_EQ(moved_at_once(text), moved(text, [](auto&&...) {}));
}

// Each partial product of a long chain is joined with an argument and compared, as by `(s | y) < 0` after each statement.
TEST(MovedInvariants, OfQuestionsAboutLongChains_AreFoundInLinearTime) {
    constexpr unsigned links = 100'000;
    std::string statements = "  %s0 = mul i32 %i, 3\n";
    for (unsigned i = 1; i < links; ++i) {
        const std::string link = std::to_string(i);
        statements += "  %s" + link + " = mul i32 %s" + std::to_string(i - 1) + ", 5\n  %j" + link + " = or i32 %s" +
                      link + ", %y\n  %c" + link + " = icmp slt i32 %j" + link + ", 0\n  store i1 %c" + link +
                      ", ptr %p\n";
    }
    const std::string code =
        moved(loop_with(statements), [](llvm::Loop& loop, auto&&...) { workgroup::separate_questions(loop); });
    EXPECT_NE(code.find("icmp slt i32 %y, 0"), std::string::npos);
}

// Questions about the lower bits of wide numbers, the parts of which are asked apart.
TEST(MovedInvariants, OfQuestionsAboutLowerBits_AreCompared) {
    const std::string code = moved(
        loop_with("  %wide = zext i32 %i to i64\n  %own = mul i64 %wide, 4294967291\n  %other = zext i32 %y to i64\n"
                  "  %joined = or i64 %own, %other\n  %low = trunc i64 %joined to i32\n"
                  "  %is_negative = icmp slt i32 %low, 0\n  store i1 %is_negative, ptr %p\n"),
        [](llvm::Loop& loop, auto&&...) { workgroup::separate_questions(loop); });
    EXPECT_NE(code.find("trunc i64 %other to i32"), std::string::npos) << code;
    EXPECT_NE(code.find("trunc i64 %own to i32"), std::string::npos) << code;
}

}  // namespace
}  // namespace polder::compiler::test
