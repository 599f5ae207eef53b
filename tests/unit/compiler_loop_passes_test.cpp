// Which passes run for loops (those over work-items where there are many, and the reduction of strength in large modules), and for long code without any.
#include "analyses.h"
#include "machine/host.h"
#include "machine/machine_pool.h"
#include "machine/pass_options.h"
#include "parsed_ir.h"
#include "targets/host/loops/finished_loops.h"
#include "targets/host/pass_gate.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <gmock/gmock.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Pass.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Utils.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <map>
#include <memory>
#include <regex>
#include <vector>

namespace polder::compiler::test {
namespace {

// `count` loops, one after the other, each with `stores` stores to a row.
std::string loops(unsigned count, unsigned stores = 1) {
    std::string text = "define void @f(ptr %p, i64 %n) {\n  br label %loop0\n";
    for (unsigned i = 0; i < count; ++i) {
        const std::string own = std::to_string(i), next = i + 1 == count ? "end" : "loop" + std::to_string(i + 1);
        text += "loop" + own + ":\n  %i" + own + " = phi i64 [ 0, " +
                (i == 0 ? "%0" : "%loop" + std::to_string(i - 1)) + " ], [ %n" + own + ", %loop" + own + " ]\n";
        for (unsigned k = 0; k < stores; ++k) {
            const std::string place = "%p" + own + "." + std::to_string(k);
            text += "  " + place + " = getelementptr [1000 x i32], ptr %p, i64 %i" + own + ", i64 " +
                    std::to_string(7 * k) + "\n  store i32 5, ptr " + place + "\n";
        }
        text += "  %n" + own + " = add i64 %i" + own + ", 1\n  %c" + own + " = icmp eq i64 %n" + own +
                ", %n\n  br i1 %c" + own + ", label %" + next + ", label %loop" + own + "\n";
    }
    return text + "end:\n  ret void\n}\n";
}

// How many loops over work-items, which every second one is, and how many others `pass` may run for.
std::pair<int, int> loops_left_to(llvm::StringRef pass, unsigned count) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(loops(count), context);
    if (!module)
        return {};
    llvm::DominatorTree dominators(*module->getFunction("f"));
    const llvm::LoopInfo found(dominators);
    std::pair<int, int> left;
    bool is_over_items = false;
    const auto all = found.getLoopsInPreorder();
    for (llvm::Loop* const loop : all) {
        is_over_items = !is_over_items;
        if (is_over_items)
            llvm::addStringMetadataToLoop(loop, workgroup::items_tag);
    }
    const OptimizationGate gate(*module);
    for (const llvm::Loop* const loop : all)
        if (gate.should_run(pass, *loop))
            ++(llvm::findOptionMDForLoop(loop, workgroup::items_tag) != nullptr ? left.first : left.second);
    return left;
}

// Independent sums.
std::string sums(unsigned instructions) {
    std::string text = "define void @f(i32 %x) {\n";
    for (unsigned i = 1; i < instructions; ++i)
        text += "  %v" + std::to_string(i) + " = add i32 %x, " + std::to_string(i) + "\n";
    return text + "  ret void\n}\n";
}

TEST(OptimizationGate, ForLongCodeInLanes_LeavesOutTheJoiningOfStatements) {
    const auto joins = [](unsigned instructions, bool has_lanes) {
        llvm::LLVMContext context;
        const auto module = parsed(sums(instructions), context);
        return module != nullptr && OptimizationGate(*module).joins_statements(has_lanes);
    };
    constexpr unsigned most = OptimizationGate::joined_instructions_max;
    EXPECT_TRUE(joins(most, true));
    EXPECT_FALSE(joins(most + 1, true));
    EXPECT_TRUE(joins(most + 1, false));
}

// What the gate of a module of so many instructions decides for the passes of LLVM's pipeline, and for the rounds of InstCombine, one after the other.
struct Optimizations {
    std::map<std::string, bool> passes;
    std::vector<bool> rounds;
};

Optimizations optimizations_of(unsigned instructions, bool has_lanes) {
    llvm::LLVMContext context;
    const auto module = parsed(sums(instructions), context);
    if (!module)
        return {};
    OptimizationGate gate(*module, has_lanes);
    Optimizations result;
    llvm::PassInstrumentationCallbacks callbacks;
    callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef pass, const llvm::Any& what) {
        const auto* const function = llvm::any_cast<const llvm::Function*>(&what);
        if (pass == "InstCombinePass" && function != nullptr)
            result.rounds.push_back(gate.should_combine(**function));
        return result.passes[pass.str()] = gate.should_run(pass);
    });
    const std::unique_ptr<llvm::TargetMachine> machine = create_host_target_machine();
    llvm::PassBuilder builder(machine.get(), {}, std::nullopt, &callbacks);
    Analyses analyses;
    analyses.register_all(builder);
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*module, analyses.modules);
    return result;
}

