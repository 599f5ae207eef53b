// Questions for all elements of a vector (any_element.h) and for classes of numbers (class_ranges.h): what they return stays the same, and no element is looked at alone.
#include "machine/host.h"
#include "parsed_ir.h"
#include "targets/host/instructions/any_element.h"
#include "targets/host/instructions/class_ranges.h"

#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace polder::compiler::test {
namespace {

std::unique_ptr<llvm::TargetMachine> machine_of(const char* processor) {
    Host target = host();
    target.triple = llvm::Triple("x86_64-unknown-linux-gnu");
    target.cpu = processor;
    target.features.clear();
    return create_target_machine(target);
}

// What the function of one block returns for an argument; instructions are folded one after the other.
llvm::Constant* result_for(const llvm::Function& function, llvm::Constant& argument) {
    llvm::ValueToValueMapTy values;
    llvm::Function* const copy = llvm::CloneFunction(const_cast<llvm::Function*>(&function), values);
    copy->getArg(0)->replaceAllUsesWith(&argument);
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(copy->getEntryBlock()))
        if (llvm::Constant* const folded = instruction.isTerminator()
                                               ? nullptr
                                               : llvm::ConstantFoldInstruction(&instruction, function.getDataLayout()))
            instruction.replaceAllUsesWith(folded);
    auto* const result = llvm::dyn_cast<llvm::Constant>(copy->getEntryBlock().getTerminator()->getOperand(0));
    copy->eraseFromParent();
    return result;
}

unsigned single_elements(const llvm::Function& function) {
    return static_cast<unsigned>(llvm::count_if(llvm::instructions(function), [](const llvm::Instruction& one) {
        return llvm::isa<llvm::ExtractElementInst>(one);
    }));
}

// As LLVM writes what the library and programs ask: halves, then elements.
std::string question_of(const char* operation, const char* comparison) {
    const std::string join = operation;
    return "define i1 @f(<4 x i16> %v) {\n"
           "%low = shufflevector <4 x i16> %v, <4 x i16> poison, <2 x i32> <i32 0, i32 1>\n"
           "%high = shufflevector <4 x i16> poison, <4 x i16> %v, <2 x i32> <i32 6, i32 7>\n"
           "%both = " +
           join +
           " <2 x i16> %low, %high\n"
           "%a = extractelement <2 x i16> %both, i64 0\n"
           "%b = extractelement <2 x i16> %both, i64 1\n"
           "%all = " +
           join +
           " i16 %a, %b\n"
           "%result = icmp " +
           comparison +
           "\n"
           "ret i1 %result\n}\n";
}

void expect_same_answers(const std::string& text, unsigned left) {
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    ASSERT_NE(module, nullptr);
    llvm::Function& function = *module->getFunction("f");
    llvm::ValueToValueMapTy values;
    const llvm::Function& before = *llvm::CloneFunction(&function, values);
    ask_whole_vectors(function, *machine_of("x86-64-v4"));
    EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
    EXPECT_EQ(single_elements(function), left) << text;
    for (const uint16_t value : {1, 0x7fff, 0x8000, 0xffff})
        for (unsigned places = 0; places < 16; ++places) {
            uint16_t elements[4] = {};
            for (unsigned i = 0; i < 4; ++i)
                elements[i] = (places >> i & 1) != 0 ? value : 0;
            llvm::Constant& argument = *llvm::ConstantDataVector::get(context, elements);
            EXPECT_EQ(result_for(function, argument), result_for(before, argument)) << text << value << " " << places;
            EXPECT_NE(result_for(function, argument), nullptr);
        }
}

TEST(AnyElement, OfAVector_IsAskedAtOnce) {
    for (const char* comparison : {"ne i16 %all, 0", "eq i16 %all, 0", "slt i16 %all, 0", "sgt i16 %all, -1"})
        expect_same_answers(question_of("or", comparison), 0);
    for (const char* comparison : {"slt i16 %all, 0", "sgt i16 %all, -1"})
        expect_same_answers(question_of("and", comparison), 0);
}

