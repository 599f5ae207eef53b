// The choices that logarithms end with, compiled for processors that have an instruction for them and for one that has not. math_accuracy_test checks the results.
#include "compiled_for_processor.h"
#include "targets/host/instructions/logarithm_limits.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <map>
#include <string>

namespace polder::compiler::test {
namespace {

// Of two registers; of a part of one; with another limit; not a power of two.
constexpr const char* text = R"(
target triple = "x86_64-unknown-linux-gnu"
define <16 x double> @two_registers(<16 x double> %x, <16 x double> %result) {
  %finite = fcmp one <16 x double> %x, splat (double 0x7FF0000000000000)
  %a = select <16 x i1> %finite, <16 x double> %result, <16 x double> %x
  %negative = fcmp olt <16 x double> %x, zeroinitializer
  %b = select <16 x i1> %negative, <16 x double> splat (double 0x7FF8000000000000), <16 x double> %a
  %zero = fcmp oeq <16 x double> %x, zeroinitializer
  %c = select <16 x i1> %zero, <16 x double> splat (double 0xFFF0000000000000), <16 x double> %b
  ret <16 x double> %c
}
define <4 x float> @part(<4 x float> %x, <4 x float> %result) {
  %finite = fcmp olt <4 x float> %x, splat (float 0x7FF0000000000000)
  %a = select <4 x i1> %finite, <4 x float> %result, <4 x float> %x
  %negative = fcmp olt <4 x float> %x, zeroinitializer
  %b = select <4 x i1> %negative, <4 x float> splat (float 0x7FF8000000000000), <4 x float> %a
  %zero = fcmp oeq <4 x float> %x, zeroinitializer
  %c = select <4 x i1> %zero, <4 x float> splat (float 0xFFF0000000000000), <4 x float> %b
  ret <4 x float> %c
}
define <4 x float> @zero_at_zero(<4 x float> %x, <4 x float> %result) {
  %finite = fcmp olt <4 x float> %x, splat (float 0x7FF0000000000000)
  %a = select <4 x i1> %finite, <4 x float> %result, <4 x float> %x
  %negative = fcmp olt <4 x float> %x, zeroinitializer
  %b = select <4 x i1> %negative, <4 x float> splat (float 0x7FF8000000000000), <4 x float> %a
  %zero = fcmp oeq <4 x float> %x, zeroinitializer
  %c = select <4 x i1> %zero, <4 x float> zeroinitializer, <4 x float> %b
  ret <4 x float> %c
}
define <4 x float> @of_another(<4 x float> %x, <4 x float> %result) {
  %finite = fcmp olt <4 x float> %x, splat (float 0x7FF0000000000000)
  %a = select <4 x i1> %finite, <4 x float> %result, <4 x float> %x
  %negative = fcmp olt <4 x float> %result, zeroinitializer
  %b = select <4 x i1> %negative, <4 x float> splat (float 0x7FF8000000000000), <4 x float> %a
  %zero = fcmp oeq <4 x float> %x, zeroinitializer
  %c = select <4 x i1> %zero, <4 x float> splat (float 0xFFF0000000000000), <4 x float> %b
  ret <4 x float> %c
}
define <3 x float> @odd(<3 x float> %x, <3 x float> %result) {
  %finite = fcmp olt <3 x float> %x, splat (float 0x7FF0000000000000)
  %a = select <3 x i1> %finite, <3 x float> %result, <3 x float> %x
  %negative = fcmp olt <3 x float> %x, zeroinitializer
  %b = select <3 x i1> %negative, <3 x float> splat (float 0x7FF8000000000000), <3 x float> %a
  %zero = fcmp oeq <3 x float> %x, zeroinitializer
  %c = select <3 x i1> %zero, <3 x float> splat (float 0xFFF0000000000000), <3 x float> %b
  ret <3 x float> %c
}
)";

struct Counts {
    unsigned instructions = 0;  // vfixupimm
    unsigned comparisons = 0;
    bool operator==(const Counts&) const = default;
};

std::map<std::string, Counts> chosen_for(const char* processor) {
    return after_pass<Counts>(text, processor, choose_limits_of_logarithms,
                              [](Counts& counts, const llvm::Instruction& instruction) {
                                  counts.instructions += calls_intrinsic(instruction, "mask.fixupimm.p") ? 1 : 0;
                                  counts.comparisons += llvm::isa<llvm::FCmpInst>(instruction) ? 1 : 0;
                              });
}

TEST(LogarithmLimits, OfWholeVectors_AreAnInstructionForEachRegister) {
    std::map<std::string, Counts> chosen = chosen_for("znver4");
    EXPECT_EQ(chosen["two_registers"], (Counts{2, 0}));
    EXPECT_EQ(chosen["part"], (Counts{1, 0}));
}

TEST(LogarithmLimits, OfOtherFunctions_Stay) {
    std::map<std::string, Counts> chosen = chosen_for("znver4");
    for (const char* name : {"zero_at_zero", "of_another", "odd"})
        EXPECT_EQ(chosen[name], (Counts{0, 3})) << name;
}

TEST(LogarithmLimits, WithoutTheInstruction_Stay) {
    for (const auto& [name, counts] : chosen_for("haswell"))
        EXPECT_EQ(counts, (Counts{0, 3})) << name;
}

}  // namespace
}  // namespace polder::compiler::test
