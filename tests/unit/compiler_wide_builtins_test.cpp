// The forms of built-in functions for processors with registers of 512 bits: where they replace the common ones. math_accuracy_test checks their results.
#include "builtins/builtins.h"
#include "compiler_support.h"
#include "machine/host.h"
#include "module/module.h"
#include "targets/host/code_generator.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/SourceMgr.h>

namespace polder::compiler::test {
namespace {

bool is_wide() {
    const auto machine = create_host_target_machine();
    const llvm::MCSubtargetInfo& processor = *machine->getMCSubtargetInfo();
    return processor.checkFeatures("+avx512vl") && processor.checkFeatures("+avx512dq");
}

std::string symbol_of(const char* name) {
    const auto builtins = Builtins::for_host();
    const auto symbol = builtins ? (*builtins)->resolve(name) : std::nullopt;
    return symbol ? symbol->name : "";
}

TEST(WideBuiltins, ReplaceTheCommonForm_OnWideProcessors) {
    EXPECT_EQ(symbol_of("_Z3expd"), is_wide() ? "_Z15polder_wide_expd" : "_Z3expd");
    EXPECT_EQ(symbol_of("_Z5ldexpDv16_di"), is_wide() ? "_Z17polder_wide_ldexpDv16_di" : "_Z5ldexpDv16_di");
    EXPECT_EQ(symbol_of("_Z5rsqrtDv3_d"), is_wide() ? "_Z17polder_wide_rsqrtDv3_d" : "_Z5rsqrtDv3_d");
    EXPECT_EQ(symbol_of("_Z5hypotff"), is_wide() ? "_Z17polder_wide_hypotff" : "_Z5hypotff");
    EXPECT_EQ(symbol_of("_Z5rootnDv4_fDv4_i"), is_wide() ? "_Z17polder_wide_rootnDv4_fDv4_i" : "_Z5rootnDv4_fDv4_i");
}

// Their tables are looked up in registers without lanes, too.
TEST(WideBuiltins, OfLongVectors_ReplaceTheCommonForm) {
    EXPECT_EQ(symbol_of("_Z3expDv8_d"), is_wide() ? "_Z15polder_wide_expDv8_d" : "_Z3expDv8_d");
    EXPECT_EQ(symbol_of("_Z5hypotDv8_dS_"), is_wide() ? "_Z17polder_wide_hypotDv8_dS_" : "_Z5hypotDv8_dS_");
    EXPECT_EQ(symbol_of("_Z3powDv16_fS_"), is_wide() ? "_Z15polder_wide_powDv16_fS_" : "_Z3powDv16_fS_");
}

TEST(WideBuiltins, OfOtherNames_AreNotLookedFor) {
    EXPECT_EQ(symbol_of("_Z3sind"), "_Z3sind");
    for (const char* name : {"", "_Z", "exp", "_Z3exp", "_Z99999999999999999999expd"})
        EXPECT_EQ(symbol_of(name), "") << name;
}

// How many instructions of the kernel, with what it calls, satisfy the condition.
template <class Condition>
unsigned count_in(const std::string& source, Condition holds) {
    const Outcome built = build(source);
    EXPECT_EQ(built.status, Status::success) << built.log;
    const auto& compiled = static_cast<const CompiledModule&>(*built.module);
    llvm::LLVMContext context;
    auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(compiled.host_bitcode(), "k"), context);
    EXPECT_TRUE(static_cast<bool>(module));
    unsigned count = 0;
    for (const llvm::Function& function : **module)
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            count += holds(instruction) ? 1 : 0;
    return count;
}

// LLVM makes one instruction of llvm.ldexp. The common forms compute with the bits of the exponent. pow has
// two, with the mantissa's, and two more for unusual arguments.
TEST(WideBuiltins, Exponentials_AreScaledByOneInstruction) {
    const unsigned count =
        count_in("kernel void k(global double* a, global float* b) { size_t i = get_global_id(0);"
                 "a[i] = exp(a[i]) + exp2(a[i]) + exp10(a[i]); b[i] = pow(b[i], b[i + 1]) + ldexp(b[i], 3); }",
                 [](const llvm::Instruction& instruction) {
                     const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
                     return call && call->getIntrinsicID() == llvm::Intrinsic::ldexp;
                 });
    EXPECT_EQ(count, is_wide() ? 8U : 0U);
}

// One instruction for the mantissa, and one for the exponent (targets/host/instructions/number_parts.h).
TEST(WideBuiltins, Logarithms_SplitNumbersByInstructions) {
    const unsigned count =
        count_in("kernel void k(global double* a, global float* b) { size_t i = get_global_id(0);"
                 "a[i] = log(a[i]) + log2(a[i]) + log10(a[i]); b[i] = log(b[i]) + log2(b[i]) + log10(b[i]); }",
                 [](const llvm::Instruction& instruction) {
                     const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
                     return call && call->getIntrinsicID() == llvm::Intrinsic::ldexp && call->hasApproxFunc();
                 });
    EXPECT_EQ(count, is_wide() ? 6U : 0U);
}

// libclc has a branch for each element.
TEST(Shuffles, OfTwoVectors_HaveNoBranches) {
    for (const char* const types :
         {"int16 a, int16 b, uint16", "char8 a, char8 b, uchar8", "double4 a, double4 b, ulong4"}) {
        const std::string parameters = types, result = parameters.substr(0, parameters.find(' '));
        const unsigned branches =
            count_in("kernel void k(global " + result + "* r, " + parameters + " m) { r[0] = shuffle2(a, b, m); }",
                     [](const llvm::Instruction& one) {
                         const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(&one);
                         return llvm::isa<llvm::SwitchInst>(one) || (branch != nullptr && branch->isConditional());
                     });
        EXPECT_EQ(branches, 0U) << types;
    }
}

// Functions of halves are those of floats.
TEST(WideBuiltins, AreWhatHalvesCall) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const auto module =
        llvm::parseAssemblyString("declare half @_Z3expDh(half)"
                                  "define half @f(half %x) { %y = call half @_Z3expDh(half %x) ret half %y }",
                                  problem, context);
    ASSERT_NE(module, nullptr) << problem.getMessage().str();
    const auto builtins = Builtins::for_host();
    ASSERT_TRUE(builtins && (*builtins)->link_into(*module));
    EXPECT_EQ(module->getFunction("_Z15polder_wide_expf") != nullptr, is_wide());
    EXPECT_EQ(module->getFunction("_Z3expf") == nullptr, is_wide());
}

