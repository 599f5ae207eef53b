// Comparisons whose bits are shuffled become comparisons of shuffled values.
#include "compiler_support.h"
#include "parsed_ir.h"
#include "targets/host/instructions/mask_shuffles.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <vector>

namespace polder::compiler::test {
namespace {

struct Counts {
    unsigned of_bits = 0, of_values = 0, comparisons = 0;
};

// What is left of the function `f` of `text`.
Counts after_pass(const char* text) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(text, context);
    Counts counts;
    if (!module)
        return counts;
    llvm::Function& function = *module->getFunction("f");
    shuffle_before_comparing(function);
    EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
        if (llvm::isa<llvm::ShuffleVectorInst>(instruction))
            ++(instruction.getType()->getScalarType()->isIntegerTy(1) ? counts.of_bits : counts.of_values);
        counts.comparisons += llvm::isa<llvm::CmpInst>(instruction) ? 1 : 0;
    }
    return counts;
}

TEST(MaskShuffles, OfAComparison_AreOfItsOperands) {
    const Counts counts = after_pass(R"(
        define <2 x i1> @f(<6 x float> %a, <6 x float> %b) {
          %c = fcmp olt <6 x float> %a, %b
          %x = shufflevector <6 x i1> %c, <6 x i1> poison, <2 x i32> <i32 0, i32 3>
          %y = shufflevector <6 x i1> %c, <6 x i1> poison, <2 x i32> <i32 1, i32 4>
          %r = and <2 x i1> %x, %y
          ret <2 x i1> %r
        })");
    EXPECT_EQ(counts.of_bits, 0U);
    EXPECT_EQ(counts.of_values, 4U);
    EXPECT_EQ(counts.comparisons, 2U);
}

TEST(MaskShuffles, OfLogic_AreOfTheComparedValues) {
    const Counts counts = after_pass(R"(
        define <2 x i1> @f(<6 x float> %a, <6 x i32> %b) {
          %c = fcmp olt <6 x float> %a, splat (float 1.0)
          %d = icmp ugt <6 x i32> %b, splat (i32 4)
          %n = xor <6 x i1> %d, splat (i1 true)
          %e = and <6 x i1> %c, %n
          %x = shufflevector <6 x i1> %e, <6 x i1> poison, <2 x i32> <i32 2, i32 5>
          ret <2 x i1> %x
        })");
    EXPECT_EQ(counts.of_bits, 0U);
    EXPECT_EQ(counts.of_values, 2U);
    EXPECT_EQ(counts.comparisons, 2U);
}

TEST(MaskShuffles, OfBitsThatAreAlsoUsedTogether_Stay) {
    const Counts counts = after_pass(R"(
        define <6 x float> @f(<6 x float> %a, <6 x float> %b, ptr %p) {
          %c = fcmp olt <6 x float> %a, %b
          %x = shufflevector <6 x i1> %c, <6 x i1> poison, <2 x i32> <i32 0, i32 3>
          store <2 x i1> %x, ptr %p
          %r = select <6 x i1> %c, <6 x float> %a, <6 x float> %b
          ret <6 x float> %r
        })");
    EXPECT_EQ(counts.of_bits, 1U);
    EXPECT_EQ(counts.comparisons, 1U);
}

TEST(MaskShuffles, StepOfVectorsOfThree_HasTheSameResults) {
    const Outcome built = build("kernel void k(global const float* a, global const float* b, global float* out) {"
                                "  size_t i = get_global_id(0); float3 x = vload3(i, a), y = vload3(i, b);"
                                "  vstore3(step(x, y) + (x > 1.0f && y < x ? (float3)2 : (float3)4), i, out); }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr size_t items = 64;
    std::vector<float> a, b, out(3 * items);
    for (size_t i = 0; i < 3 * items; ++i) {
        a.push_back(static_cast<float>(i * 7 % 23) / 4 - 2);
        b.push_back(static_cast<float>(i * 5 % 19) / 4 - 2);
    }
    Launch{built, "k"}.set(0, a.data()).set(1, b.data()).set(2, out.data()).run(items, items);
    for (size_t i = 0; i < 3 * items; ++i)
        EXPECT_EQ(out[i], (b[i] < a[i] ? 0.0F : 1.0F) + (a[i] > 1 && b[i] < a[i] ? 2.0F : 4.0F)) << i;
}

}  // namespace
}  // namespace polder::compiler::test
