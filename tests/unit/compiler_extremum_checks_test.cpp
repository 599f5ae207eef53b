// Atomic minima and maxima that compare first (extremum_checks.h): which ones do, and the value that they return.
#include "parsed_ir.h"
#include "targets/host/instructions/extremum_checks.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>

namespace polder::compiler::test {
namespace {

// The comparison before the operation; its second operand is what the memory holds. Null where there is none.
const llvm::CmpInst* comparison_before(const std::string& operation, const std::string& type, const std::string& order,
                                       llvm::LLVMContext& context, std::unique_ptr<llvm::Module>& module) {
    module = parsed("define " + type + " @f(ptr %p, " + type + " %v) {\n%old = atomicrmw volatile " + operation +
                        " ptr %p, " + type + " %v " + order + "\nret " + type + " %old\n}\n",
                    context);
    if (!module)
        return nullptr;
    llvm::Function& function = *module->getFunction("f");
    check_extrema(function);
    EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (const auto* const comparison = llvm::dyn_cast<llvm::CmpInst>(&instruction)) {
            const auto* const held = llvm::dyn_cast<llvm::LoadInst>(comparison->getOperand(1));
            EXPECT_TRUE(held != nullptr && held->isAtomic() && held->isVolatile());
            const auto* const old = llvm::dyn_cast<llvm::PHINode>(function.back().getTerminator()->getOperand(0));
            EXPECT_TRUE(old != nullptr && old->getIncomingValueForBlock(&function.getEntryBlock()) == held);
            return comparison;
        }
    return nullptr;
}

TEST(ExtremumChecks, OfRelaxedOperations_AskWhetherTheValueChanges) {
    const std::tuple<const char*, const char*, llvm::CmpInst::Predicate> operations[] = {
        {"min", "i32", llvm::CmpInst::ICMP_SLT},    {"max", "i64", llvm::CmpInst::ICMP_SGT},
        {"umin", "i32", llvm::CmpInst::ICMP_ULT},   {"umax", "i32", llvm::CmpInst::ICMP_UGT},
        {"fmin", "float", llvm::CmpInst::FCMP_ULT}, {"fmax", "double", llvm::CmpInst::FCMP_UGT}};
    for (const auto& [operation, type, predicate] : operations)
        for (const char* const order : {"monotonic", "acquire"}) {
            llvm::LLVMContext context;
            std::unique_ptr<llvm::Module> module;
            const llvm::CmpInst* const comparison = comparison_before(operation, type, order, context, module);
            ASSERT_NE(comparison, nullptr) << operation;
            EXPECT_EQ(comparison->getPredicate(), predicate) << operation;
        }
}

// What another work-item wrote before must be seen behind such an operation, even if it changes nothing.
TEST(ExtremumChecks, OfOperationsThatRelease_AreNotMade) {
    for (const char* const order : {"release", "acq_rel", "seq_cst"}) {
        llvm::LLVMContext context;
        std::unique_ptr<llvm::Module> module;
        EXPECT_EQ(comparison_before("max", "i32", order, context, module), nullptr) << order;
    }
}

TEST(ExtremumChecks, OfOtherOperations_AreNotMade) {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    EXPECT_EQ(comparison_before("add", "i32", "monotonic", context, module), nullptr);
}

}  // namespace
}  // namespace polder::compiler::test
