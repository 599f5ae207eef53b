// Products of 64 bits that are cut to 32: elements at even and odd places apart.
#include "compiler_support.h"
#include "targets/host/instructions/even_and_odd.h"

#include <cstdint>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <random>
#include <string>
#include <vector>

namespace polder::compiler::test {
namespace {

// How many operations of the function, after the pass, have 16 elements of 64 bits.
unsigned wide_operations(const std::string& body, const EvenAndOddTarget& target) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(
        "define <16 x i32> @f(<16 x i32> %a, <16 x i32> %b, i32 %n, ptr %p) {\n" + body + "}", error, context);
    if (module == nullptr) {
        ADD_FAILURE() << error.getMessage().str();
        return 0;
    }
    llvm::Function& function = *module->getFunction("f");
    separate_even_and_odd(function, target);
    EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
    unsigned count = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
        const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
        count += type != nullptr && type->getNumElements() == 16 && type->getElementType()->isIntegerTy(64) &&
                 !llvm::isa<llvm::CastInst>(instruction);
    }
    return count;
}

constexpr EvenAndOddTarget avx512{.register_bits = 512, .shifts_signed = true}, avx2{.register_bits = 256};

const std::string product = R"(
 %x = sext <16 x i32> %a to <16 x i64>
 %y = sext <16 x i32> %b to <16 x i64>
 %p1 = mul nsw <16 x i64> %x, %y
 %s = lshr <16 x i64> %p1, splat (i64 16)
)";

TEST(EvenAndOdd, ProductsThatAreCut_AreApart) {
    const std::string end = " %r = trunc <16 x i64> %s to <16 x i32>\n ret <16 x i32> %r\n";
    EXPECT_EQ(wide_operations(product + end, avx512), 0U);
    EXPECT_EQ(wide_operations(product + end, avx2), 0U);
}

TEST(EvenAndOdd, InRegistersThatHoldAllNumbers_StaysTogether) {
    const std::string end = " %r = trunc <16 x i64> %s to <16 x i32>\n ret <16 x i32> %r\n";
    EXPECT_EQ(wide_operations(product + end, {.register_bits = 1024, .shifts_signed = true}), 2U);
}

TEST(EvenAndOdd, NumbersThatAreStoredWithAllBits_StayTogether) {
    const std::string end =
        " store <16 x i64> %s, ptr %p\n %r = trunc <16 x i64> %s to <16 x i32>\n ret <16 x i32> %r\n";
    EXPECT_EQ(wide_operations(product + end, avx512), 2U);
}

TEST(EvenAndOdd, SignedNumbersInSums_AreApartWhereTheProcessorShiftsThem) {
    const std::string end = " %t = add <16 x i64> %s, %x\n %r = trunc <16 x i64> %t to <16 x i32>\n"
                            " ret <16 x i32> %r\n";
    EXPECT_EQ(wide_operations(product + end, avx512), 0U);
    EXPECT_EQ(wide_operations(product + end, avx2), 3U);
}

TEST(EvenAndOdd, SumsOfLoops_AreApart) {
    const std::string loop = R"(
 br label %loop
loop:
 %i = phi i32 [ 0, %0 ], [ %j, %loop ]
 %sum = phi <16 x i64> [ splat (i64 5), %0 ], [ %next, %loop ]
 %x = zext <16 x i32> %a to <16 x i64>
 %one = insertelement <16 x i64> poison, i64 7, i64 0
 %all = shufflevector <16 x i64> %one, <16 x i64> poison, <16 x i32> zeroinitializer
 %m = mul <16 x i64> %x, %all
 %next = add <16 x i64> %sum, %m
 %j = add i32 %i, 1
 %again = icmp slt i32 %j, %n
 br i1 %again, label %loop, label %done
done:
 %s = ashr <16 x i64> %next, splat (i64 8)
 %r = trunc <16 x i64> %s to <16 x i32>
 ret <16 x i32> %r
)";
    EXPECT_EQ(wide_operations(loop, avx2), 2U);  // the number that all elements have, for the loop of before
}

// Every operation and shift, with numbers at the ends of the type: the result of lanes is that of C++.
template <typename T, typename Wide>
void expect_products(const std::string& type, const std::string& wide) {
    constexpr unsigned shifts[] = {1, 8, 15, 16, 31, 32, 33, 47};
    std::string source = "kernel void k(global const " + type + "* a, global const " + type + "* b, global " + type +
                         "* r, int n) { size_t i = get_global_id(0); " + wide + " x = a[i], y = b[i];\n";
    for (size_t s = 0; s < std::size(shifts); ++s) {
        const std::string shift = std::to_string(shifts[s]);
        const auto place = [&](size_t which) {
            return "r[" + std::to_string(4 * s + which) + " * n + i] = (" + type + ")";
        };
        source += place(0) + "((x * y) >> " + shift + ");\n" + place(1) + "((x * 64880) >> " + shift + ");\n" +
                  place(2) + "((x * y + y * 3 - x) >> " + shift + ");\n" + place(3) +
                  "(max(x * 655, y) ^ ((x * y) << " + shift + "));\n";
    }
    const Outcome built = build(source + "}");
    ASSERT_EQ(built.status, Status::success) << built.log;
    std::vector<T> some{
        0, 1, 2, static_cast<T>(-1), static_cast<T>(0x80000000U), 0x7fffffff, static_cast<T>(0x80000001U)};
    std::mt19937 random(3);
    for (unsigned i = 0; i < 25; ++i)
        some.push_back(static_cast<T>(random() >> (i % 31)));
    std::vector<T> a, b;
    for (const T x : some)
        for (const T y : some) {
            a.push_back(x);
            b.push_back(y);
        }
    const size_t n = a.size();
    std::vector<T> r(n * 4 * std::size(shifts));
    Launch{built, "k"}.set(0, a.data()).set(1, b.data()).set(2, r.data()).set(3, static_cast<int32_t>(n)).run(n, 64);
    for (size_t s = 0; s < std::size(shifts); ++s)
        for (size_t i = 0; i < n; ++i) {
            // Sums and products modulo 2^64, then shifts of the type's kind.
            const auto x = static_cast<uint64_t>(static_cast<Wide>(a[i])),
                       y = static_cast<uint64_t>(static_cast<Wide>(b[i]));
            const auto shifted = [&](uint64_t value) { return static_cast<T>(static_cast<Wide>(value) >> shifts[s]); };
            const auto most = std::max(static_cast<Wide>(x * 655), static_cast<Wide>(y));
            ASSERT_EQ(r[(4 * s) * n + i], shifted(x * y)) << a[i] << " * " << b[i] << " >> " << shifts[s];
            ASSERT_EQ(r[(4 * s + 1) * n + i], shifted(x * 64880)) << a[i] << " >> " << shifts[s];
            ASSERT_EQ(r[(4 * s + 2) * n + i], shifted(x * y + y * 3 - x)) << a[i] << ", " << b[i];
            ASSERT_EQ(r[(4 * s + 3) * n + i], static_cast<T>(static_cast<uint64_t>(most) ^ ((x * y) << shifts[s])))
                << a[i] << ", " << b[i];
        }
}

TEST(EvenAndOdd, Products_AreExact) {
    expect_products<int32_t, int64_t>("int", "long");
    expect_products<uint32_t, uint64_t>("uint", "ulong");
}

}  // namespace
}  // namespace polder::compiler::test
