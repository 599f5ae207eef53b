// Which of LLVM's passes are left out for large functions. The gates' decisions are recorded while LLVM generates code: a
// pass that LLVM asks for by another name in another version is not in the record.
#include "analyses.h"
#include "machine/host.h"
#include "machine/machine_pool.h"
#include "machine/pass_options.h"
#include "targets/host/instructions/register_need.h"
#include "targets/host/pass_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <map>
#include <optional>

namespace polder::compiler::test {
namespace {

using ::testing::Contains;
using ::testing::Pair;

// A function that loads, adds and stores `statements` times, twice in a loop.
std::string function_of(unsigned statements) {
    std::string text = "define void @f(ptr %p, i64 %n) {\n"
                       "  br label %loop\n"
                       "loop:\n"
                       "  %i = phi i64 [ 0, %0 ], [ %next, %loop ]\n"
                       "  %q = getelementptr i32, ptr %p, i64 %i\n";
    for (unsigned i = 0; i < statements; ++i) {
        const std::string number = std::to_string(i);
        text += "  %l" + number + " = load volatile i32, ptr %q\n  %s" + number + " = add i32 %l" + number +
                ", 7\n  store volatile i32 %s" + number + ", ptr %q\n";
    }
    return text + "  %next = add i64 %i, 1\n"
                  "  %again = icmp ult i64 %next, %n\n"
                  "  br i1 %again, label %loop, label %end\n"
                  "end:\n"
                  "  ret void\n"
                  "}\n";
}

std::unique_ptr<llvm::Module> parse(const std::string& text, llvm::LLVMContext& context) {
    llvm::SMDiagnostic problem;
    std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
    if (module) {
        module->setTargetTriple(host().triple);
        module->setDataLayout(host().data_layout);
    }
    return module;
}

std::string emit(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream stream(object);
    llvm::legacy::PassManager passes;
    add_loop_passes(passes, machine, Reduction::on);
    EXPECT_FALSE(machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile));
    passes.run(module);
    return {object.data(), object.size()};
}

// Records what another gate decides.
class Recorder final : public llvm::OptPassGate {
public:
    explicit Recorder(const PassGate& gate) : gate_(gate) {}
    [[nodiscard]] bool isEnabled() const override { return true; }
    [[nodiscard]] bool shouldRunPass(llvm::StringRef pass, llvm::StringRef what) const override {
        return decisions[pass.str()] = gate_.shouldRunPass(pass, what);
    }

