// Loops of which LLVM makes vectors use numbers that wrap around at a few bits, beside wider ones.
#include "analyses.h"
#include "compiler_support.h"
#include "parsed_ir.h"
#include "targets/host/loops/narrow_wraps.h"

#include <cstdint>
#include <ctime>
#include <functional>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <string>
#include <vector>

namespace polder::compiler::test {
namespace {

constexpr uint32_t count = 400, begin = 3;

using Words = std::vector<uint32_t>;

struct Case {
    const char* expression;  // of iteration i, with b = begin
    std::function<uint32_t(const Words&, uint32_t)> expected;
};

const Case cases[] = {
    {"in[b + i] + in[i & 3]", [](const Words& in, uint32_t i) { return in[begin + i] + in[i & 3U]; }},
    {"in[(b + i) & 1023] + in[i & 15]", [](const Words& in, uint32_t i) { return in[begin + i] + in[i & 15U]; }},
    {"in[(b + i + (i & 3)) & 1023]", [](const Words& in, uint32_t i) { return in[begin + i + (i & 3U)]; }},
    {"in[b + 2 * i] ^ in[b + (uchar)(i * 3)]",
     [](const Words& in, uint32_t i) { return in[begin + 2 * i] ^ in[begin + (i * 3U & 255U)]; }},
    {"in[b + i * 2] + in[(i & 15) + 5] * in[i & 63]",
     [](const Words& in, uint32_t i) { return in[begin + i * 2] + in[(i & 15U) + 5] * in[i & 63U]; }},
};

// LLVM 22 took `b + i` fitting into 32 bits for `i` fitting into 2, so element 4 had a wrong number.
TEST(NarrowWraps, BesideWiderNumbers_AreRight) {
    Words in(1024);
    for (uint32_t i = 0; i < in.size(); ++i)
        in[i] = i * 2654435761U;
    for (const std::string counter : {"uint", "ulong"})
        for (const Case& tested : cases) {
            const Outcome built =
                build("kernel void k(global const uint* restrict in, global uint* restrict out, uint b, " + counter +
                      " n) {\n  for (" + counter +
                      " c = 0; c < n; ++c) { const uint i = c; out[c] = " + tested.expression + "; }\n}");
            ASSERT_EQ(built.status, Status::success) << built.log;
            Words out(count);
            Launch launch{built, "k"};
            launch.set(0, in.data()).set(1, out.data()).set(2, begin);
            if (counter == "uint")
                launch.set(3, count);
            else
                launch.set(3, uint64_t{count});
            launch.run(1, 1);
            for (uint32_t i = 0; i < count; ++i)
                ASSERT_EQ(out[i], tested.expected(in, i)) << tested.expression << ", " << counter << ", element " << i;
        }
}

// A loop that adds up so many elements, each at a place of 10 bits, and as many numbers of 8 bits.
std::string sum_of(unsigned elements) {
    std::string text = "define i32 @f(ptr %in, i32 %x, i32 %n) {\nentry:\n  br label %loop\nloop:\n"
                       "  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n  %s0 = phi i32 [ 0, %entry ], [ %s" +
                       std::to_string(elements) + ", %loop ]\n";
    for (unsigned k = 0; k < elements; ++k) {
        const std::string at = std::to_string(k), factor = std::to_string(k + 1);
        text += "  %m" + at + " = mul i32 %i, " + factor + "\n  %a" + at + " = add i32 %m" + at + ", %x\n  %p" + at +
                " = and i32 %a" + at + ", 1023\n  %e" + at + " = zext i32 %p" + at + " to i64\n  %g" + at +
                " = getelementptr i32, ptr %in, i64 %e" + at + "\n  %l" + at + " = load i32, ptr %g" + at + "\n  %b" +
                at + " = and i32 %a" + at + ", 255\n  %t" + at + " = add i32 %l" + at + ", %b" + at + "\n  %s" +
                factor + " = add i32 %s" + at + ", %t" + at + "\n";
    }
    return text +
           "  %next = add i32 %i, 1\n  %more = icmp ult i32 %next, %n\n  br i1 %more, label %loop, label %end\n"
           "end:\n  ret i32 %s" +
           std::to_string(elements) + "\n}\n";
}

// The loop has no vectors, because it has too many questions to compare. To collect all of them took time by the square of their number, here 52 s.
TEST(NarrowWraps, OfLongSums_AreFoundInLittleTime) {
    llvm::LLVMContext context;
    const auto module = parsed(sum_of(1500), context);
    ASSERT_TRUE(module);
    Analyses analyses;
    llvm::PassBuilder builder;
    analyses.register_all(builder);
    add_narrow_wraps_pass(builder, true);
    llvm::FunctionPassManager passes;
    builder.invokeVectorizerStartEPCallbacks(passes, llvm::OptimizationLevel::O3);
    const std::clock_t begun = std::clock();
    passes.run(*module->getFunction("f"), analyses.functions);
    constexpr std::clock_t seconds_max = 4;
    EXPECT_LT((std::clock() - begun) / CLOCKS_PER_SEC, seconds_max);
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    EXPECT_NE(text.find("llvm.loop.vectorize.enable"), std::string::npos);
}

}  // namespace
}  // namespace polder::compiler::test