// A bit that all elements have is no question for single ones, and neither is the number of bits.
TEST(AnyElement, OfOtherQuestions_StaysApart) {
    expect_same_answers(question_of("and", "ne i16 %all, 0"), 2);
    expect_same_answers(question_of("or", "ult i16 %all, 7"), 2);
    expect_same_answers(question_of("add", "ne i16 %all, 0"), 2);
}

TEST(AnyElement, OfAPart_StaysApart) {
    expect_same_answers("define i1 @f(<4 x i16> %v) {\n%a = extractelement <4 x i16> %v, i64 0\n"
                        "%b = extractelement <4 x i16> %v, i64 1\n%all = or i16 %a, %b\n"
                        "%result = icmp ne i16 %all, 0\nret i1 %result\n}\n",
                        2);
}

// All kinds of floats, of both signs.
const std::vector<uint32_t> floats = {0,          1,          0x7fffff,   0x800000,   0x7f7fffff, 0x7f800000,
                                      0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x80000000, 0x80000001,
                                      0x807fffff, 0x80800000, 0xff7fffff, 0xff800000, 0xff800001, 0xffbfffff,
                                      0xffc00000, 0xffffffff, 0x3f800000};

// Whether the question was replaced; what it returns is checked.
bool is_compared(unsigned classes, const char* processor) {
    llvm::LLVMContext context;
    const std::string type = "<" + std::to_string(floats.size()) + " x float>";
    const std::string answer = "<" + std::to_string(floats.size()) + " x i1>";
    const auto module = parsed("define " + answer + " @f(" + type + " %x) {\n%r = call " + answer +
                                   " @llvm.is.fpclass(" + type + " %x, i32 " + std::to_string(classes) + ")\nret " +
                                   answer + " %r\n}\ndeclare " + answer + " @llvm.is.fpclass(" + type + ", i32)\n",
                               context);
    if (!module)
        return false;
    llvm::Function& function = *module->getFunction("f");
    compare_classes(function, *machine_of(processor));
    EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
    if (llvm::any_of(llvm::instructions(function), llvm::IsaPred<llvm::IntrinsicInst>))
        return false;
    llvm::Constant* const argument = llvm::ConstantExpr::getBitCast(
        llvm::ConstantDataVector::get(context, llvm::ArrayRef(floats)), function.getArg(0)->getType());
    const llvm::Constant* const result = result_for(function, *argument);
    EXPECT_NE(result, nullptr);
    for (unsigned i = 0; result != nullptr && i < floats.size(); ++i) {
        const llvm::APFloat number(llvm::APFloat::IEEEsingle(), llvm::APInt(32, floats[i]));
        EXPECT_EQ(result->getAggregateElement(i)->isOneValue(), (number.classify() & classes) != 0)
            << std::hex << floats[i] << " " << classes;
    }
    return true;
}

TEST(ClassRanges, OfBothSigns_AreCompared) {
    using namespace llvm;
    for (const unsigned classes : {fcNormal, fcSubnormal, fcZero, fcInf, fcNan, fcFinite, fcSNan, fcQNan})
        EXPECT_TRUE(is_compared(classes, "x86-64-v4")) << classes;
    for (const unsigned classes :
         {fcZero | fcSubnormal, fcInf | fcNan, fcNormal | fcInf, fcNan | fcZero, fcZero | fcNormal | fcInf | fcNan})
        EXPECT_TRUE(is_compared(classes, "x86-64-v2")) << classes;
}

TEST(ClassRanges, OfOneSign_OrApart_StayQuestions) {
    using namespace llvm;
    for (const unsigned classes : {fcPosNormal, fcNormal | fcPosInf, fcSubnormal | fcInf})
        EXPECT_FALSE(is_compared(classes, "x86-64-v4")) << classes;
}

}  // namespace
}  // namespace polder::compiler::test