    mutable std::map<std::string, bool> decisions;

private:
    const PassGate& gate_;
};

struct Decisions {
    bool is_enabled = false;
    std::map<std::string, bool> of_passes;
};

Decisions decisions_for(unsigned statements) {
    llvm::LLVMContext context;
    MachinePool pool;
    const PooledMachine machine(pool, host());
    const std::unique_ptr<llvm::Module> module = parse(function_of(statements), context);
    if (!module)
        return {};
    const PassGate gate(*module);
    Recorder recorder(gate);
    context.setOptPassGate(recorder);
    emit(*module, *machine);
    return {gate.isEnabled(), recorder.decisions};
}

constexpr const char* strength = "Loop Strength Reduction";
constexpr const char* scheduler = "machine-scheduler";
constexpr const char* late_scheduler = "post-RA-sched";
constexpr const char* preparation = "codegenprepare";

TEST(PassGate, ForASmallFunction_RunsAll) {
    const auto [is_enabled, decisions] = decisions_for(100);
    EXPECT_FALSE(is_enabled);
    EXPECT_THAT(decisions, Contains(Pair(strength, true)));
    EXPECT_THAT(decisions, Contains(Pair(scheduler, true)));
    EXPECT_THAT(decisions, Contains(Pair(late_scheduler, true)));
}

// The next two have 1,506 instructions or more; their blocks have 1,000 accesses, and 1,002.
TEST(PassGate, ForALongBlockWithFewerAccesses_LeavesOutReductionOfStrength) {
    const auto [is_enabled, decisions] = decisions_for(500);
    EXPECT_TRUE(is_enabled);
    EXPECT_THAT(decisions, Contains(Pair(strength, false)));
    EXPECT_THAT(decisions, Contains(Pair(scheduler, true)));
    EXPECT_THAT(decisions, Contains(Pair(late_scheduler, true)));
}

TEST(PassGate, ForABlockWithMoreAccesses_LeavesOutBothSchedulers) {
    const auto [is_enabled, decisions] = decisions_for(500 + 1);
    EXPECT_TRUE(is_enabled);
    EXPECT_THAT(decisions, Contains(Pair(scheduler, false)));
    EXPECT_THAT(decisions, Contains(Pair(late_scheduler, false)));
    EXPECT_THAT(decisions, Contains(Pair(preparation, true)));
}

// Chains of four vector instructions, each with a store, of one vector. `are_summed`: all results are added at the end instead.
std::string chains_of(unsigned chains, bool are_summed) {
    std::string text = "define void @f(ptr %p) {\n  %v = load <16 x float>, ptr %p\n", sums;
    std::string sum = "%v";
    for (unsigned i = 0; i < chains; ++i) {
        const std::string number = std::to_string(i), last = "%d" + number;
        std::string operand = "%v";
        for (const char* name : {"%a", "%b", "%c", "%d"}) {
            text += std::string("  ") + name + number + " = fmul <16 x float> %v, " + operand + "\n";
            operand = name + number;
        }
        if (!are_summed)
            text += "  %q" + number + " = getelementptr <16 x float>, ptr %p, i64 " + number +
                    "\n  store <16 x float> " + last + ", ptr %q" + number + "\n";
        sums += "  %s" + number + " = fadd <16 x float> " + sum + ", " + last + "\n";
        sum = "%s" + number;
    }
    if (are_summed)
        text += sums + "  store <16 x float> " + sum + ", ptr %p\n";
    return text + "  ret void\n}\n";
}

TEST(PassGate, ForALongBlockThatFitsTheRegistersInItsOrder_LeavesOutTheScheduler) {
    const auto schedules = [](const std::string& text) {
        llvm::LLVMContext context;
        const std::unique_ptr<llvm::Module> module = parse(text, context);
        return module != nullptr && PassGate(*module).shouldRunPass(scheduler, "");
    };
    EXPECT_FALSE(schedules(chains_of(110, false)));
    EXPECT_TRUE(schedules(chains_of(90, false)));  // a short block
    EXPECT_TRUE(schedules(chains_of(110, true)));  // which needs 110 registers
}

TEST(RegisterNeed, OfManyValuesAtOnce_IsMoreThanThereAre) {
    const auto stores_registers = [](const std::string& text) {
        llvm::LLVMContext context;
        const std::unique_ptr<llvm::Module> module = parse(text, context);
        return module != nullptr && may_store_registers(*module->getFunction("f"));
    };
    EXPECT_FALSE(stores_registers(chains_of(110, false)));
    EXPECT_FALSE(stores_registers(chains_of(4, true)));
    EXPECT_TRUE(stores_registers(chains_of(40, true)));
}

TEST(PassGate, ForALongInnermostLoop_LeavesConstantsInIt) {
    for (const char* pass : {"early-machinelicm", "machinelicm"}) {
        EXPECT_THAT(decisions_for(300).of_passes, Contains(Pair(pass, true)));
        EXPECT_THAT(decisions_for(400).of_passes, Contains(Pair(pass, false)));
    }
    EXPECT_TRUE(decisions_for(400).is_enabled);
}

// Blocks of 20,000 instructions and of 20,003, without the code generator, which would take seconds.
TEST(PassGate, ForABlockThatIsTooLongToNumber_LeavesOutThePreparation) {
    const auto prepares = [](unsigned statements) {
        llvm::LLVMContext context;
        const std::unique_ptr<llvm::Module> module = parse(function_of(statements), context);
        return module != nullptr && PassGate(*module).shouldRunPass(preparation, "");
    };
    EXPECT_TRUE(prepares(6665));
    EXPECT_FALSE(prepares(6666));
}

// What LLVM asks the gate of the passes before the code generator.
std::map<std::string, bool> optimizations_for(const std::string& text) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parse(text, context);
    if (!module)
        return {};
    const OptimizationGate gate(*module);
    std::map<std::string, bool> decisions;
    llvm::PassInstrumentationCallbacks callbacks;
    callbacks.registerShouldRunOptionalPassCallback(
        [&](llvm::StringRef pass, const auto&) { return decisions[pass.str()] = gate.should_run(pass); });
    const std::unique_ptr<llvm::TargetMachine> machine = create_host_target_machine();
    llvm::PipelineTuningOptions tuning;
    tuning.SLPVectorization = true;
    llvm::PassBuilder builder(machine.get(), tuning, std::nullopt, &callbacks);
    Analyses analyses;
    analyses.register_all(builder);
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*module, analyses.modules);
    return decisions;
}
std::map<std::string, bool> optimizations_for(unsigned statements) {
    return optimizations_for(function_of(statements));
}

