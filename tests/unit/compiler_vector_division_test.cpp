// Integer divisions of a kernel's own vectors, without lanes.
#include "compiler_support.h"
#include "targets/host/vector_division.h"

#include <cstdint>
#include <limits>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <random>
#include <vector>

namespace polder::compiler::test {
namespace {

unsigned divisions_after_pass(const std::string& type, const std::string& operation) {
    const std::string text =
        "define " + type + " @f(" + type + " %a, " + type + " %b) {\n %r = " + operation + "\n ret " + type + " %r\n}";
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(text, error, context);
    EXPECT_NE(module, nullptr) << error.getMessage().str();
    llvm::Function& function = *module->getFunction("f");
    divide_vectors(function);
    EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
    unsigned count = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        count += instruction.isIntDivRem() ? 1 : 0;
    return count;
}

TEST(VectorDivision, OfWords_IsInFloatingPoint) {
    EXPECT_EQ(divisions_after_pass("<8 x i32>", "sdiv <8 x i32> %a, %b"), 0U);
    EXPECT_EQ(divisions_after_pass("<4 x i16>", "urem <4 x i16> %a, %b"), 0U);
}

TEST(VectorDivision, OfLongsByConstantsAndOfShortVectors_Stays) {
    EXPECT_EQ(divisions_after_pass("<8 x i64>", "sdiv <8 x i64> %a, %b"), 1U);
    EXPECT_EQ(divisions_after_pass("<8 x i32>", "udiv <8 x i32> %a, splat (i32 7)"), 1U);
    EXPECT_EQ(divisions_after_pass("<2 x i32>", "udiv <2 x i32> %a, %b"), 1U);
}

template <typename T>
void expect_quotients(const std::string& type, const std::string& divisor) {
    SCOPED_TRACE(type + " " + divisor);
    const Outcome built =
        build("kernel void k(global const " + type + "* a, global const " + type + "* b, global " + type +
              "* q, global " + type + "* r) { size_t i = get_global_id(0); " + type +
              "8 x = vload8(i, a), y = " + divisor + "; vstore8(x / y, i, q); vstore8(x % y, i, r); }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    std::vector<T> values{
        1, 2, 3, 7, 100, most, least, static_cast<T>(most - 1), static_cast<T>(least + 1), static_cast<T>(most / 2)};
    std::mt19937 random(5);
    for (unsigned i = 0; i < 30; ++i)
        values.push_back(static_cast<T>(random() >> (i % 28)));
    std::vector<T> a, b;
    for (const T x : values)
        for (const T y : values) {
            if (y == 0 || (x == least && y == static_cast<T>(-1)))
                continue;
            a.push_back(x);
            b.push_back(y);
        }
    a.resize(a.size() / 8 * 8);
    std::vector<T> q(a.size()), r(a.size());
    Launch{built, "k"}.set(0, a.data()).set(1, b.data()).set(2, q.data()).set(3, r.data()).run(a.size() / 8, 1);
    for (size_t i = 0; i < a.size(); ++i) {
        const T y = divisor[0] == 'v' ? b[i] : b[i / 8];
        EXPECT_EQ(q[i], static_cast<T>(a[i] / y)) << +a[i] << " / " << +y;
        EXPECT_EQ(r[i], static_cast<T>(a[i] % y)) << +a[i] << " % " << +y;
    }
}

TEST(VectorDivision, IsExact) {
    for (const char* const divisor : {"vload8(i, b)", "(b[i])"}) {
        expect_quotients<int32_t>("int", divisor);
        expect_quotients<uint32_t>("uint", divisor);
        expect_quotients<int16_t>("short", divisor);
        expect_quotients<uint16_t>("ushort", divisor);
        expect_quotients<int8_t>("char", divisor);
        expect_quotients<uint8_t>("uchar", divisor);
    }
}

}  // namespace
}  // namespace polder::compiler::test
