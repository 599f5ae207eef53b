// Sums of products of halves, rounded to odd floats, compiled for processors with and without registers of 512 bits. half_test checks the results.
#include "compiled_for_processor.h"
#include "targets/host/instructions/odd_sums.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <map>
#include <string>

namespace polder::compiler::test {
namespace {

// What the library's fma of halves becomes in `count` lanes: of the addend, which the second part of the error is of, too, and of the product that the first
// part is of. The sum is rounded to odd where the error is none by `question`.
std::string function_with(const std::string& name, unsigned count, const std::string& addend = "%z_float",
                          const std::string& addend_of_error = "%z_float", const std::string& factor_of_error = "%a",
                          const std::string& question = "one", const std::string& shift = "ashr") {
    const std::string vector = "<" + std::to_string(count) + " x ", f = vector + "float>", h = vector + "half>",
                      i = vector + "i32>";
    const auto fused = [&](const std::string& factor) {
        return "call " + f + " @llvm.fmuladd.v" + std::to_string(count) + "f32(" + f + " " + factor + ", " + f +
               " %b, " + f + " ";
    };
    return "define " + f + " @" + name + "(" + h + " %x, " + h + " %y, " + h + " %z, " + f + " %other) {\n" +  //
           "%a = fpext " + h + " %x to " + f + "\n" +  //
           "%b = fpext " + h + " %y to " + f + "\n" +  //
           "%z_float = fpext " + h + " %z to " + f + "\n" +  //
           "%nearest = " + fused("%a") + addend + ")\n" +  //
           "%part = fsub " + f + " %nearest, " + addend + "\n" +  //
           "%negative = fneg " + f + " %part\n" +  //
           "%of_product = " + fused(factor_of_error) + "%negative)\n" +  //
           "%rest = fsub " + f + " %nearest, %part\n" +  //
           "%of_addend = fsub " + f + " " + addend_of_error + ", %rest\n" +  //
           "%error = fadd " + f + " %of_product, %of_addend\n" +  //
           "%bits = bitcast " + f + " %nearest to " + i + "\n" +  //
           "%error_bits = bitcast " + f + " %error to " + i + "\n" +  //
           "%sign = xor " + i + " %error_bits, %bits\n" +  //
           "%step = " + shift + " " + i + " %sign, splat (i32 31)\n" +  //
           "%towards_zero = add " + i + " %step, %bits\n" +  //
           "%odd = or " + i + " %towards_zero, splat (i32 1)\n" +  //
           "%odd_float = bitcast " + i + " %odd to " + f + "\n" +  //
           "%is_lost = fcmp " + question + " " + f + " %error, zeroinitializer\n" +  //
           "%result = select " + vector + "i1> %is_lost, " + f + " %odd_float, " + f + " %nearest\n" +  //
           "ret " + f + " %result\n}\n";
}

std::string module_text() {
    return "target triple = \"x86_64-unknown-linux-gnu\"\n"
           "declare <8 x float> @llvm.fmuladd.v8f32(<8 x float>, <8 x float>, <8 x float>)\n"
           "declare <16 x float> @llvm.fmuladd.v16f32(<16 x float>, <16 x float>, <16 x float>)\n"
           "declare <64 x float> @llvm.fmuladd.v64f32(<64 x float>, <64 x float>, <64 x float>)\n" +
           function_with("of_one_register", 16) + function_with("of_four_registers", 64) +
           function_with("of_half_a_register", 8) + function_with("of_a_float", 16, "%other", "%other") +
           function_with("of_another_addend", 16, "%z_float", "%other") +
           function_with("of_another_factor", 16, "%z_float", "%z_float", "%other") +
           function_with("of_exact_sums", 16, "%z_float", "%z_float", "%a", "oeq") +
           function_with("away_from_zero", 16, "%z_float", "%z_float", "%a", "one", "lshr");
}

struct Counts {
    unsigned directed = 0, comparisons = 0;  // fused operations; comparisons of floats
    bool operator==(const Counts&) const = default;
};

std::map<std::string, Counts> converted_for(const char* processor) {
    return after_pass<Counts>(module_text(), processor, round_sums_to_odd,
                              [](Counts& counts, const llvm::Instruction& instruction) {
                                  counts.directed += calls_intrinsic(instruction, "vfmadd.ps.512") ? 1 : 0;
                                  counts.comparisons += llvm::isa<llvm::FCmpInst>(instruction) ? 1 : 0;
                              });
}

TEST(OddSums, OfHalves_AreTwoFusedOperationsForEachRegister) {
    std::map<std::string, Counts> converted = converted_for("znver4");
    EXPECT_EQ(converted["of_one_register"], (Counts{2, 0}));
    EXPECT_EQ(converted["of_four_registers"], (Counts{8, 0}));
}

TEST(OddSums, OfOtherCode_Stay) {
    std::map<std::string, Counts> converted = converted_for("znver4");
    for (const char* name : {"of_half_a_register", "of_a_float", "of_another_addend", "of_another_factor",
                             "of_exact_sums", "away_from_zero"})
        EXPECT_EQ(converted[name], (Counts{0, 1})) << name;
}

TEST(OddSums, WithoutTheInstructions_Stay) {
    for (const auto& [name, counts] : converted_for("haswell"))
        EXPECT_EQ(counts, (Counts{0, 1})) << name;
}

}  // namespace
}  // namespace polder::compiler::test