TEST(OptimizationGate, ForALongBlock_LeavesOutBothVectorizers) {
    const std::map<std::string, bool> few = optimizations_for(500);
    EXPECT_THAT(few, Contains(Pair("LoopVectorizePass", true)));
    EXPECT_THAT(few, Contains(Pair("SLPVectorizerPass", true)));
    const std::map<std::string, bool> many = optimizations_for(501);
    EXPECT_THAT(many, Contains(Pair("LoopVectorizePass", false)));
    EXPECT_THAT(many, Contains(Pair("SLPVectorizerPass", false)));
    EXPECT_THAT(many, Contains(Pair("GVNPass", true)));
}

// Blocks of 100 accesses and of 102.
TEST(OptimizationGate, ForABlockOfManyAccesses_LeavesOutTheEliminationOfLoads) {
    EXPECT_THAT(optimizations_for(50), Contains(Pair("LoopLoadEliminationPass", true)));
    EXPECT_THAT(optimizations_for(51), Contains(Pair("LoopLoadEliminationPass", false)));
}

// `loops` loops that follow each other in another loop. # is the number of a loop, @ of the next one.
std::string sequence_of(unsigned loops) {
    std::string text = "define void @f(ptr %p, i64 %n) {\n  br label %all\nall:\n  br label %b0\n";
    for (unsigned i = 0; i < loops; ++i)
        for (const char letter : std::string_view{
                 "b#:\n  br label %l#\nl#:\n  %i# = phi i64 [ 0, %b# ], [ %n#, %l# ]\n  store volatile i64 %i#, ptr "
                 "%p\n"
                 "  %n# = add i64 %i#, 1\n  %c# = icmp ult i64 %n#, %n\n  br i1 %c#, label %l#, label %b@\n"})
            text += letter == '#' ? std::to_string(i) : letter == '@' ? std::to_string(i + 1) : std::string{letter};
    return text + "b" + std::to_string(loops) + ":\n  %again = load volatile i1, ptr %p\n" +
           "  br i1 %again, label %all, label %done\ndone:\n  ret void\n}\n";
}

TEST(OptimizationGate, ForManyLoops_LeavesOutPassesWhoseTimeIsNotLinearInTheirNumber) {
    for (const char* pass : {"LICMPass", "LoopUnrollPass"}) {
        EXPECT_THAT(optimizations_for(sequence_of(OptimizationGate::loops_max - 1)), Contains(Pair(pass, true)));
        EXPECT_THAT(optimizations_for(sequence_of(OptimizationGate::loops_max)), Contains(Pair(pass, false)));
    }
}

// An option that another version of LLVM does not have would be left out silently.
TEST(PassOptions, AreThoseThatLlvmHas) {
    set_pass_options();
    const auto value = [](const char* name) -> std::optional<unsigned> {
        auto& options = llvm::cl::getRegisteredOptions();
        const auto found = options.find(name);
        if (found == options.end())
            return std::nullopt;
        return static_cast<llvm::cl::opt<unsigned>*>(found->second)->getValue();
    };
    EXPECT_EQ(value("dag-maps-huge-region"), 100U);
    EXPECT_EQ(value("licm-max-num-int-reassociations"), 0U);
}

