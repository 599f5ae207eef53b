// Neighbouring statements that load from unrelated places: whether LLVM joins them with a gather.
#include "analyses.h"
#include "machine/host.h"
#include "machine/machine_pool.h"
#include "targets/host/instructions/scattered_loads.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

namespace polder::compiler::test {
namespace {

// out[i] = table[n[i] & 255] ^ table[n[i] >> 8 & 255] for eight i.
std::string lookups() {
    std::string text = "define void @f(ptr noalias %out, ptr noalias %n, ptr noalias readonly %table) {\n";
    for (unsigned i = 0; i < 8; ++i) {
        const std::string s = std::to_string(i);
        text += "  %pn" + s + " = getelementptr i64, ptr %n, i64 " + s + "\n  %n" + s + " = load i64, ptr %pn" + s +
                "\n  %a" + s + " = and i64 %n" + s + ", 255\n  %r" + s + " = lshr i64 %n" + s + ", 8\n  %b" + s +
                " = and i64 %r" + s + ", 255\n  %pa" + s + " = getelementptr i64, ptr %table, i64 %a" + s + "\n  %pb" +
                s + " = getelementptr i64, ptr %table, i64 %b" + s + "\n  %la" + s + " = load i64, ptr %pa" + s +
                "\n  %lb" + s + " = load i64, ptr %pb" + s + "\n  %x" + s + " = xor i64 %la" + s + ", %lb" + s +
                "\n  %po" + s + " = getelementptr i64, ptr %out, i64 " + s + "\n  store i64 %x" + s + ", ptr %po" + s +
                "\n";
    }
    return text + "  ret void\n}\n";
}

struct Joined {
    unsigned gathers = 0;
    std::string features;  // the function's attribute afterwards
};

enum class Loads { as_llvm_likes, kept };

Joined join(Loads loads, const std::string& processor) {
    llvm::LLVMContext context;
    MachinePool pool;
    Host target = host();
    target.cpu = processor;
    target.features.clear();
    const PooledMachine machine(pool, target);
    llvm::SMDiagnostic problem;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(lookups(), problem, context);
    EXPECT_NE(module, nullptr) << problem.getMessage().str();
    module->setTargetTriple(host().triple);
    module->setDataLayout(host().data_layout);
    llvm::Function& function = *module->getFunction("f");
    function.addFnAttr("target-features", "+bmi");

    llvm::PassInstrumentationCallbacks callbacks;
    llvm::PassBuilder builder(&*machine, {}, std::nullopt, &callbacks);
    Analyses analyses;
    analyses.register_all(builder);
    if (loads == Loads::kept)
        keep_scattered_loads(callbacks, analyses.functions, *machine);
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SLPVectorizerPass());
    passes.run(function, analyses.functions);

    Joined joined{.features = function.getFnAttribute("target-features").getValueAsString().str()};
    for (const llvm::Instruction& instruction : llvm::instructions(function))
        if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
            joined.gathers += call->getIntrinsicID() == llvm::Intrinsic::masked_gather ? 1 : 0;
    return joined;
}

#ifdef __x86_64__
TEST(ScatteredLoads, StayWhereGathersAreSlow) {
    ASSERT_GT(join(Loads::as_llvm_likes, "znver4").gathers, 0U);
    EXPECT_EQ(join(Loads::kept, "znver4").gathers, 0U);
}

TEST(ScatteredLoads, AreGatheredWhereThatIsQuick) { EXPECT_GT(join(Loads::kept, "sapphirerapids").gathers, 0U); }

// The code generator would split the gathers of lanes, too.
TEST(ScatteredLoads, LeaveTheFunctionsFeatures) { EXPECT_EQ(join(Loads::kept, "znver4").features, "+bmi"); }
#endif

}  // namespace
}  // namespace polder::compiler::test
