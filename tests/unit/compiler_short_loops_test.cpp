// Which loops begin at a line of the cache (targets/host/loops/short_loops.h).
#include "parsed_ir.h"
#include "targets/host/loops/short_loops.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::test {
namespace {

// A loop with further additions; the number of loops that are marked.
unsigned aligned(unsigned additions, const std::string& metadata = "") {
    std::string text = "define void @f(ptr %p, i32 %n) {\nentry:\n  br label %loop\n"
                       "loop:\n  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n"
                       "  %place = getelementptr i32, ptr %p, i32 %i\n  %x0 = load i32, ptr %place\n";
    for (unsigned i = 0; i < additions; ++i)
        text += "  %x" + std::to_string(i + 1) + " = add i32 %x" + std::to_string(i) + ", %n\n";
    text += "  store i32 %x" + std::to_string(additions) +
            ", ptr %place\n  %next = add i32 %i, 1\n  %more = icmp ult i32 %next, %n\n"
            "  br i1 %more, label %loop, label %end" +
            (metadata.empty() ? "" : ", !llvm.loop !0") + "\nend:\n  ret void\n}\n" + metadata;
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    if (!module)
        return ~0U;
    const unsigned loops = align_short_loops(*module->getFunction("f"));
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    std::string code;
    llvm::raw_string_ostream(code) << *module;
    EXPECT_EQ(code.find("llvm.loop.align") != std::string::npos, loops > 0) << code;
    return loops;
}

TEST(ShortLoops, BeginAtALine) {
    EXPECT_EQ(aligned(0), 1U);
    EXPECT_EQ(aligned(10), 1U);
    EXPECT_EQ(aligned(10, "!0 = distinct !{!0, !1}\n!1 = !{!\"llvm.loop.unroll.disable\"}\n"), 1U);
}

TEST(ShortLoops, AreNotLongOnes) { EXPECT_EQ(aligned(30), 0U); }

}  // namespace
}  // namespace polder::compiler::test