// Halves need a shorter polynomial, and none of them is subnormal as a float.
TEST(WideBuiltins, LogarithmsAndCubeRootsOfHalves_AreNotThoseOfFloats) {
    for (const std::string name : {"3log", "4log2", "5log10", "4cbrt"}) {
        llvm::LLVMContext context;
        llvm::SMDiagnostic problem;
        const std::string of_half = "half @_Z" + name + "Dh(half";
        std::string text = "declare " + of_half;
        text.append(") define half @f(half %x) { %y = call ").append(of_half).append(" %x) ret half %y }");
        const auto module = llvm::parseAssemblyString(text, problem, context);
        ASSERT_NE(module, nullptr) << problem.getMessage().str();
        const auto builtins = Builtins::for_host();
        ASSERT_TRUE(builtins && (*builtins)->link_into(*module));
        EXPECT_EQ(module->getFunction(symbol_of(("_Z" + name + "f").c_str())), nullptr) << name;
    }
}

// divide_by_estimates() replaces them in lanes. The permission of the common forms' reciprocals says that they may be zero for huge numbers
// (flush_huge_reciprocals()).
TEST(WideBuiltins, NativeReciprocals_MayBeEstimates) {
    const unsigned count =
        count_in("kernel void k(global float* a) { size_t i = get_global_id(0);"
                 "a[i] = native_recip(a[i]) + half_recip(a[i + 1]) + native_divide(a[i + 2], a[i + 3]); }",
                 [](const llvm::Instruction& instruction) {
                     return instruction.getOpcode() == llvm::Instruction::FDiv && instruction.hasAllowReciprocal();
                 });
    EXPECT_EQ(count, is_wide() ? 3U : 2U);
}

TEST(WideBuiltins, LogarithmsOfDoubles_DoNotDivide) {
    const unsigned count = count_in(
        "kernel void k(global double* a) { size_t i = get_global_id(0);"
        "a[i] = log(a[i]) + log2(a[i + 1]) + log10(a[i + 2]); }",
        [](const llvm::Instruction& instruction) { return instruction.getOpcode() == llvm::Instruction::FDiv; });
    EXPECT_EQ(count, is_wide() ? 0U : 3U);
}

}  // namespace
}  // namespace polder::compiler::test
