// Products with powers of two, compiled for processors that have an instruction for them and for one that has not. Those that take long where the result is
// zero mask it.
#include "compiled_for_processor.h"
#include "targets/host/instructions/power_scaling.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <map>
#include <string>

namespace polder::compiler::test {
namespace {

// Of two registers; of a part of one; a program's own, whose exponent may be a NaN where the number is none; not a power of two.
constexpr const char* text = R"(
target triple = "x86_64-unknown-linux-gnu"
define <16 x double> @two_registers(<16 x double> %x, <16 x double> %e) {
  %lower = call <16 x double> @llvm.floor.v16f64(<16 x double> %e)
  %whole = call <16 x i32> @llvm.fptosi.sat.v16i32.v16f64(<16 x double> %lower)
  %result = call afn <16 x double> @llvm.ldexp.v16f64.v16i32(<16 x double> %x, <16 x i32> %whole)
  ret <16 x double> %result
}
define <4 x float> @part(<4 x float> %x, <4 x float> %e) {
  %lower = call <4 x float> @llvm.floor.v4f32(<4 x float> %e)
  %whole = call <4 x i32> @llvm.fptosi.sat.v4i32.v4f32(<4 x float> %lower)
  %result = call afn <4 x float> @llvm.ldexp.v4f32.v4i32(<4 x float> %x, <4 x i32> %whole)
  ret <4 x float> %result
}
define <4 x float> @own(<4 x float> %x, <4 x float> %e) {
  %lower = call <4 x float> @llvm.floor.v4f32(<4 x float> %e)
  %whole = call <4 x i32> @llvm.fptosi.sat.v4i32.v4f32(<4 x float> %lower)
  %result = call <4 x float> @llvm.ldexp.v4f32.v4i32(<4 x float> %x, <4 x i32> %whole)
  ret <4 x float> %result
}
define <8 x float> @zero_anyway(<8 x float> %x, <8 x float> %e) {
  %lower = call <8 x float> @llvm.floor.v8f32(<8 x float> %e)
  %whole = call <8 x i32> @llvm.fptosi.sat.v8i32.v8f32(<8 x float> %lower)
  %scaled = call afn <8 x float> @llvm.ldexp.v8f32.v8i32(<8 x float> %x, <8 x i32> %whole)
  %is_small = fcmp olt <8 x float> %e, splat (float -151.0)
  %result = select <8 x i1> %is_small, <8 x float> zeroinitializer, <8 x float> %scaled
  ret <8 x float> %result
}
define <3 x float> @odd(<3 x float> %x, <3 x float> %e) {
  %lower = call <3 x float> @llvm.floor.v3f32(<3 x float> %e)
  %whole = call <3 x i32> @llvm.fptosi.sat.v3i32.v3f32(<3 x float> %lower)
  %result = call afn <3 x float> @llvm.ldexp.v3f32.v3i32(<3 x float> %x, <3 x i32> %whole)
  ret <3 x float> %result
}
)";

using Counts = std::map<std::string, unsigned>;

Counts scaled_for(const char* processor) {
    return after_pass<unsigned>(text, processor, scale_by_instructions,
                                [](unsigned& count, const llvm::Instruction& instruction) {
                                    count += calls_intrinsic(instruction, "mask.scalef.p") ? 1 : 0;
                                });
}

Counts masked_for(const char* processor) {
    return after_pass<unsigned>(text, processor, scale_by_instructions,
                                [](unsigned& count, const llvm::Instruction& instruction) {
                                    count += llvm::isa<llvm::SelectInst>(instruction) ? 1 : 0;
                                });
}

TEST(PowerScaling, OfWholeVectors_IsAnInstructionForEachRegister) {
    EXPECT_EQ(scaled_for("znver4"),
              (Counts{{"two_registers", 2}, {"part", 1}, {"own", 0}, {"zero_anyway", 1}, {"odd", 0}}));
}

// A choice of zero that the program has already is enough.
TEST(PowerScaling, OfZeroResults_IsMaskedWhereItTakesLong) {
    const Counts without{{"two_registers", 0}, {"part", 0}, {"own", 0}, {"zero_anyway", 1}, {"odd", 0}};
    const Counts with{{"two_registers", 2}, {"part", 1}, {"own", 0}, {"zero_anyway", 1}, {"odd", 0}};
    EXPECT_EQ(masked_for("znver4"), without);
    EXPECT_EQ(masked_for("znver5"), without);
    EXPECT_EQ(masked_for("sapphirerapids"), with);
    EXPECT_EQ(masked_for("skylake-avx512"), with);
}

TEST(PowerScaling, WithoutTheInstruction_Stays) {
    EXPECT_EQ(scaled_for("haswell"),
              (Counts{{"two_registers", 0}, {"part", 0}, {"own", 0}, {"zero_anyway", 0}, {"odd", 0}}));
}

}  // namespace
}  // namespace polder::compiler::test
