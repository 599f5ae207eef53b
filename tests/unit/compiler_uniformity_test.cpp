// Uniformity of functions with very many branches that vary: what varies behind them, and that the analysis ends in the time of the test, which quadratic time
// would exceed.
#include "parsed_ir.h"
#include "targets/host/workgroup/work_items/uniformity.h"

#include <gtest/gtest.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <memory>
#include <set>
#include <string>

namespace polder::compiler::workgroup::test {
namespace {

// The names of the phis that vary when the argument %v does.
std::set<std::string> varying_phis(const std::string& text) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = compiler::test::parsed(text, context);
    if (!module)
        return {};
    llvm::Function& function = *module->getFunction("f");
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    llvm::SmallVector<llvm::BasicBlock*> body;
    for (llvm::BasicBlock& block : function)
        body.push_back(&block);
    const Uniformity uniformity(body, {function.getArg(0)}, loops);
    std::set<std::string> varying;
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (llvm::isa<llvm::PHINode>(instruction) && !uniformity.is_uniform(&instruction))
            varying.insert(instruction.getName().str());
    return varying;
}

// `count` times: if (condition) skips a block; the phi behind it joins two constants.
std::string branches(unsigned count, const std::string& condition) {
    std::string text = "define void @f(i1 %v, i1 %u) {\n  br label %b0\n";
    for (unsigned i = 0; i < count; ++i) {
        const std::string n = std::to_string(i);
        text += "b" + n + ":\n  br i1 %" + condition + ", label %t" + n + ", label %e" + n + "\nt" + n +
                ":\n  br label %e" + n + "\ne" + n + ":\n  %p" + n + " = phi i32 [ 1, %b" + n + " ], [ 2, %t" + n +
                " ]\n  br label %b" + std::to_string(i + 1) + "\n";
    }
    return text + "b" + std::to_string(count) + ":\n  ret void\n}\n";
}

TEST(Uniformity, OfManyBranchesInARowTakesLinearTime) {
    constexpr unsigned many = 40'000;
    EXPECT_EQ(varying_phis(branches(many, "v")).size(), many);
    EXPECT_EQ(varying_phis(branches(3, "u")).size(), 0U);
}

// Both paths of the branch meet in %meet. Its loop ends there, or a block before %meet is reached again without the branch.
TEST(Uniformity, BehindTheBlockWhereAllPathsMeet) {
    const std::string again = "define void @f(i1 %v, i1 %u) {\n  br label %head\n"
                              "head:\n  br i1 %u, label %fork, label %left\n"
                              "fork:\n  br i1 %v, label %left, label %right\n"
                              "left:\n  %l = phi i32 [ 1, %head ], [ 2, %fork ]\n  br label %meet\n"
                              "right:\n  br label %meet\n"
                              "meet:\n  %m = phi i32 [ 3, %left ], [ 4, %right ]\n  br i1 %u, label %head, label %end\n"
                              "end:\n  ret void\n}\n";
    EXPECT_EQ(varying_phis(again), (std::set<std::string>{"l", "m"}));
    const std::string leaves = "define void @f(i1 %v, i1 %u) {\n  br label %head\n"
                               "head:\n  %i = phi i32 [ 0, %0 ], [ %n, %next ]\n  %n = add i32 %i, 1\n"
                               "  br i1 %v, label %next, label %out\n"
                               "next:\n  br i1 %u, label %head, label %out\n"
                               "out:\n  %o = phi i32 [ %n, %head ], [ %n, %next ]\n  ret void\n}\n";
    EXPECT_EQ(varying_phis(leaves), (std::set<std::string>{"o"}));
    const std::string inside = "define void @f(i1 %v, i1 %u) {\n  br label %head\n"
                               "head:\n  %i = phi i32 [ 0, %0 ], [ %n, %meet ]\n  %n = add i32 %i, 1\n"
                               "  br i1 %v, label %then, label %meet\n"
                               "then:\n  br label %meet\n"
                               "meet:\n  %m = phi i32 [ 1, %head ], [ 2, %then ]\n  br i1 %u, label %head, label %out\n"
                               "out:\n  %o = phi i32 [ %n, %meet ]\n  ret void\n}\n";
    EXPECT_EQ(varying_phis(inside), (std::set<std::string>{"m"}));
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
