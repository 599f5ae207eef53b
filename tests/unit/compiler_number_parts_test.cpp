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

// logb of floats: the exponent of |x|, and choices for infinities, NaN and zeros, the second one by `zero`, its result and that of others.
std::string logb_of_floats(const std::string& name, const std::string& zero, const std::string& results,
                           const std::string& infinite = "%size") {
    return "define <8 x float> @" + name +
           "(<8 x float> %x, <8 x float> %y) {\n"
           "  %size = call <8 x float> @llvm.fabs.v8f32(<8 x float> %x)\n"
           "  %bits = bitcast <8 x float> %size to <8 x i32>\n"
           "  %placed = or <8 x i32> %bits, splat (i32 1258291200)\n"
           "  %large = bitcast <8 x i32> %placed to <8 x float>\n"
           "  %normal = fadd afn <8 x float> %large, splat (float 0xC160000000000000)\n"
           "  %small = fcmp olt <8 x float> %size, splat (float 0x3810000000000000)\n"
           "  %usual = add <8 x i32> %bits, splat (i32 -1065353216)\n"
           "  %raised = bitcast <8 x float> %normal to <8 x i32>\n"
           "  %lowered = add <8 x i32> %raised, splat (i32 1979711488)\n"
           "  %biased = select <8 x i1> %small, <8 x i32> %lowered, <8 x i32> %usual\n"
           "  %whole = ashr <8 x i32> %biased, splat (i32 23)\n"
           "  %exponent = sitofp <8 x i32> %whole to <8 x float>\n"
           "  %finite = fcmp one <8 x float> %size, splat (float 0x7FF0000000000000)\n"
           "  %number = select <8 x i1> %finite, <8 x float> %exponent, <8 x float> " +
           infinite + "\n  %zero = fcmp " + zero +
           " zeroinitializer\n"
           "  %result = select <8 x i1> %zero, " +
           results + "\n  ret <8 x float> %result\n}\n";
}

struct LogbCounts {
    unsigned exponents = 0, choices = 0, sizes = 0;
    bool operator==(const LogbCounts&) const = default;
};

std::map<std::string, LogbCounts> logb_split_for(const char* processor) {
    const std::string negative = "<8 x float> splat (float 0xFFF0000000000000)", number = "<8 x float> %number";
    const std::string all = logb_of_floats("usual", "oeq <8 x float> %x,", negative + ", " + number) +
                            logb_of_floats("turned", "une <8 x float> %size,", number + ", " + negative) +
                            logb_of_floats("other_zero", "oeq <8 x float> %x,", "<8 x float> %y, " + number) +
                            logb_of_floats("of_another", "oeq <8 x float> %y,", negative + ", " + number) +
                            logb_of_floats("other_infinity", "oeq <8 x float> %x,", negative + ", " + number, "%x") +
                            logb_of_floats("nan_is_zero", "ueq <8 x float> %x,", negative + ", " + number);
    return after_pass<LogbCounts>(all, processor, split_numbers_by_instructions,
                                  [](LogbCounts& counts, const llvm::Instruction& instruction) {
                                      counts.exponents += calls_intrinsic(instruction, "mask.getexp.p") ? 1 : 0;
                                      counts.choices += llvm::isa<llvm::SelectInst>(instruction) ? 1 : 0;
                                      counts.sizes += calls_intrinsic(instruction, "fabs") ? 1 : 0;
                                  });
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

// The instruction gives what the choices do.
TEST(NumberParts, OfLogb_NeedNoChoices) {
    std::map<std::string, LogbCounts> split = logb_split_for("znver4");
    for (const char* name : {"usual", "turned"})
        EXPECT_EQ(split[name], (LogbCounts{1, 0, 0})) << name;
    for (const char* name : {"other_zero", "of_another", "other_infinity", "nan_is_zero"})
        EXPECT_EQ(split[name], (LogbCounts{1, 2, 1})) << name;
    for (const auto& [name, counts] : logb_split_for("haswell"))
        EXPECT_EQ(counts, (LogbCounts{0, 3, 1})) << name;
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
