// Where the addresses of lanes are taken out of their vectors. Results are tested by LocalAtomics.
#include "targets/host/instructions/lane_addresses.h"

#include <functional>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::test {
namespace {

constexpr unsigned lanes = 16;

// The code of a function with the body `text`, behind the pass. %places are addresses, %bins are indices of a table.
std::string after_pass(const std::string& text) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic error;
    const auto module = llvm::parseAssemblyString(
        "define void @f(<16 x ptr> %places, <16 x i8> %bins, ptr %table, <16 x i1> %mask) {\n" + text + "}\n", error,
        context);
    if (module == nullptr)
        return ADD_FAILURE() << error.getMessage().str() << text, "";
    llvm::Function& function = *module->getFunction("f");
    take_addresses_first(function);
    std::string result;
    llvm::raw_string_ostream out(result);
    EXPECT_FALSE(llvm::verifyFunction(function, &out)) << result;
    out << function;
    return result;
}

std::string number(unsigned value) { return std::to_string(value); }

std::string change_at(const std::string& address, const std::string& lane) {
    return "%old" + lane + " = load i32, ptr " + address + "\n%new" + lane + " = add i32 %old" + lane +
           ", 1\nstore i32 %new" + lane + ", ptr " + address + "\n";
}

std::string in_all_lanes(const std::function<std::string(unsigned lane, const std::string& name)>& of_lane) {
    std::string text;
    for (unsigned lane = 0; lane < lanes; ++lane)
        text += of_lane(lane, number(lane));
    return text;
}

void expect_addresses_first(const std::string& code) {
    EXPECT_LT(code.rfind("asm sideeffect \"\", \"=r,0\""), code.find("load i32")) << code;
    size_t count = 0;
    for (size_t at = code.find("asm sideeffect"); at != std::string::npos; at = code.find("asm sideeffect", at + 1))
        ++count;
    EXPECT_EQ(count, lanes) << code;
}

TEST(LaneAddresses, OfChangesAreTakenBeforeTheFirstChange) {
    expect_addresses_first(after_pass(in_all_lanes([](unsigned, const std::string& lane) {
                                          return "%p" + lane + " = extractelement <16 x ptr> %places, i64 " + lane +
                                                 "\n" + change_at("%p" + lane, lane);
                                      }) +
                                      "ret void\n"));
}

TEST(LaneAddresses, OfIndicesAreTakenBeforeTheFirstChange) {
    expect_addresses_first(after_pass(in_all_lanes([](unsigned, const std::string& lane) {
                                          return "%b" + lane + " = extractelement <16 x i8> %bins, i64 " + lane +
                                                 "\n%i" + lane + " = zext i8 %b" + lane + " to i64\n%p" + lane +
                                                 " = getelementptr i32, ptr %table, i64 %i" + lane + "\n" +
                                                 change_at("%p" + lane, lane);
                                      }) +
                                      "ret void\n"));
}

TEST(LaneAddresses, OfMaskedLanesAreTakenBeforeTheFirstBranch) {
    expect_addresses_first(after_pass(in_all_lanes([](unsigned, const std::string& lane) {
                                          return "%is" + lane + " = extractelement <16 x i1> %mask, i64 " + lane +
                                                 "\nbr i1 %is" + lane + ", label %lane" + lane + ", label %done" +
                                                 lane + "\nlane" + lane + ":\n%p" + lane +
                                                 " = extractelement <16 x ptr> %places, i64 " + lane + "\n" +
                                                 change_at("%p" + lane, lane) + "br label %done" + lane + "\ndone" +
                                                 lane + ":\n";
                                      }) +
                                      "ret void\n"));
}

TEST(LaneAddresses, OfLoadsOrStoresAloneStay) {
    const std::string code = after_pass(in_all_lanes([](unsigned index, const std::string& lane) {
                                            return "%p" + lane + " = extractelement <16 x ptr> %places, i64 " + lane +
                                                   "\n" +
                                                   (index % 2 == 0 ? "store i32 7, ptr %p" + lane + "\n"
                                                                   : "%v" + lane + " = load i32, ptr %p" + lane + "\n");
                                        }) +
                                        "ret void\n");
    EXPECT_EQ(code.find("asm"), std::string::npos) << code;
}

}  // namespace
}  // namespace polder::compiler::test
