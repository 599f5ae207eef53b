// Where the SLP vectorizer is left out: for vectors of many single elements of memory, which LLVM's vectorizer of loops has made, and for long sums.
#include "targets/host/pass_gate.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/SourceMgr.h>
#include <memory>
#include <string>

namespace polder::compiler::test {
namespace {

// Vectors that are made of single bytes of memory.
std::string collecting(unsigned vectors, unsigned elements) {
    const std::string type = "<" + std::to_string(elements) + " x i8>";
    std::string text = "define void @f(ptr %p) {\n", before;
    for (unsigned v = 0; v < vectors; ++v)
        for (unsigned e = 0; e < elements; ++e) {
            const std::string place = std::to_string(v * elements + e);
            text += "  %p" + place + " = getelementptr i8, ptr %p, i64 " + std::to_string(3 * e + v) + "\n  %b" +
                    place + " = load volatile i8, ptr %p" + place + "\n  %v" + place + " = insertelement " + type +
                    " " + (e == 0 ? "poison" : before) + ", i8 %b" + place + ", i64 " + std::to_string(e) + "\n";
            before = "%v" + place;
            if (e + 1 == elements)
                text += "  store volatile " + type + " " + before + ", ptr %p\n";
        }
    return text + "  ret void\n}\n";
}

bool joins(const std::string& text, bool has_lanes) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
    EXPECT_NE(module, nullptr) << problem.getMessage().str();
    return module && OptimizationGate(*module, has_lanes).should_run("SLPVectorizerPass", *module->getFunction("f"));
}

TEST(OptimizationGate, ForManyCollectedElements_LeavesOutTheJoiningOfStatements) {
    EXPECT_FALSE(joins(collecting(2, 64), true));
    EXPECT_TRUE(joins(collecting(1, 64), true));
    EXPECT_TRUE(joins(collecting(8, 16), true));  // a kernel's own vectors
    EXPECT_TRUE(joins(collecting(2, 64), false));
}

// Numbers of memory, combined one after the other.
std::string combined(size_t numbers, const std::string& operation) {
    std::string text = "define void @f(ptr %p) {\n  %s0 = load volatile i32, ptr %p\n";
    for (size_t i = 1; i < numbers; ++i) {
        const std::string at = std::to_string(i);
        text += "  %b" + at + " = load volatile i32, ptr %p\n  %s" + at + " = " + operation + " i32 %s" +
                std::to_string(i - 1) + ", %b" + at + "\n";
    }
    return text + "  store volatile i32 %s" + std::to_string(numbers - 1) + ", ptr %p\n  ret void\n}\n";
}

TEST(OptimizationGate, ForLongSums_LeavesOutTheJoiningOfStatements) {
    for (const char* const operation : {"add", "xor"})
        for (const bool has_lanes : {false, true}) {
            EXPECT_TRUE(joins(combined(OptimizationGate::combined_numbers_max, operation), has_lanes)) << operation;
            EXPECT_FALSE(joins(combined(OptimizationGate::combined_numbers_max + 1, operation), has_lanes))
                << operation;
        }
    EXPECT_TRUE(joins(combined(OptimizationGate::combined_numbers_max + 1, "sub"), false));  // in no other order
}

}  // namespace
}  // namespace polder::compiler::test
