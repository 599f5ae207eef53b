// The "or" and "and" of the elements of vectors of three, behind the pass that makes them operations on numbers.
#include "parsed_ir.h"
#include "targets/host/instructions/joined_elements.h"

#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <string>

namespace polder::compiler::test {
namespace {

std::string after_pass(const std::string& body) {
    llvm::LLVMContext context;
    const auto module = parsed("define i16 @f(ptr %p, i16 %x, <3 x i16> %y, i64 %at) {\n" + body + "}\n", context);
    if (!module)
        return "";
    llvm::Function& function = *module->getFunction("f");
    join_elements_as_numbers(function);
    std::string text;
    llvm::raw_string_ostream out(text);
    EXPECT_FALSE(llvm::verifyFunction(function, &out)) << text;
    out << function;
    return text.substr(text.find('{'));
}

unsigned count_of(const std::string& part, const std::string& text) {
    unsigned count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

std::string joined(const std::string& operation, const std::string& vector) {
    return "%r = call i16 @llvm.vector.reduce." + operation + ".v3i16(<3 x i16> " + vector + ")\nret i16 %r\n";
}

// As LLVM leaves any() of a loaded vector: the last two at once.
TEST(JoinedElements, OfLoadedNumbers_AreNumbers) {
    for (const std::string operation : {"or", "and"}) {
        const std::string code =
            after_pass("%a = load i16, ptr %p, align 4\n%next = getelementptr i16, ptr %p, i64 1\n"
                       "%two = load <2 x i16>, ptr %next, align 2\n"
                       "%one = insertelement <3 x i16> poison, i16 %a, i64 0\n"
                       "%wide = shufflevector <2 x i16> %two, <2 x i16> poison, <3 x i32> <i32 0, i32 1, i32 poison>\n"
                       "%all = shufflevector <3 x i16> %one, <3 x i16> %wide, <3 x i32> <i32 0, i32 3, i32 4>\n" +
                       joined(operation, "%all"));
        EXPECT_EQ(count_of(" x i16>", code), 0U) << code;
        EXPECT_EQ(count_of("load i16", code), 3U) << code;
        EXPECT_EQ(count_of(operation + " i16", code), 2U) << code;
        EXPECT_EQ(count_of("i64 1", code), 2U) << code;
    }
}

TEST(JoinedElements, OfALoadedVector_AreLoadedOneByOne) {
    const std::string code = after_pass("%v = load <3 x i16>, ptr %p, align 8\n" + joined("or", "%v"));
    EXPECT_EQ(count_of("load i16", code), 3U) << code;
    EXPECT_EQ(count_of("align 8", code), 1U) << code;
    EXPECT_EQ(count_of("align 4", code), 1U) << code;
}

TEST(JoinedElements, OfOtherVectors_AreTakenOut) {
    for (const std::string before : {
             "%v = add <3 x i16> %y, splat (i16 3)\n",
             "%v = load volatile <3 x i16>, ptr %p, align 2\n",
             "%v = load <3 x i16>, ptr %p, align 2\nstore <3 x i16> %v, ptr %p, align 2\n",  // used as a whole
             "%v = insertelement <3 x i16> %y, i16 %x, i64 %at\n",  // at a computed place
         }) {
        const std::string code = after_pass(before + joined("and", "%v"));
        EXPECT_EQ(count_of("extractelement <3 x i16>", code), 3U) << code;
        EXPECT_EQ(count_of("load i16", code), 0U) << code;
    }
}

TEST(JoinedElements, OfOtherLengthsAndOperations_Stay) {
    for (const std::string body : {
             "%r = call i16 @llvm.vector.reduce.add.v3i16(<3 x i16> %y)\nret i16 %r\n",
             "%v = load <4 x i16>, ptr %p\n%r = call i16 @llvm.vector.reduce.or.v4i16(<4 x i16> %v)\nret i16 %r\n",
             "%v = load <3 x i1>, ptr %p\n%r = call i1 @llvm.vector.reduce.or.v3i1(<3 x i1> %v)\n"
             "%wide = zext i1 %r to i16\nret i16 %wide\n",
         }) {
        const std::string code = after_pass(body);
        EXPECT_EQ(count_of("llvm.vector.reduce", code), 1U) << code;
        EXPECT_EQ(count_of("extractelement", code), 0U) << code;
    }
}

}  // namespace
}  // namespace polder::compiler::test
