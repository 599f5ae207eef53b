// Halves that are rounded and then converted to int, compiled for a processor with AVX512-FP16, which the machine that tests need not have.
#include "compiled_for_processor.h"
#include "llvm_compat.h"
#include "machine/host.h"
#include "parsed_ir.h"
#include "targets/host/instructions/half_rounding.h"

#include <gtest/gtest.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler::test {
namespace {

constexpr const char* text = R"(
target triple = "x86_64-unknown-linux-gnu"
define i32 @f(half %x) {
  %rounded = call half @llvm.rint.f16(half %x)
  %result = fptosi half %rounded to i32
  ret i32 %result
}
define <3 x i32> @g(<3 x half> %x) {
  %rounded = call <3 x half> @llvm.rint.v3f16(<3 x half> %x)
  %result = fptosi <3 x half> %rounded to <3 x i32>
  ret <3 x i32> %result
}
)";

size_t count(const std::string& in, const std::string& what) {
    size_t found = 0;
    for (size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1))
        ++found;
    return found;
}

TEST(HalfRounding, BeforeAConversionToInt_IsKept) {
    ASSERT_NE(create_host_target_machine(), nullptr);  // registers the targets
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(text, context);
    ASSERT_NE(module, nullptr);
    std::string error;
    const llvm::Triple triple("x86_64-unknown-linux-gnu");
    const llvm::Target* const target = compat::lookup_target(triple, error);
    if (!target)
        GTEST_SKIP() << error;
    const std::unique_ptr<llvm::TargetMachine> machine =
        compat::create_target_machine(*target, triple, "sapphirerapids", "", {}, llvm::CodeGenOptLevel::Aggressive);
    module->setDataLayout(machine->createDataLayout());
    for (llvm::Function& function : *module)
        round_halves_to_even(function);

    llvm::SmallVector<char, 0> assembly;
    llvm::raw_svector_ostream stream(assembly);
    llvm::legacy::PassManager passes;
    ASSERT_FALSE(machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile));
    passes.run(*module);
    const std::string code(assembly.data(), assembly.size());
    // Each truncation has a rounding before it.
    EXPECT_GT(count(code, "vcvtt"), 0u) << code;
    EXPECT_EQ(count(code, "vcvtt"), count(code, "vrndscale")) << code;
}

// How many roundings and conversions to integers have halves after the pass.
unsigned roundings_of_halves(const char* processor) {
    const auto count = [](unsigned& found, const llvm::Instruction& instruction) {
        found += (llvm::isa<llvm::CallInst>(instruction) || llvm::isa<llvm::FPToSIInst>(instruction)) &&
                         instruction.getOperand(0)->getType()->getScalarType()->isHalfTy()
                     ? 1
                     : 0;
    };
    unsigned all = 0;
    for (const auto& [name, found] : after_pass<unsigned>(text, processor, round_halves_as_floats, count))
        all += found;
    return all;
}

TEST(HalfRounding, WithoutArithmeticOfHalves_IsThatOfFloats) {
    EXPECT_EQ(roundings_of_halves("znver4"), 0U);
    EXPECT_EQ(roundings_of_halves("sapphirerapids"), 4U);
}

// As convert_int_rtp of a half: no float becomes a half on the way.
TEST(HalfRounding, BetweenFloats_MakesNoHalves) {
    Host target = host();
    target.triple = llvm::Triple("x86_64-unknown-linux-gnu");
    target.cpu = "znver4";
    target.features.clear();
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(R"(
define <16 x i32> @converted(<16 x half> %x) {
  %rounded = call <16 x half> @llvm.ceil.v16f16(<16 x half> %x)
  %result = fptosi <16 x half> %rounded to <16 x i32>
  ret <16 x i32> %result
}
define <16 x float> @extended(<16 x half> %x) {
  %rounded = call <16 x half> @llvm.floor.v16f16(<16 x half> %x)
  %result = fpext <16 x half> %rounded to <16 x float>
  ret <16 x float> %result
}
)",
                                                        context);
    ASSERT_NE(module, nullptr);
    for (const char* const name : {"converted", "extended"}) {
        llvm::Function& function = *module->getFunction(name);
        round_halves_as_floats(function, *create_target_machine(target));
        EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            EXPECT_FALSE(llvm::isa<llvm::FPTruncInst>(instruction)) << name;
    }
}

}  // namespace
}  // namespace polder::compiler::test