TEST(OptimizationGate, ForLongCodeInLanes_LeavesOutPassesThatFindNothing) {
    constexpr unsigned most = OptimizationGate::settled_instructions_min;
    const Optimizations few = optimizations_of(most, true), many = optimizations_of(most + 1, true),
                        without = optimizations_of(most + 1, false);
    for (const char* pass :
         {"BDCEPass", "CalledValuePropagationPass", "ConstraintEliminationPass", "Float2IntPass", "IPSCCPPass",
          "JumpThreadingPass", "LibCallsShrinkWrapPass", "MergedLoadStoreMotionPass", "SCCPPass", "TailCallElimPass"}) {
        EXPECT_THAT(few.passes, ::testing::Contains(::testing::Pair(pass, true)));
        EXPECT_THAT(many.passes, ::testing::Contains(::testing::Pair(pass, false)));
        EXPECT_THAT(without.passes, ::testing::Contains(::testing::Pair(pass, true)));
    }
    EXPECT_EQ(many.rounds, (std::vector<bool>{true, true, true, false, true, true, false, true}));
    EXPECT_EQ(few.rounds, std::vector<bool>(8, true));
    EXPECT_EQ(without.rounds, std::vector<bool>(8, true));
}

TEST(PassGate, ForLongCode_LeavesOutTheLateScheduler) {
    const auto schedules = [](llvm::StringRef pass, unsigned instructions) {
        llvm::LLVMContext context;
        const auto module = parsed(sums(instructions), context);
        return module != nullptr && PassGate(*module).shouldRunPass(pass, "f");
    };
    constexpr unsigned most = PassGate::scheduled_again_instructions_max;
    EXPECT_TRUE(schedules("post-RA-sched", most));
    EXPECT_FALSE(schedules("post-RA-sched", most + 1));
    EXPECT_TRUE(schedules("machine-scheduler", most + 1));
}

TEST(OptimizationGate, ForManyLoops_LeavesOutPassesForThoseOverWorkItems) {
    for (const char* pass : {"IndVarSimplifyPass", "LoopDeletionPass", "LoopIdiomRecognizePass"}) {
        EXPECT_EQ(loops_left_to(pass, 20), std::pair(10, 10)) << pass;
        EXPECT_EQ(loops_left_to(pass, 60), std::pair(0, 30)) << pass;
    }
    EXPECT_EQ(loops_left_to("LoopRotatePass", 60), std::pair(30, 30));
}

// Loops over work-items in a row, each in a loop over rows that depends on the row, or in another loop. `statement`: what a work-item does in row %r0, %r1, ...
std::pair<int, int> rows_and_items_left_to(llvm::StringRef pass, unsigned count, bool is_over_rows,
                                           const std::string& statement = "store i64 %rN, ptr %p",
                                           const std::string& rows = "%n") {
    std::string text = "define void @f(ptr %p, i64 %n) {\n  br label %y0\n";
    for (unsigned i = 0; i < count; ++i) {
        const std::string own = std::to_string(i), next = i + 1 == count ? "end" : "y" + std::to_string(i + 1);
        const std::string before = i == 0 ? "%0" : "%z" + std::to_string(i - 1);
        text += "y" + own + ":\n  %r" + own + " = phi i64 [ 0, " + before + " ], [ %s" + own + ", %z" + own +
                " ]\n  br label %x" + own + "\nx" + own + ":\n  %i" + own + " = phi i64 [ 0, %y" + own + " ], [ %n" +
                own + ", %x" + own + " ]\n  " + std::regex_replace(statement, std::regex("N"), own) + "\n  %n" + own +
                " = add i64 %i" + own + ", 1\n  %c" + own + " = icmp eq i64 %n" + own + ", %n\n  br i1 %c" + own +
                ", label %z" + own + ", label %x" + own + "\nz" + own + ":\n  %s" + own + " = add i64 %r" + own +
                ", 1\n  %d" + own + " = icmp eq i64 %s" + own + ", " + rows + "\n  br i1 %d" + own + ", label %" +
                next + ", label %y" + own + "\n";
    }
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(text + "end:\n  ret void\n}\n", context);
    if (!module)
        return {};
    llvm::DominatorTree dominators(*module->getFunction("f"));
    const llvm::LoopInfo found(dominators);
    const auto all = found.getLoopsInPreorder();
    for (llvm::Loop* const loop : all)
        if (loop->isInnermost() || is_over_rows)
            llvm::addStringMetadataToLoop(loop, workgroup::items_tag);
    const OptimizationGate gate(*module);
    std::pair<int, int> left;
    for (const llvm::Loop* const loop : all)
        if (gate.should_run(pass, *loop))
            ++(loop->isInnermost() ? left.second : left.first);
    return left;
}