// The loop of `function_of` as a loop over work-items.
std::string items_of(unsigned statements) {
    std::string text = function_of(statements);
    const std::string branch = "br i1 %again, label %loop, label %end";
    text.insert(text.find(branch) + branch.size(), ", !llvm.loop !0");
    return text + "!0 = distinct !{!0, !1}\n!1 = !{!\"polder.items\"}\n";
}

TEST(OptimizationGate, ForASmallFunctionWithLoopsOverWorkItemsOnly_LeavesOutPassesForOtherLoops) {
    const auto other = [](const std::string& before, const std::string& attributes) {
        std::string text = function_of(3);
        text.replace(text.find("define void @f("), 15, "define " + before + "void @g(");
        return text.replace(text.find(") {"), 3, ") " + attributes + "{");
    };
    const auto calling = [](std::string text) {
        return text.insert(text.find("  ret void"), "  call void @g(ptr %p, i64 %n)\n");
    };
    constexpr unsigned many = OptimizationGate::plain_instructions_max / 3;
    for (const char* pass : {"LoopIdiomRecognizePass", "BDCEPass", "IPSCCPPass", "SCCPPass"}) {
        for (const std::string& plain : {items_of(3), items_of(3) + other("internal ", ""),
                                         calling(items_of(3)) + other("internal ", "cold noinline ")})
            EXPECT_THAT(optimizations_for(plain), Contains(Pair(pass, false))) << plain;
        for (const std::string& with_loops : {function_of(3), items_of(3) + other("", ""),
                                              calling(items_of(3)) + other("internal ", "noinline "), items_of(many)})
            EXPECT_THAT(optimizations_for(with_loops), Contains(Pair(pass, true))) << with_loops;
    }
    for (const char* pass : {"GVNPass", "SimpleLoopUnswitchPass", "LICMPass", "LoopVectorizePass", "SLPVectorizerPass"})
        EXPECT_THAT(optimizations_for(items_of(3)), Contains(Pair(pass, true)));
}

// Two loops around another one. `use`: an instruction of the innermost loop; `inner`: where it goes on from its end.
std::string rows_of(const std::string& tag, const std::string& use, const std::string& again) {
    return "define void @f(ptr %p, i64 %n, i1 %c) {\n  br label %y\n"
           "y:\n  %id = phi i64 [ 0, %0 ], [ %id.next, %y.next ]\n  br label %x\n"
           "x:\n  %i = phi i64 [ 0, %y ], [ %i.next, %x.next ]\n  br label %body\n"
           "body:\n  " +
           use + "\n  br i1 %c, label %" + again +
           ", label %x.next\n"
           "x.next:\n  %i.next = add i64 %i, 1\n  %more = icmp ult i64 %i.next, %n\n  br i1 %more, label %x, label "
           "%y.next\n"
           "y.next:\n  %id.next = add i64 %id, 1\n  %rows = icmp ult i64 %id.next, %n\n"
           "  br i1 %rows, label %y, label %end, !llvm.loop !0\n"
           "end:\n  ret void\n}\n!0 = distinct !{!0, !1}\n!1 = !{!\"" +
           tag + "\"}\n";
}

bool leads_conditions_out_of(const std::string& text) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parse(text, context);
    EXPECT_NE(module, nullptr);
    if (!module)
        return false;
    const OptimizationGate gate(*module);
    const llvm::DominatorTree dominators(*module->getFunction("f"));
    const llvm::LoopInfo loops(dominators);
    EXPECT_TRUE(gate.should_run("LICMPass", **loops.begin()));
    EXPECT_TRUE(gate.should_run("SimpleLoopUnswitchPass", *(*loops.begin())->getSubLoops().front()));
    return gate.should_run("SimpleLoopUnswitchPass", **loops.begin());
}

TEST(OptimizationGate, ConditionsStayInALoopOverRowsThatHasMostOftenOneRound) {
    const std::string store = "store i64 %i, ptr %p";
    EXPECT_FALSE(leads_conditions_out_of(rows_of("polder.single_row", store, "x.next")));
    EXPECT_TRUE(leads_conditions_out_of(rows_of("another.tag", store, "x.next")));
    EXPECT_TRUE(
        leads_conditions_out_of(rows_of("polder.single_row", "store i64 %id, ptr %p", "x.next")));  // has many rows
    EXPECT_TRUE(leads_conditions_out_of(rows_of("polder.single_row", store, "body")));  // has a loop inside
}

