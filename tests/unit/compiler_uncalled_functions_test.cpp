// Which functions have an attribute that spares LLVM the estimate of their size, and that it is only there while LLVM runs.
#include "parsed_ir.h"
#include "targets/host/uncalled_functions.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>
#include <string>

namespace polder::compiler::test {
namespace {

// The names of functions that must not be duplicated.
std::string marked(const llvm::Module& module) {
    std::string names;
    for (const llvm::Function& function : module)
        if (function.hasFnAttribute(llvm::Attribute::NoDuplicate))
            names += function.getName().str() + ' ';
    return names;
}

TEST(UncalledFunctions, AreNotDuplicatedMeanwhile) {
    llvm::LLVMContext context;
    const auto module = parsed("declare void @declared()\n"
                               "define internal void @local() {\n  ret void\n}\n"
                               "define void @called() {\n  ret void\n}\n"
                               "define void @marked() noduplicate {\n  ret void\n}\n"
                               "define void @kernel() {\n  call void @called()\n  ret void\n}\n",
                               context);
    ASSERT_NE(module, nullptr);
    {
        const UncalledFunctions uncalled(*module);
        EXPECT_EQ(marked(*module), "marked kernel ");
    }
    EXPECT_EQ(marked(*module), "marked ");
}

}  // namespace
}  // namespace polder::compiler::test
