// Integer divisions of a kernel's own vectors, without lanes.
#include "compiler_support.h"
#include "parsed_ir.h"
#include "targets/host/instructions/vector_division.h"

#include <cstdint>
#include <limits>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <random>
#include <vector>

namespace polder::compiler::test {
namespace {

unsigned divisions_after_pass(const std::string& type, const std::string& operation) {
    const std::string text =
        "define " + type + " @f(" + type + " %a, " + type + " %b) {\n %r = " + operation + "\n ret " + type + " %r\n}";
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(text, context);
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

// Divisors whose factor has 64 and 65 bits, that are even, that are negative, and that have other signs than their factor.
template <typename T>
void expect_quotients_by_constants(const std::string& type) {
    constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    std::vector<T> divisors{3,
                            5,
                            6,
                            7,
                            9,
                            10,
                            11,
                            28,
                            100,
                            641,
                            1461,
                            86400,
                            146097,
                            most,
                            least + 1,
                            most - 1,
                            static_cast<T>(4294967295),
                            static_cast<T>(4294967297),
                            1000000007,
                            static_cast<T>(6700417),
                            most / 3,
                            most / 2 + 2};
    if (std::numeric_limits<T>::is_signed)
        for (size_t i = 0, n = divisors.size(); i < n; ++i)
            divisors.push_back(static_cast<T>(-divisors[i]));
    std::vector<T> a{
        0, 1, 2, most, least, static_cast<T>(most - 1), static_cast<T>(least + 1), static_cast<T>(most / 2)};
    std::mt19937_64 random(7);
    for (unsigned i = 0; i < 200; ++i)
        a.push_back(static_cast<T>(random() >> (i % 63)));
    for (const T divisor : divisors)
        for (const int factor : {1, 2, 3})
            for (const int aside : {-1, 0, 1})
                a.push_back(static_cast<T>(static_cast<uint64_t>(divisor) * static_cast<uint64_t>(factor) +
                                           static_cast<uint64_t>(aside)));
    a.resize(a.size() / 8 * 8);
    std::string source = "kernel void k(global const " + type + "* a, global " + type + "* q, global " + type +
                         "* r, ulong n) { size_t i = get_global_id(0); " + type + "8 x = vload8(i, a);\n";
    for (size_t i = 0; i < divisors.size(); ++i) {
        const std::string divisor = "(" + type + ")" + std::to_string(static_cast<uint64_t>(divisors[i])) + "UL";
        const std::string place = "q + " + std::to_string(i) + " * n);";
        source +=
            "vstore8(x / " + divisor + ", i, " + place + " vstore8(x % " + divisor + ", i, r" + place.substr(1) + "\n";
    }
    const Outcome built = build(source + "}");
    ASSERT_EQ(built.status, Status::success) << built.log;
    const uint64_t n = a.size();
    std::vector<T> q(n * divisors.size()), r(q.size());
    Launch{built, "k"}.set(0, a.data()).set(1, q.data()).set(2, r.data()).set(3, n).run(n / 8, 1);
    for (size_t d = 0; d < divisors.size(); ++d)
        for (size_t i = 0; i < n; ++i) {
            if (a[i] == least && divisors[d] == static_cast<T>(-1))
                continue;
            ASSERT_EQ(q[d * n + i], a[i] / divisors[d]) << a[i] << " / " << divisors[d];
            ASSERT_EQ(r[d * n + i], a[i] % divisors[d]) << a[i] << " % " << divisors[d];
        }
}

TEST(VectorDivision, OfLongsByConstants_IsExact) {
    expect_quotients_by_constants<int64_t>("long");
    expect_quotients_by_constants<uint64_t>("ulong");
}

}  // namespace
}  // namespace polder::compiler::test