TEST(OptimizationGate, ForManyLoops_LeavesConditionsInLoopsOverRows) {
    constexpr const char* unswitching = "SimpleLoopUnswitchPass";
    EXPECT_EQ(rows_and_items_left_to(unswitching, 20, true), std::pair(20, 20));
    EXPECT_EQ(rows_and_items_left_to(unswitching, 30, true), std::pair(0, 30));
    EXPECT_EQ(rows_and_items_left_to(unswitching, 30, false), std::pair(30, 30));
    EXPECT_EQ(rows_and_items_left_to("IndVarSimplifyPass", 20, true), std::pair(20, 20));
    EXPECT_EQ(rows_and_items_left_to("IndVarSimplifyPass", 30, true), std::pair(0, 0));
}

// Rows that may be deleted have no effect, or one iteration.
TEST(OptimizationGate, ForManyLoops_LeavesOutTheDeletionOfRowsThatHaveToRun) {
    constexpr const char* deletion = "LoopDeletionPass";
    EXPECT_EQ(rows_and_items_left_to(deletion, 20, true), std::pair(20, 20));
    EXPECT_EQ(rows_and_items_left_to(deletion, 30, true), std::pair(0, 0));
    EXPECT_EQ(rows_and_items_left_to(deletion, 30, true, "%oddN = and i64 %rN, 1"), std::pair(30, 0));
    EXPECT_EQ(rows_and_items_left_to(deletion, 30, true, "store i64 %rN, ptr %p", "1"), std::pair(30, 0));
    EXPECT_EQ(rows_and_items_left_to(deletion, 30, false), std::pair(30, 0));
}

