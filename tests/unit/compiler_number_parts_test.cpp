// Exponents and mantissas, compiled for processors that have instructions for them and for one that has not. math_accuracy_test checks the results.
#include "compiled_for_processor.h"
#include "targets/host/instructions/number_parts.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <map>
#include <string>

namespace polder::compiler::test {
namespace {

// Both of doubles, in two registers; both of floats, in a part of one, whose choice is turned round; then others: without the flag that permits another
// result for 0, with another limit of subnormal numbers, the exponent of another number, a mantissa of another number, not a power of two.
constexpr const char* text = R"(
target triple = "x86_64-unknown-linux-gnu"
define <16 x double> @two_registers(<16 x double> %x) {
  %bits = bitcast <16 x double> %x to <16 x i64>
  %placed = or <16 x i64> %bits, splat (i64 4841369599423283200)
  %large = bitcast <16 x i64> %placed to <16 x double>
  %normal = fadd afn <16 x double> %large, splat (double 0xC330000000000000)
  %small = fcmp olt <16 x double> %x, splat (double 0x10000000000000)
  %usual = add <16 x i64> %bits, splat (i64 -4607182418800017408)
  %raised = bitcast <16 x double> %normal to <16 x i64>
  %lowered = add <16 x i64> %raised, splat (i64 9002695655113621504)
  %biased = select <16 x i1> %small, <16 x i64> %lowered, <16 x i64> %usual
  %whole = ashr <16 x i64> %biased, splat (i64 52)
  %exponent = sitofp <16 x i64> %whole to <16 x double>
  %short = trunc <16 x i64> %whole to <16 x i32>
  %less = sub <16 x i32> zeroinitializer, %short
  %mantissa = call afn <16 x double> @llvm.ldexp.v16f64.v16i32(<16 x double> %x, <16 x i32> %less)
  %both = fadd <16 x double> %exponent, %mantissa
  ret <16 x double> %both
}
)";

std::string of_floats(const std::string& name, const std::string& lanes, const std::string& flag = "afn",
                      const std::string& limit = "0x3810000000000000", const std::string& compared = "%x",
                      const std::string& scaled = "%x") {
    const std::string number = "<" + lanes + " x float>", whole = "<" + lanes + " x i32>";
    return "define " + number + " @" + name + "(" + number + " %x, " + number + " %y) {\n  %bits = bitcast " + number +
           " %x to " + whole + "\n  %placed = or " + whole + " %bits, splat (i32 1258291200)\n  %large = bitcast " +
           whole + " %placed to " + number + "\n  %normal = fadd " + flag + " " + number +
           " %large, splat (float 0xC160000000000000)\n  %usual_size = fcmp uge " + number + " " + compared +
           ", splat (float " + limit + ")\n  %usual = add " + whole +
           " %bits, splat (i32 -1065353216)\n  %raised = bitcast " + number + " %normal to " + whole +
           "\n  %lowered = add " + whole + " %raised, splat (i32 1979711488)\n  %biased = select <" + lanes +
           " x i1> %usual_size, " + whole + " %usual, " + whole + " %lowered\n  %whole = ashr " + whole +
           " %biased, splat (i32 23)\n  %exponent = sitofp " + whole + " %whole to " + number + "\n  %less = sub " +
           whole + " zeroinitializer, %whole\n  %mantissa = call afn " + number + " @llvm.ldexp.v" + lanes + "f32.v" +
           lanes + "i32(" + number + " " + scaled + ", " + whole + " %less)\n  %both = fadd " + number +
           " %exponent, %mantissa\n  ret " + number + " %both\n}\n";
}

struct Counts {
    unsigned exponents = 0, mantissas = 0;  // vgetexp, vgetmant
    unsigned shifts = 0;
    bool operator==(const Counts&) const = default;
};

std::map<std::string, Counts> split_for(const char* processor) {
    const std::string all = text + of_floats("part", "4") + of_floats("strict", "4", "") +
                            of_floats("other_limit", "4", "afn", "0x3820000000000000") +
                            of_floats("of_another", "4", "afn", "0x3810000000000000", "%y") +
                            of_floats("another_scaled", "4", "afn", "0x3810000000000000", "%x", "%y") +
                            of_floats("odd", "3");
    return after_pass<Counts>(all, processor, split_numbers_by_instructions,
                              [](Counts& counts, const llvm::Instruction& instruction) {
                                  counts.exponents += calls_intrinsic(instruction, "mask.getexp.p") ? 1 : 0;
                                  counts.mantissas += calls_intrinsic(instruction, "mask.getmant.p") ? 1 : 0;
                                  counts.shifts += instruction.getOpcode() == llvm::Instruction::AShr ? 1 : 0;
                              });
}

TEST(NumberParts, OfWholeVectors_AreInstructionsForEachRegister) {
    std::map<std::string, Counts> split = split_for("znver4");
    EXPECT_EQ(split["two_registers"], (Counts{2, 2, 0}));
    EXPECT_EQ(split["part"], (Counts{1, 1, 0}));
}

TEST(NumberParts, OfOtherCode_Stay) {
    std::map<std::string, Counts> split = split_for("znver4");
    for (const char* name : {"strict", "other_limit", "of_another", "odd"})
        EXPECT_EQ(split[name], (Counts{0, 0, 1})) << name;
    EXPECT_EQ(split["another_scaled"], (Counts{1, 0, 1}));
}

TEST(NumberParts, WithoutTheInstructions_Stay) {
    for (const auto& [name, counts] : split_for("haswell"))
        EXPECT_EQ(counts, (Counts{0, 0, 1})) << name;
}

}  // namespace
}  // namespace polder::compiler::test
