// An internal failure of the compiler ends the compilation and not the process.
#include "crash_guard.h"
#include "module/verified.h"
#include "support/leaks_allowed.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/ErrorHandling.h>
#include <new>
#include <thread>
#include <vector>

// The thread sanitizer does not know tasks that share memory: nothing is guarded with it.
#ifndef __SANITIZE_THREAD__

namespace polder::compiler {
namespace {

#ifndef NDEBUG
TEST(CompilerCrash, MalformedCode_IsAFailureThatNamesThePass) {
    llvm::LLVMContext context;
    llvm::Module module("malformed", context);
    auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
    auto* const function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
    EXPECT_TRUE(verified(module, "nothing"));
    llvm::BasicBlock::Create(context, "without_an_end", function);
    const Result<void> result = verified(module, "this test");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().status(), Status::build_program_failure);
    EXPECT_NE(result.error().detail().find("what this test made"), std::string::npos) << result.error().detail();
    EXPECT_NE(result.error().detail().find("without_an_end"), std::string::npos) << result.error().detail();
}
#endif

TEST(CompilerCrash, WorkThatReturns_IsNoFailure) {
    int done = 0;
    EXPECT_FALSE(run_guarded([&] { done = 1; }).has_value());
    EXPECT_EQ(done, 1);
}

TEST(CompilerCrash, ASignal_BecomesAMessage_AndTheNextWorkRuns) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGILL, SIGFPE}) {
        const auto message = run_guarded([signal] { std::raise(signal); });
        ASSERT_TRUE(message.has_value()) << signal;
        EXPECT_NE(message->find("internal compiler error"), std::string::npos);
        EXPECT_NE(message->find(std::to_string(signal)), std::string::npos) << *message;
        EXPECT_FALSE(run_guarded([] {}).has_value());
    }
}

// NOLINTNEXTLINE(misc-no-recursion): that is the test.
int recurse(int depth, std::atomic<int>& deepest) {
    volatile char frame[1000];
    frame[0] = static_cast<char>(depth);
    deepest = depth;
    return depth < 0 ? 0 : frame[0] + recurse(depth + 1, deepest) + frame[1];
}

TEST(CompilerCrash, AStackThatIsFull_BecomesAMessage) {
    std::atomic<int> deepest{0};
    const auto message = run_guarded([&deepest] { recurse(0, deepest); });
    ASSERT_TRUE(message.has_value());
    EXPECT_NE(message->find("nested too deeply"), std::string::npos) << *message;
    EXPECT_GT(deepest, 10000);
    EXPECT_FALSE(run_guarded([] {}).has_value());
}

TEST(CompilerCrash, AWriteThroughNull_IsNotTakenForAFullStack) {
    const auto message = run_guarded([] { *static_cast<volatile int*>(nullptr) = 1; });
    ASSERT_TRUE(message.has_value());
    EXPECT_NE(message->find("internal compiler error"), std::string::npos) << *message;
}

TEST(CompilerCrash, AnException_ReachesTheCaller) {
    EXPECT_THROW(static_cast<void>(run_guarded([] { throw std::bad_alloc(); })), std::bad_alloc);
}

TEST(CompilerCrash, AnAbort_LeavesAbortUsable) {
    EXPECT_TRUE(run_guarded([] { std::abort(); }).has_value());
    EXPECT_DEATH(std::abort(), "");
}

TEST(CompilerCrash, TheThreadHasAllSignalsAsBefore) {
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    EXPECT_FALSE(run_guarded([] {}).has_value());
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int signal = 1; signal < 32; ++signal)
        EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
}

TEST(CompilerCrash, WorkOnManyThreads_HasEachItsOwnResult) {
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([i, &right] {
            for (int round = 0; round < 20; ++round)
                right += run_guarded([i] {
                             if (i % 2 == 1)
                                 std::abort();
                         }).has_value() == (i % 2 == 1)
                             ? 1
                             : 0;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(right, 160);
}

TEST(CompilerCrash, AFatalErrorOfLLVM_BecomesItsMessage) {
    const auto message = run_guarded([] {
        const test::LeaksAllowed leaks_allowed;
        llvm::report_fatal_error("no such instruction selected");
    });
    ASSERT_TRUE(message.has_value());
    EXPECT_NE(message->find("no such instruction selected"), std::string::npos) << *message;
    EXPECT_FALSE(run_guarded([] {}).has_value());
}

TEST(CompilerCrash, TheApplicationsSignalHandlers_NeverChange) {
    struct sigaction before{};
    struct sigaction after{};
    sigaction(SIGSEGV, nullptr, &before);
    std::atomic<bool> is_over{false};
    std::thread crashes([&is_over] {
        for (int i = 0; i < 100; ++i)
            EXPECT_TRUE(run_guarded([] { std::raise(SIGSEGV); }).has_value());
        is_over = true;
    });
    while (!is_over) {
        sigaction(SIGSEGV, nullptr, &after);
        EXPECT_EQ(before.sa_handler, after.sa_handler);
    }
    crashes.join();
    sigaction(SIGSEGV, nullptr, &after);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace polder::compiler

#endif
