// The pipeline of a program marks the loads from __constant memory before address spaces become one.
#include "targets/host/lower.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::test {
namespace {

TEST(ConstantLoads, OfAProgram_AreMarked) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(
        "target triple = \"spir64\"\n"
        "define spir_func float @f(ptr addrspace(2) %c, ptr addrspace(1) %g) {\n"
        "%a = load float, ptr addrspace(2) %c\n%b = load volatile float, ptr addrspace(2) %c\n"
        "%d = load float, ptr addrspace(1) %g\n"
        "%s = fadd float %a, %b\n%t = fadd float %s, %d\nret float %t\n}\n",
        error, context);
    ASSERT_NE(module, nullptr) << error.getMessage().str();
    std::string log;
    const auto result = lower_for_host(*module, log);
    ASSERT_TRUE(result) << log;
    std::string text;
    llvm::raw_string_ostream(text) << *module->getFunction("f");
    EXPECT_NE(text.find("%a = load float, ptr %c, align 4, !invariant.load"), std::string::npos) << text;
    EXPECT_EQ(text.find("!invariant.load"), text.rfind("!invariant.load")) << text;
}

}  // namespace
}  // namespace polder::compiler::test
