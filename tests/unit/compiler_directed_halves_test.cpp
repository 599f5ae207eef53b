// Halves rounded in a direction, compiled for processors that have instructions for them and for one that has not. half_test checks the results.
#include "compiled_for_processor.h"
#include "targets/host/instructions/directed_halves.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <map>
#include <string>

namespace polder::compiler::test {
namespace {

// Doubles up, in two registers; floats down, in a part of one; doubles to zero; then others: a comparison with another number, a step in the other
// direction, the size of one side only, doubles in half a register, halves of another format.
constexpr const char* text = R"(
target triple = "x86_64-unknown-linux-gnu"
define <16 x i16> @up(<16 x double> %x) {
  %float = fptrunc <16 x double> %x to <16 x float>
  %half = fptrunc <16 x float> %float to <16 x half>
  %bits = bitcast <16 x half> %half to <16 x i16>
  %back = fpext <16 x half> %half to <16 x double>
  %less = fcmp ogt <16 x double> %x, %back
  %sign = ashr <16 x i16> %bits, splat (i16 15)
  %step = or <16 x i16> %sign, splat (i16 1)
  %change = select <16 x i1> %less, <16 x i16> %step, <16 x i16> zeroinitializer
  %result = add <16 x i16> %change, %bits
  ret <16 x i16> %result
}
define <8 x i16> @down(<8 x float> %x) {
  %half = fptrunc <8 x float> %x to <8 x half>
  %bits = bitcast <8 x half> %half to <8 x i16>
  %back = fpext <8 x half> %half to <8 x float>
  %less = fcmp olt <8 x float> %x, %back
  %sign = ashr <8 x i16> %bits, splat (i16 15)
  %step = or <8 x i16> %sign, splat (i16 1)
  %change = select <8 x i1> %less, <8 x i16> %step, <8 x i16> zeroinitializer
  %result = sub <8 x i16> %bits, %change
  ret <8 x i16> %result
}
define <8 x i16> @to_zero(<8 x double> %x) {
  %float = fptrunc <8 x double> %x to <8 x float>
  %half = fptrunc <8 x float> %float to <8 x half>
  %bits = bitcast <8 x half> %half to <8 x i16>
  %size = call <8 x double> @llvm.fabs.v8f64(<8 x double> %x)
  %half_size = call <8 x half> @llvm.fabs.v8f16(<8 x half> %half)
  %back = fpext <8 x half> %half_size to <8 x double>
  %less = fcmp olt <8 x double> %size, %back
  %change = sext <8 x i1> %less to <8 x i16>
  %result = add <8 x i16> %change, %bits
  ret <8 x i16> %result
}
define <8 x i16> @of_another(<8 x float> %x, <8 x float> %y) {
  %half = fptrunc <8 x float> %x to <8 x half>
  %bits = bitcast <8 x half> %half to <8 x i16>
  %back = fpext <8 x half> %half to <8 x float>
  %less = fcmp olt <8 x float> %y, %back
  %sign = ashr <8 x i16> %bits, splat (i16 15)
  %step = or <8 x i16> %sign, splat (i16 1)
  %change = select <8 x i1> %less, <8 x i16> %step, <8 x i16> zeroinitializer
  %result = sub <8 x i16> %bits, %change
  ret <8 x i16> %result
}
define <8 x i16> @other_step(<8 x float> %x) {
  %half = fptrunc <8 x float> %x to <8 x half>
  %bits = bitcast <8 x half> %half to <8 x i16>
  %back = fpext <8 x half> %half to <8 x float>
  %less = fcmp olt <8 x float> %x, %back
  %sign = ashr <8 x i16> %bits, splat (i16 15)
  %step = or <8 x i16> %sign, splat (i16 1)
  %change = select <8 x i1> %less, <8 x i16> %step, <8 x i16> zeroinitializer
  %result = add <8 x i16> %bits, %change
  ret <8 x i16> %result
}
define <8 x i16> @one_size(<8 x float> %x) {
  %half = fptrunc <8 x float> %x to <8 x half>
  %bits = bitcast <8 x half> %half to <8 x i16>
  %half_size = call <8 x half> @llvm.fabs.v8f16(<8 x half> %half)
  %back = fpext <8 x half> %half_size to <8 x float>
  %less = fcmp olt <8 x float> %x, %back
  %change = sext <8 x i1> %less to <8 x i16>
  %result = add <8 x i16> %change, %bits
  ret <8 x i16> %result
}
define <4 x i16> @four(<4 x double> %x) {
  %float = fptrunc <4 x double> %x to <4 x float>
  %half = fptrunc <4 x float> %float to <4 x half>
  %bits = bitcast <4 x half> %half to <4 x i16>
  %back = fpext <4 x half> %half to <4 x double>
  %less = fcmp ogt <4 x double> %x, %back
  %sign = ashr <4 x i16> %bits, splat (i16 15)
  %step = or <4 x i16> %sign, splat (i16 1)
  %change = select <4 x i1> %less, <4 x i16> %step, <4 x i16> zeroinitializer
  %result = add <4 x i16> %change, %bits
  ret <4 x i16> %result
}
define <8 x i16> @bfloat(<8 x float> %x) {
  %half = fptrunc <8 x float> %x to <8 x bfloat>
  %bits = bitcast <8 x bfloat> %half to <8 x i16>
  %back = fpext <8 x bfloat> %half to <8 x float>
  %less = fcmp olt <8 x float> %x, %back
  %sign = ashr <8 x i16> %bits, splat (i16 15)
  %step = or <8 x i16> %sign, splat (i16 1)
  %change = select <8 x i1> %less, <8 x i16> %step, <8 x i16> zeroinitializer
  %result = sub <8 x i16> %bits, %change
  ret <8 x i16> %result
}
)";

struct Counts {
    unsigned directed = 0;  // vcvtps2ph
    unsigned comparisons = 0;
    bool operator==(const Counts&) const = default;
};

std::map<std::string, Counts> converted_for(const char* processor) {
    return after_pass<Counts>(text, processor, convert_to_directed_halves,
                              [](Counts& counts, const llvm::Instruction& instruction) {
                                  counts.directed += calls_intrinsic(instruction, "vcvtps2ph") ? 1 : 0;
                                  counts.comparisons += llvm::isa<llvm::FCmpInst>(instruction) ? 1 : 0;
                              });
}

TEST(DirectedHalves, OfWholeVectors_AreInstructionsForEachRegister) {
    std::map<std::string, Counts> converted = converted_for("znver4");
    EXPECT_EQ(converted["up"], (Counts{2, 0}));
    EXPECT_EQ(converted["down"], (Counts{1, 0}));
    EXPECT_EQ(converted["to_zero"], (Counts{1, 0}));
}

TEST(DirectedHalves, OfOtherCode_Stay) {
    std::map<std::string, Counts> converted = converted_for("znver4");
    for (const char* name : {"of_another", "other_step", "one_size", "four", "bfloat"})
        EXPECT_EQ(converted[name], (Counts{0, 1})) << name;
}

TEST(DirectedHalves, WithoutTheInstructions_Stay) {
    for (const auto& [name, counts] : converted_for("haswell"))
        EXPECT_EQ(counts, (Counts{0, 1})) << name;
}

}  // namespace
}  // namespace polder::compiler::test