// How many of `count` loops are marked as finished, if each second one stores vectors.
int finished_of(unsigned count, unsigned loops_min) {
    std::string text = loops(count);
    const std::string store = "store i32 5";
    size_t at = 0;
    for (unsigned i = 0; (at = text.find(store, at)) != std::string::npos; ++i, at += store.size())
        if (i % 2 == 0)
            text.replace(at, store.size(), "store <4 x i32> zeroinitializer");
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    const std::unique_ptr<llvm::TargetMachine> machine = create_host_target_machine();
    llvm::PassBuilder builder(machine.get());
    Analyses analyses;
    analyses.register_all(builder);
    add_finished_loops_pass(builder, loops_min);
    llvm::FunctionPassManager passes;
    builder.invokeVectorizerStartEPCallbacks(passes, llvm::OptimizationLevel::O3);
    llvm::Function& function = *module->getFunction("f");
    passes.run(function, analyses.functions);
    int finished = 0;
    for (const llvm::Loop* const loop : analyses.functions.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
        finished += (llvm::hasVectorizeTransformation(loop) & llvm::TM_Disable) != 0 ? 1 : 0;
    return finished;
}

TEST(FinishedLoops, AreThoseWithVectorsInFunctionsOfManyLoops) {
    EXPECT_EQ(finished_of(10, 9), 5);
    EXPECT_EQ(finished_of(10, 10), 0);
}

// The pass asks how the counters of all loops grow before it looks for an instruction to move.
TEST(PassGate, WithoutFreeze_LeavesOutThePassThatMovesThem) {
    constexpr const char* pass = "Canonicalize Freeze Instructions in Loops";
    const auto moves = [&](const std::string& instruction) {
        llvm::LLVMContext context;
        const auto module = parsed("define i32 @f(i32 %x) {\n  %y = " + instruction + "\n  ret i32 %y\n}\n", context);
        return module != nullptr && PassGate(*module).shouldRunPass(pass, "f");
    };
    EXPECT_FALSE(moves("add i32 %x, 1"));
    EXPECT_TRUE(moves("freeze i32 %x"));
    const std::unique_ptr<llvm::Pass> mover(llvm::createCanonicalizeFreezeInLoopsPass());
    EXPECT_EQ(mover->getPassName(), pass);
}

TEST(PassOptions, LeaveTheReductionToTheEmitter) {
    set_pass_options();
    const auto& options = llvm::cl::getRegisteredOptions();
    const auto found = options.find("disable-lsr");
    ASSERT_NE(found, options.end());
    EXPECT_TRUE(static_cast<llvm::cl::opt<bool>*>(found->second)->getValue());
}

// A loop whose counter gets `numbers` numbers added, one after the other, as a hash of a work-item's id. They change in the loop, or come from before it.
bool is_reduced_with_sums(unsigned numbers, bool change) {
    std::string text = "define void @f(ptr %p, i64 %n, i64 %before) {\n  br label %loop\nloop:\n"
                       "  %i = phi i64 [ 0, %0 ], [ %next, %loop ]\n  %sum0 = add i64 %i, %before\n";
    for (unsigned k = 0; k < numbers; ++k) {
        const std::string last = std::to_string(k), own = std::to_string(k + 1);
        text += "  %mixed" + own + " = xor i64 %sum" + last + ", 5\n  %sum" + own + " = add i64 %sum" + last + ", " +
                (change ? "%mixed" + own : "%before") + "\n";
    }
    text += "  %place = getelementptr i64, ptr %p, i64 %i\n  store i64 %sum" + std::to_string(numbers) +
            ", ptr %place\n  %next = add i64 %i, 1\n  %again = icmp ult i64 %next, %n\n"
            "  br i1 %again, label %loop, label %end\nend:\n  ret void\n}\n";
    llvm::LLVMContext context;
    const auto module = parsed(text, context);
    return module != nullptr && PassGate(*module).reduces();
}

TEST(PassGate, ForLongSumsWithACounter_LeavesOutReductionOfStrength) {
    constexpr unsigned most = PassGate::summed_numbers_max;
    EXPECT_TRUE(is_reduced_with_sums(most, true));
    EXPECT_FALSE(is_reduced_with_sums(most + 1, true));
    EXPECT_TRUE(is_reduced_with_sums(3 * most, false));
}

// With the gate alone, LLVM still looks for the users of induction variables in all loops, which takes quadratic time.
TEST(ObjectEmitter, WithoutReduction_MakesTheCodeThatTheGateMakes) {
    const EmittingMachine machine{create_host_target_machine()};
    const auto object = [&](unsigned stores, Reduction reduction) {
        llvm::LLVMContext context;
        const std::unique_ptr<llvm::Module> module = parsed(loops(3, stores), context);
        PassGate gate(*module);
        context.setOptPassGate(gate);
        EXPECT_EQ(gate.reduces(), stores < 200);
        return machine.emitter().emit(*module, reduction).value_or("");
    };
    for (const unsigned stores : {100U, 300U}) {
        const std::string with = object(stores, Reduction::on), without = object(stores, Reduction::off);
        EXPECT_FALSE(with.empty());
        if (stores == 300) {
            EXPECT_EQ(with, without);
        }
        EXPECT_EQ(object(stores, Reduction::on), with) << stores;
    }
    EXPECT_EQ(machine.emitter().lists_made(), 2U);
}

// Whether LLVM's unrolling after the vectorizers runs for a loop that calls a function with `attributes`. `hint`: what the loop's metadata says.
bool unrolls_loop_with_call(const std::string& attributes, const std::string& hint) {
    llvm::LLVMContext context;
    const auto module =
        parsed("declare void @rare(i64) " + attributes + "\n" +
                   "define void @f(ptr %p, i64 %n) {\n  br label %loop\nloop:\n"
                   "  %i = phi i64 [ 0, %0 ], [ %next, %latch ]\n  %c = load i1, ptr %p\n"
                   "  br i1 %c, label %call, label %latch\ncall:\n  call void @rare(i64 %i)\n  br label %latch\n"
                   "latch:\n  %next = add i64 %i, 1\n  %again = icmp ult i64 %next, %n\n"
                   "  br i1 %again, label %loop, label %done, !llvm.loop !0\n"
                   "done:\n  ret void\n}\n!0 = distinct !{!0, !1}\n!1 = !{!\"" +
                   hint + "\"}\n",
               context);
    if (!module)
        return false;
    const OptimizationGate gate(*module);
    EXPECT_TRUE(gate.should_run("LICMPass", *module->getFunction("f")));
    return gate.should_run("LoopUnrollPass", *module->getFunction("f"));
}

TEST(OptimizationGate, ForLoopsWithColdCalls_LeavesOutUnrolling) {
    EXPECT_FALSE(unrolls_loop_with_call("cold", "llvm.loop.mustprogress"));
    EXPECT_TRUE(unrolls_loop_with_call("nounwind", "llvm.loop.mustprogress"));
    EXPECT_TRUE(unrolls_loop_with_call("cold", "llvm.loop.unroll.enable"));
    EXPECT_TRUE(unrolls_loop_with_call("cold", "llvm.loop.unroll.disable"));
}

}  // namespace
}  // namespace polder::compiler::test
