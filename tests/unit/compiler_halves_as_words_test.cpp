// Halves on processors without instructions for them. half_test with POLDER_CPU_TARGET checks the results of conversions.
#include "compiled_for_processor.h"
#include "targets/host/instructions/halves_as_words.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <map>
#include <string>

namespace polder::compiler::test {
namespace {

constexpr const char* text = R"(
target triple = "x86_64-unknown-linux-gnu"
define <4 x float> @to_floats(<4 x half> %x) {
  %result = fpext <4 x half> %x to <4 x float>
  ret <4 x float> %result
}
define <2 x double> @to_doubles(<2 x half> %x) {
  %result = fpext <2 x half> %x to <2 x double>
  ret <2 x double> %result
}
define half @of_a_float(float %x) {
  %result = fptrunc float %x to half
  ret half %result
}
define <2 x half> @of_doubles(<2 x double> %x) {
  %result = fptrunc <2 x double> %x to <2 x half>
  ret <2 x half> %result
}
define <8 x half> @computed(<8 x half> %x, <8 x half> %y) {
  %sum = fadd <8 x half> %x, %y
  %product = fmul <8 x half> %sum, %y
  %difference = fsub <8 x half> %product, %x
  %quotient = fdiv <8 x half> %difference, %y
  %is_less = fcmp olt <8 x half> %quotient, %x
  %result = select <8 x i1> %is_less, <8 x half> %quotient, <8 x half> %x
  ret <8 x half> %result
}
)";

struct Counts {
    unsigned conversions = 0, operations = 0;  // of halves
    bool operator==(const Counts&) const = default;
};

bool is_half(const llvm::Type* type) { return type->getScalarType()->isHalfTy(); }

std::map<std::string, Counts> converted_for(const char* processor) {
    return after_pass<Counts>(
        text, processor, convert_halves_as_words, [](Counts& counts, const llvm::Instruction& instruction) {
            if (llvm::isa<llvm::FPExtInst>(instruction))
                counts.conversions += is_half(instruction.getOperand(0)->getType()) ? 1 : 0;
            else if (llvm::isa<llvm::FPTruncInst>(instruction))
                counts.conversions += is_half(instruction.getType()) ? 1 : 0;
            else if (llvm::isa<llvm::BinaryOperator>(instruction) || llvm::isa<llvm::FCmpInst>(instruction))
                counts.operations += is_half(instruction.getOperand(0)->getType()) ? 1 : 0;
        });
}

TEST(HalvesAsWords, WithoutInstructions_HaveNoConversionsOfHalves) {
    for (const auto& [name, counts] : converted_for("x86-64-v2"))
        EXPECT_EQ(counts, (Counts{0, 0})) << name;
}

TEST(HalvesAsWords, WithInstructions_Stay) {
    std::map<std::string, Counts> converted = converted_for("haswell");
    for (const char* name : {"to_floats", "to_doubles", "of_a_float", "of_doubles"})
        EXPECT_EQ(converted[name], (Counts{1, 0})) << name;
    EXPECT_EQ(converted["computed"], (Counts{0, 5}));
}

}  // namespace
}  // namespace polder::compiler::test
