// A build changes nothing of the process that it runs in. Signal handlers stay the application's, and source that is
// too much for the compiler gives a build log and no crash.
#include "../support/sanitizer.h"
#include "support/fixture.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace polder::test {
namespace {

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i)
        all += text;
    return all;
}

// A handler like a garbage collector's: it runs for every thread that touches a protected page.
struct FaultingPage {
    static inline std::atomic<char*> page;
    static inline std::atomic<size_t> page_bytes;
    static inline std::atomic<int> faults;
    static inline std::atomic<int> strange;

    static void handler(int, siginfo_t* info, void*) {
        faults++;
        if (info->si_code != SEGV_ACCERR || info->si_addr != page.load() + 16)
            strange++;
        mprotect(page, page_bytes, PROT_READ | PROT_WRITE);
    }

    FaultingPage() {
        page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        page =
            static_cast<char*>(mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        faults = 0;
        strange = 0;
        struct sigaction action{};
        action.sa_sigaction = handler;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, &before_);
    }
    ~FaultingPage() {
        sigaction(SIGSEGV, &before_, nullptr);
        munmap(page, page_bytes);
    }
    FaultingPage(const FaultingPage&) = delete;
    FaultingPage& operator=(const FaultingPage&) = delete;

    static void touch() {
        mprotect(page, page_bytes, PROT_NONE);
        static_cast<volatile char*>(page.load())[16] = 1;
    }

private:
    struct sigaction before_{};
};

using Handlers = std::array<struct sigaction, 32>;

Handlers handlers() {
    Handlers all{};
    for (int signal = 1; signal < 32; ++signal)
        sigaction(signal, nullptr, &all[static_cast<size_t>(signal)]);
    return all;
}

bool is_same(const Handlers& one, const Handlers& other) {
    for (size_t i = 0; i < one.size(); ++i)
        if (one[i].sa_handler != other[i].sa_handler || one[i].sa_flags != other[i].sa_flags)
            return false;
    return true;
}

class CompilerProcess : public ContextTest {
protected:
    // Builds and launches a program that no cache knows.
    void build_and_launch(const char* options = "") {
        static int serial = 0;
        build_and_launch(std::to_string(getpid() * 1000 + serial++), options);
    }
    // Builds and launches a program that stores `number`.
    void build_and_launch(const std::string& number, const char* options) {
        const OwnedProgram program =
            build("kernel void k(global int* a) { a[get_global_id(0)] = " + number + "; }", options);
        const OwnedKernel kernel = make_kernel(program, "k");
        const OwnedMem buffer = make_buffer(sizeof(cl_int));
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        const size_t one = 1;
        ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(std::to_string(read<cl_int>(buffer, 1)[0]), number);
    }

    // Runs `other` on a thread, again and again, while programs are built.
    void build_beside(const std::function<void()>& other) {
        std::atomic<bool> is_over{false};
        std::thread thread([&] {
            while (!is_over)
                other();
        });
        for (int i = 0; i < 5; ++i)
            build_and_launch();
        is_over = true;
        thread.join();
    }

    // Built or refused with a log; afterwards the compiler works.
    void expect_built_or_refused(const std::string& source) {
        const OwnedProgram program = from_source(source);
        const cl_int error = clBuildProgram(program, 0, nullptr, "-cl-opt-disable", nullptr, nullptr);
        if (error != CL_SUCCESS) {
            EXPECT_EQ(error, CL_BUILD_PROGRAM_FAILURE);
            EXPECT_NE(build_log(program).find("error"), std::string::npos) << build_log(program);
        }
        build_and_launch();
    }
};

TEST_F(CompilerProcess, AnotherThreadsFaults_ReachItsHandlerUnchanged) {
    const FaultingPage page;
    build_beside([] { FaultingPage::touch(); });
    EXPECT_GT(FaultingPage::faults, 0);
    EXPECT_EQ(FaultingPage::strange, 0) << "of " << FaultingPage::faults;
}

TEST_F(CompilerProcess, SignalHandlers_AreTheApplicationsAllTheTime) {
    const Handlers before = handlers();
    std::atomic<int> changes{0};
    build_beside([&] { changes += is_same(handlers(), before) ? 0 : 1; });
    EXPECT_EQ(changes, 0);
}

TEST_F(CompilerProcess, NoChildOfTheApplication_IsSeen) {
    std::atomic<int> children{0};
    build_beside([&] { children += waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 1; });
    EXPECT_EQ(children, 0);
}

