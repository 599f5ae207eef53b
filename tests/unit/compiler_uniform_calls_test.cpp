// Calls of math functions with the same arguments for all work-items (frame/uniform_calls.h): which are moved to the first block.
#include "parsed_ir.h"
#include "targets/host/workgroup/frame/uniform_calls.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <string>

namespace polder::compiler::workgroup::test {
namespace {

// How many calls run once, of a frame with arguments a and n, and `body` behind its first block.
unsigned calls_that_run_once(const std::string& body) {
    llvm::LLVMContext context;
    const auto module = compiler::test::parsed(
        "declare i64 @_Z13get_global_idj(i32)\ndeclare i64 @_Z12get_local_idj(i32)\n"
        "define float @power(float %x, float %y) #0 {\n"
        "  %z = fcmp olt float %x, 0.0\n  br i1 %z, label %rare, label %usual\n"
        "rare:\n  ret float 0.0\nusual:\n  %r = fmul float %x, %y\n  ret float %r\n}\n"
        "define float @outer(float %x) #0 {\n  %r = call float @power(float %x, float 2.0)\n  ret float %r\n}\n"
        "define float @plain(float %x) #0 {\n  %r = fmul float %x, %x\n  ret float %r\n}\n"
        "define float @own(float %x) {\n  br label %b\nb:\n  ret float %x\n}\n"
        "define float @reads(ptr %p) #1 {\n  br label %b\nb:\n  %r = load float, ptr %p\n  ret float %r\n}\n"
        "define void @frame(ptr %p, float %a, i32 %n, i1 %flag) {\nprologue:\n  %local = alloca float\n"
        "  store float %a, ptr %local\n  br label %body\nbody:\n" +
            body +
            "}\nattributes #0 = { nounwind willreturn memory(none) \"polder-builtin\" }\n"
            "attributes #1 = { nounwind willreturn memory(read) \"polder-builtin\" }\n",
        context);
    if (!module)
        return 0;
    llvm::Function& frame = *module->getFunction("frame");
    call_once(frame);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    unsigned once = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(frame))
        if (const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && runs_once(*call)) {
            EXPECT_EQ(call->getParent(), &frame.getEntryBlock());
            ++once;
        }
    return once;
}

TEST(UniformCalls, OfArguments_RunOnce) {
    EXPECT_EQ(calls_that_run_once("%r = call float @power(float %a, float 3.0)\nstore float %r, ptr %p\nret void\n"),
              1U);
    EXPECT_EQ(calls_that_run_once("%r = call float @outer(float %a)\nstore float %r, ptr %p\nret void\n"), 1U);
    EXPECT_EQ(calls_that_run_once("%v = load float, ptr %local\n%f = sitofp i32 %n to float\n%s = fadd float %v, %f\n"
                                  "%r = call float @power(float %s, float %f)\nstore float %r, ptr %p\nret void\n"),
              1U);
}

TEST(UniformCalls, OfFunctionsWithoutBranchesOrWithEffects_Stay) {
    EXPECT_EQ(calls_that_run_once("%r = call float @plain(float %a)\nstore float %r, ptr %p\nret void\n"), 0U);
    EXPECT_EQ(calls_that_run_once("%r = call float @own(float %a)\nstore float %r, ptr %p\nret void\n"), 0U);
    EXPECT_EQ(calls_that_run_once("%r = call float @reads(ptr %p)\nstore float %r, ptr %p\nret void\n"), 0U);
    EXPECT_EQ(calls_that_run_once("%r = call float @power(float 2.0, float 3.0)\nstore float %r, ptr %p\nret void\n"),
              0U);
}

TEST(UniformCalls, OfIdsAndData_Stay) {
    EXPECT_EQ(calls_that_run_once("%i = call i64 @_Z13get_global_idj(i32 0)\n%f = uitofp i64 %i to float\n"
                                  "%r = call float @power(float %f, float %a)\nstore float %r, ptr %p\nret void\n"),
              0U);
    EXPECT_EQ(calls_that_run_once("%v = load float, ptr %p\n%r = call float @power(float %v, float %a)\n"
                                  "store float %r, ptr %p\nret void\n"),
              0U);
}

constexpr const char* behind_a_branch =
    ", label %then, label %end\nthen:\n%r = call float @power(float %a, float 3.0)\n"
    "store float %r, ptr %p\nbr label %end\nend:\nret void\n";

TEST(UniformCalls, BehindAGuardOfIds_RunOnce) {
    EXPECT_EQ(calls_that_run_once("%i = call i64 @_Z13get_global_idj(i32 0)\n%w = trunc i64 %i to i32\n"
                                  "%c = icmp slt i32 %w, %n\nbr i1 %c" +
                                  std::string{behind_a_branch}),
              1U);
}

// They would cost each work-group something although they are not needed.
TEST(UniformCalls, BehindOtherBranches_Stay) {
    EXPECT_EQ(calls_that_run_once("br i1 %flag" + std::string{behind_a_branch}), 0U);
    EXPECT_EQ(
        calls_that_run_once("%v = load i32, ptr %p\n%c = icmp eq i32 %v, %n\nbr i1 %c" + std::string{behind_a_branch}),
        0U);
}

TEST(UniformCalls, InALoop_RunOnce) {
    EXPECT_EQ(calls_that_run_once("br label %loop\nloop:\n%k = phi i32 [ 0, %body ], [ %next, %more ]\n"
                                  "%c = icmp slt i32 %k, %n\nbr i1 %c, label %more, label %end\nmore:\n"
                                  "%r = call float @power(float %a, float 3.0)\nstore float %r, ptr %p\n"
                                  "%next = add i32 %k, 1\nbr label %loop\nend:\nret void\n"),
              1U);
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