#if defined(__x86_64__)
TEST(Host, Features_AreThoseThatTheNameOfItsProcessorDoesNotImply) {
    Host other = host();
    other.features.clear();
    const auto named = create_target_machine(other);
    for (const llvm::StringRef feature : llvm::split(host().features, ","))
        EXPECT_FALSE(named->getMCSubtargetInfo()->checkFeatures(feature)) << feature.str();
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
        other.features += (feature.second ? "+" : "-") + feature.first().str() + ",";
    other.features += "-sse4a";
    EXPECT_TRUE(create_host_target_machine()->getMCSubtargetInfo()->getFeatureBits() ==
                create_target_machine(other)->getMCSubtargetInfo()->getFeatureBits());
}
#endif

TEST(MachinePool, AMachineThatWasReturned_IsUsedAgainForTheSameTargetAlone) {
    MachinePool pool;
    EmittingMachine machine = pool.take(host());
    const llvm::TargetMachine* const first = machine.get();
    pool.put(std::move(machine));
    Host other = host();
    other.features.clear();
    const EmittingMachine others = pool.take(other);
    EXPECT_NE(others.get(), first);
    EXPECT_EQ(others->getTargetFeatureString(), "");
    EXPECT_EQ(pool.take(host()).get(), first);
}

TEST(MachinePool, MachinesWithoutOptimisation_AndThoseOfFailedCompilations_AreNotUsedAgain) {
    MachinePool pool;
    const llvm::TargetMachine* first = nullptr;
    // A machine of the same size often gets the address of one that was destroyed, so others are kept meanwhile.
    std::vector<EmittingMachine> others;
    {
        const PooledMachine machine(pool, host());
        machine->setOptLevel(llvm::CodeGenOptLevel::None);
    }
    others.push_back(pool.take(host()));
    EXPECT_EQ(others.back()->getOptLevel(), llvm::CodeGenOptLevel::Default);
    pool.put(std::move(others.back()));
    others.pop_back();
    try {
        const PooledMachine machine(pool, host());
        machine->Options.EmitStackSizeSection = false;
        first = &*machine;
        throw 0;
    } catch (int) {
    }
    EXPECT_NE(first, nullptr);
    EXPECT_TRUE(pool.take(host())->Options.EmitStackSizeSection);
}

TEST(MachinePool, MachinesOfEachLevel_AreKeptForThisLevel) {
    MachinePool pool;
    const llvm::TargetMachine* quick = nullptr;
    {
        const PooledMachine machine(pool, host(), llvm::CodeGenOptLevel::None);
        quick = &*machine;
    }
    const EmittingMachine other = pool.take(host());
    EXPECT_NE(other.get(), quick);
    EXPECT_EQ(other->getOptLevel(), llvm::CodeGenOptLevel::Default);
    EXPECT_EQ(pool.take(host(), llvm::CodeGenOptLevel::None).get(), quick);
}

TEST(MachinePool, KeepsAFewMachines_AndNoneAfterClear) {
    MachinePool pool;
    std::vector<EmittingMachine> machines;
    for (size_t i = 0; i <= MachinePool::size_max; ++i) {
        machines.push_back(pool.take(host()));
        machines.back()->Options.EmitStackSizeSection = false;  // marks the machines of this test
    }
    for (auto& machine : machines)
        pool.put(std::move(machine));
    const auto kept = [&] {
        size_t count = 0;
        std::vector<EmittingMachine> taken;
        for (size_t i = 0; i <= MachinePool::size_max; ++i) {
            taken.push_back(pool.take(host()));
            count += taken.back()->Options.EmitStackSizeSection ? 0 : 1;
        }
        for (auto& machine : taken)
            pool.put(std::move(machine));
        return count;
    };
    EXPECT_EQ(kept(), MachinePool::size_max);
    pool.clear();
    EXPECT_EQ(kept(), 0u);
}