// Bytes that the process has allocated and not freed.
size_t allocated_bytes() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Memory of this process: address space of which any page was touched.
size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    size_t pages = 0;
    file >> pages >> pages;
    return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// How much the samples grow from one to the next: the median of the slopes between all pairs (Theil and Sen's estimator). Single
// jumps, as of caches and tables that grow to their size, do not count, and neither does noise that comes and goes.
double growth_of(const std::vector<double>& samples) {
    std::vector<double> slopes;
    for (size_t i = 0; i < samples.size(); ++i)
        for (size_t j = i + 1; j < samples.size(); ++j)
            slopes.push_back((samples[j] - samples[i]) / static_cast<double>(j - i));
    const auto middle = slopes.begin() + static_cast<ptrdiff_t>(slopes.size() / 2);
    std::nth_element(slopes.begin(), middle, slopes.end());
    return *middle;
}

// Runs `round` again and again. Nothing may grow with the number of rounds: neither what is allocated nor what is resident. A queue keeps the
// code of up to 16 launches until it looks which are complete: clFinish makes it look, so that no sample counts them.
void expect_nothing_left(cl_command_queue queue, int rounds, const std::function<void()>& round) {
    if (has_address_sanitizer || has_thread_sanitizer)
        GTEST_SKIP() << "sanitizers keep freed memory for a while, and records of what was allocated";
    // More than the compiler keeps of recent builds. After 40 rounds, tables and lists of freed objects still grew now and then, by 144 bytes.
    constexpr int warm_up = 120;
    std::vector<double> allocated, resident;
    for (std::vector<double>* samples : {&allocated, &resident})
        samples->reserve(static_cast<size_t>(rounds));  // what they take does not count
    for (int done = 0; done < warm_up + rounds; ++done) {
        round();
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
        if (done < warm_up)
            continue;
        allocated.push_back(static_cast<double>(allocated_bytes()));
        resident.push_back(static_cast<double>(resident_bytes()));
    }
    EXPECT_LT(growth_of(allocated), 30) << "bytes a round";  // the smallest piece that malloc gives is 32 bytes
    EXPECT_LT(growth_of(resident), 6000) << "bytes a round";
}

// Each program used to leave 7 KB and more in every round: the first launch of code, and its announcement to debuggers.
TEST_F(CompilerProcess, AProgramThatIsReleased_LeavesNothing) {
    expect_nothing_left(queue, 110, [&] { build_and_launch(); });
}

// Its code is shared with the programs before it, so the rounds are short, and more of them show less.
TEST_F(CompilerProcess, AProgramThatIsBuiltAgain_LeavesNothing) {
    int round = 0;
    expect_nothing_left(queue, 500, [&] { build_and_launch(std::to_string(getpid() + round++ % 2), ""); });
}

// Code with debug information is announced to debuggers until its program is released; no program shares it. Its source is kept in a file:
// LLVM's function that wrote it left 32 bytes in every round.
TEST_F(CompilerProcess, AProgramForADebugger_LeavesNothing) {
    expect_nothing_left(queue, 40, [&] { build_and_launch("-g"); });
}

TEST_F(CompilerProcess, AProgramForADebuggerThatIsBuiltAgain_LeavesNothing) {
    int round = 0;
    expect_nothing_left(queue, 40, [&] { build_and_launch(std::to_string(getpid() + round++ % 2), "-g"); });
}

TEST_F(CompilerProcess, NestedParentheses_AreNoCrash) {
    expect_built_or_refused("kernel void k(global int* a) { *a = " + repeated("(", 2040) + "1" + repeated(")", 2040) +
                            "; }");
}

TEST_F(CompilerProcess, AVeryLongSum_IsNoCrash) {
    expect_built_or_refused("kernel void k(global int* a) { *a = a[1]" + repeated("+a[2]", 30000) + "; }");
}

TEST_F(CompilerProcess, DeepIfs_AreNoCrash) {
    expect_built_or_refused("kernel void k(global int* a) { " + repeated("if (a[1]) ", 2000) + "*a = 1; }");
}

TEST_F(CompilerProcess, LongChainsOfElseIf_AreNoCrash) {
    expect_built_or_refused("kernel void k(global int* a) { " + repeated("if (a[1] == *a) *a += 2; else ", 1500) +
                            "*a = 1; }");
}

}  // namespace
}  // namespace polder::test
