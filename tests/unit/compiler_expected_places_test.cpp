// Which places are expected to be an integer, and which integer. That results stay the computed places is tested by image_rows.
#include "targets/host/loops/expected_places.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/ValueSymbolTable.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::test {
namespace {

using namespace llvm::PatternMatch;

// Rows of elements: `computation` computes %place for each row %y, or in the loop over its elements for %x.
class Rows {
public:
    explicit Rows(const std::string& computation, const std::string& of_element = "") {
        const std::string text = R"(
define float @f(ptr %image, ptr %sizes, i32 %n, float %moved) {
entry:
  %height = load i32, ptr %sizes
  %size = sitofp i32 %height to float
  %first = add i32 %n, 7
  br label %row
row:
  %y = phi i32 [ %first, %entry ], [ %next.y, %done ]
)" + computation + R"(
  br label %element
element:
  %x = phi i32 [ 0, %row ], [ %next.x, %element ]
  %sum = phi float [ 0.0, %row ], [ %next.sum, %element ]
)" + of_element + R"(
  %wide = sext i32 %place to i64
  %address = getelementptr float, ptr %image, i64 %wide
  %loaded = load float, ptr %address
  %next.sum = fadd float %sum, %loaded
  %next.x = add i32 %x, 1
  %is.last = icmp eq i32 %next.x, %n
  br i1 %is.last, label %done, label %element
done:
  %next.y = add i32 %y, 1
  %is.end = icmp eq i32 %next.y, %height
  br i1 %is.end, label %end, label %row
end:
  ret float %next.sum
}
declare float @llvm.floor.f32(float)
declare float @llvm.minnum.f32(float, float)
)";
        llvm::SMDiagnostic error;
        module_ = llvm::parseAssemblyString(text, error, context_);
        if (module_ == nullptr) {
            ADD_FAILURE() << error.getMessage().str() << text;
            return;
        }
        expect_places(*module_->getFunction("f"));
        EXPECT_FALSE(llvm::verifyModule(*module_, &llvm::errs()));
    }
    llvm::Value* operator[](const char* name) const {
        return module_->getFunction("f")->getValueSymbolTable()->lookup(name);
    }
    // What is loaded from where nothing differs from what was expected; null where nothing is expected.
    [[nodiscard]] llvm::Value* expected() const {
        const auto* const extended = llvm::cast<llvm::CastInst>((*this)["wide"]);
        const auto* const phi = llvm::dyn_cast<llvm::PHINode>(extended->getOperand(0));
        if (phi == nullptr)
            return nullptr;
        // The other value is the computed one.
        EXPECT_TRUE(match(phi->getIncomingValue(1), m_Freeze(m_Specific((*this)["place"]))));
        // An undefined integer is some number, because a branch must not depend on it.
        llvm::Value* integer = nullptr;
        EXPECT_TRUE(match(phi->getIncomingValue(0), m_Freeze(m_Value(integer))));
        return integer;
    }

private:
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
};

constexpr const char* normalized = R"(
  %number = sitofp i32 %y to float
  %middle = fadd float %number, 5.000000e-01
  %normal = fdiv float %middle, %size
  %scaled = fmul float %size, %normal
  %bounded = call float @llvm.minnum.f32(float %scaled, float %moved)
  %place = fptosi float %bounded to i32
)";

TEST(ExpectedPlaces, ANormalizedCoordinate_IsExpectedToBeItsInteger) {
    const Rows rows(normalized);
    ASSERT_NE(rows.expected(), nullptr);
    EXPECT_TRUE(match(rows.expected(), m_Specific(rows["y"])) ||
                match(rows.expected(), m_Add(m_Specific(rows["y"]), m_Zero())));
}

TEST(ExpectedPlaces, ConstantsAreAdded) {
    const Rows rows(R"(
  %number = sitofp i32 %y to float
  %moved.up = fadd float %number, -1.500000e+00
  %whole = call float @llvm.floor.f32(float %moved.up)
  %place = fptosi float %whole to i32
)");
    ASSERT_NE(rows.expected(), nullptr);
    EXPECT_TRUE(match(rows.expected(), m_Add(m_Specific(rows["y"]), m_SpecificInt(llvm::APInt(32, -2, true)))));
}

// The ends of a row of work-items are computed as two numbers at once.
TEST(ExpectedPlaces, OneOfTwoNumbers_IsFound) {
    const Rows rows(R"(
  %one = insertelement <2 x i32> poison, i32 %y, i64 0
  %behind = add i32 %y, 63
  %two = insertelement <2 x i32> %one, i32 %behind, i64 1
  %numbers = sitofp <2 x i32> %two to <2 x float>
  %middles = fadd <2 x float> %numbers, splat (float 5.000000e-01)
  %begin = extractelement <2 x float> %middles, i64 0
  %place = fptosi float %begin to i32
)");
    ASSERT_NE(rows.expected(), nullptr);
    EXPECT_TRUE(match(rows.expected(), m_Specific(rows["y"])) ||
                match(rows.expected(), m_Add(m_Specific(rows["y"]), m_Zero())));
}

TEST(ExpectedPlaces, NothingIsExpectedOfSizesOrOfSeveralIntegers) {
    EXPECT_EQ(Rows("%place = fptosi float %size to i32").expected(), nullptr);
    EXPECT_EQ(Rows(R"(
  %twice = mul i32 %y, 2
  %number = sitofp i32 %y to float
  %other = sitofp i32 %twice to float
  %sum.of.both = fadd float %number, %other
  %place = fptosi float %sum.of.both to i32
)")
                  .expected(),
              nullptr);
}

TEST(ExpectedPlaces, NothingIsExpectedInAnInnermostLoop) {
    const Rows rows("", R"(
  %number = sitofp i32 %x to float
  %middle = fadd float %number, 5.000000e-01
  %place = fptosi float %middle to i32
)");
    EXPECT_EQ(rows.expected(), nullptr);
}

}  // namespace
}  // namespace polder::compiler::test
