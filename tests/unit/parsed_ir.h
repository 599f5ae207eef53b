// parsed(): a module of LLVM IR from its text, for tests of single passes.
#pragma once

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <memory>
#include <string>

namespace polder::compiler::test {

// Null, and a failure of the test, when the text has an error.
inline std::unique_ptr<llvm::Module> parsed(const std::string& text, llvm::LLVMContext& context) {
    llvm::SMDiagnostic problem;
    std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
    EXPECT_NE(module, nullptr) << problem.getMessage().str() << "\n" << text;
    return module;
}

}  // namespace polder::compiler::test
