// An internal failure of the compiler ends the compilation and not the process.
#include "crash_guard.h"
#include "support/leaks_allowed.h"

#include <csignal>
#include <gtest/gtest.h>
#include <llvm/Support/ErrorHandling.h>
#include <thread>

namespace polder::compiler {
namespace {

TEST(CompilerCrash, WorkThatReturns_IsNoFailure) {
    int done = 0;
    EXPECT_FALSE(run_guarded([&] { done = 1; }).has_value());
    EXPECT_EQ(done, 1);
}

TEST(CompilerCrash, ASignal_BecomesAMessage_AndTheNextWorkRuns) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGILL, SIGFPE}) {
        // A thread that has left a handler by longjmp counts as inside it for the thread sanitizer, which then holds back
        // its next signal: each has a thread of its own.
        std::thread([signal] {
            const auto message = run_guarded([signal] { std::raise(signal); });
            ASSERT_TRUE(message.has_value()) << signal;
            EXPECT_NE(message->find("internal compiler error"), std::string::npos);
            EXPECT_FALSE(run_guarded([] {}).has_value());
        }).join();
    }
}

TEST(CompilerCrash, AFatalErrorOfLLVM_BecomesItsMessage) {
    const test::LeaksAllowed leaks_allowed;
    const auto message = run_guarded([] { llvm::report_fatal_error("no such instruction selected"); });
    ASSERT_TRUE(message.has_value());
    EXPECT_NE(message->find("no such instruction selected"), std::string::npos) << *message;
    EXPECT_FALSE(run_guarded([] {}).has_value());
}

TEST(CompilerCrash, TheApplicationsSignalHandlers_ArePutBack) {
    struct sigaction before{};
    struct sigaction after{};
    sigaction(SIGSEGV, nullptr, &before);
    EXPECT_TRUE(run_guarded([] { std::raise(SIGSEGV); }).has_value());
    sigaction(SIGSEGV, nullptr, &after);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace polder::compiler