// A machine keeps what it computed of each set of features, and what it or its code generator knows of a module must not enter the code of the
// next. The modules have constants in memory, a table of jumps, several functions, calls, and long blocks.
std::vector<std::string> modules_of_many_kinds() {
    const std::string narrow =
        "define <8 x float> @g(<8 x float> %a) #0 {\n  %r = fmul <8 x float> %a, %a\n  ret <8 x float> %r\n}\n"
        "attributes #0 = { \"target-features\"=\"-avx,-avx2,-avx512f\" }\n";
    const std::string constants =
        "@table = internal constant [4 x float] [float 1.0, float 2.5, float 7.0, float 0.5]\n"
        "declare float @outside(float)\n"
        "define internal float @callee(float %a) noinline {\n"
        "  %b = call float @outside(float %a)\n  %c = fmul float %b, 0x3FE62E4300000000\n"
        "  ret float %c\n}\n"
        "define float @f(i64 %i) {\n  %p = getelementptr float, ptr @table, i64 %i\n"
        "  %a = load float, ptr %p\n  %b = call float @callee(float %a)\n"
        "  %v = alloca [64 x float], align 64\n  store volatile float %b, ptr %v\n"
        "  %c = fadd float %b, 0x3F55F48960000000\n  ret float %c\n}\n";
    std::string jumps = "define i32 @f(i32 %x, ptr %p) {\n  switch i32 %x, label %none [\n";
    std::string blocks;
    for (int i = 0; i < 12; ++i) {
        const std::string number = std::to_string(i);
        jumps += "    i32 " + number + ", label %b" + number + "\n";
        blocks += "b" + number + ":\n  store volatile i32 " + std::to_string(i * i * 7 + 1) + ", ptr %p\n  ret i32 " +
                  std::to_string(i * 31 % 13) + "\n";
    }
    jumps += "  ]\nnone:\n  ret i32 0\n" + blocks + "}\n";
    return {narrow, function_of(3), constants, jumps, function_of(501), constants, function_of(20)};
}

TEST(MachinePool, TheCodeOfAUsedMachine_IsThatOfANewOne) {
    MachinePool pool;
    const EmittingMachine used = pool.take(host());
    for (const std::string& text : modules_of_many_kinds()) {
        const EmittingMachine fresh{create_host_target_machine()};
        std::vector<std::string> objects;
        for (const EmittingMachine* machine : {&used, &fresh}) {
            llvm::LLVMContext context;
            const std::unique_ptr<llvm::Module> module = parse(text, context);
            ASSERT_NE(module, nullptr) << text;
            PassGate gate(*module);
            context.setOptPassGate(gate);
            objects.push_back(machine->emitter().emit(*module).value_or(""));
        }
        EXPECT_EQ(objects[0], objects[1]) << text;
        EXPECT_FALSE(objects[0].empty());
    }
}

TEST(ObjectEmitter, ItsListOfPassesServesManyModules_OfOneLevel_WithoutDebugInformation) {
    const EmittingMachine machine{create_host_target_machine()};
    const auto lists_made_after = [&](const std::string& text) {
        llvm::LLVMContext context;
        EXPECT_TRUE(machine.emitter().emit(*parse(text, context)));
        return machine.emitter().lists_made();
    };
    EXPECT_EQ(lists_made_after(function_of(3)), 1U);
    EXPECT_EQ(lists_made_after(function_of(7)), 1U);
    const std::string debug = "define void @f() {\n  ret void\n}\n!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2}\n"
                              "!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)\n"
                              "!1 = !DIFile(filename: \"a.cl\", directory: \"/\")\n"
                              "!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n";
    EXPECT_EQ(lists_made_after(debug), 2U);
    EXPECT_EQ(lists_made_after(debug), 3U);
    EXPECT_EQ(lists_made_after(function_of(9)), 3U);
    machine->setOptLevel(llvm::CodeGenOptLevel::None);
    EXPECT_EQ(lists_made_after(function_of(9)), 4U);
}

}  // namespace
}  // namespace polder::compiler::test
