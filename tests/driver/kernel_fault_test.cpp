// The message of a kernel that faults. With POCL_DEBUG set, a line names the kernel and the work-group; without it, no handler
// is installed. tests/driver/meson.build runs this program both ways.
#include "conformance.h"
#include "driver_named.h"
#include "kernels.h"

#include <csignal>
#include <cstdlib>
#include <unistd.h>

namespace polder::conformance {
namespace {

bool is_debugging() { return std::getenv("POCL_DEBUG") != nullptr; }

void write_through_null(const std::byte*, const LaunchContext*, const uint64_t* group, std::byte*, std::byte*) {
    if (group[0] == 3)
        *static_cast<volatile int*>(nullptr) = 1;
}

// Through a volatile pointer, so that the compiler neither sees the recursion nor makes a loop of it.
int recurse(int depth);
int (*volatile recurse_again)(int) = recurse;
int recurse(int depth) {
    volatile char array[1024];
    array[depth % 1024] = static_cast<char>(depth);
    return recurse_again(depth + 1) + array[(depth + 1) % 1024];
}
void recurse_without_end(const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
    volatile int sum = recurse(1);
    static_cast<void>(sum);
}

void run(WorkGroupFunction function, uint64_t groups) {
    const auto driver = driver_named("cpu");
    const auto device = *driver->open(0, host_space, "");
    const auto queue = *device->create_queue(driver::QueueRole::compute);
    const auto kernel = *device->load(driver::HostCode{.function = function, .name = "faulty"});
    driver::LaunchOperation operation;
    operation.kernel = kernel.get();
    operation.global_size[0] = groups;
    queue->wait(queue->launch(operation, {}).value);
}

// Prints a line, then ends the process.
void applications_handler(int, siginfo_t*, void*) {
    static constexpr char text[] = "the application's own handler\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, sizeof text - 1);
    ::_exit(9);
}

class KernelFaultDeathTest : public testing::Test {
protected:
    KernelFaultDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(KernelFaultDeathTest, ALineNamesTheKernelAndTheGroup) {
    EXPECT_DEATH(run(write_through_null, 5),
                 is_debugging() ? "polder: error: SIGSEGV at address 0x0 in kernel \"faulty\", work-group .3, 0, 0."
                                : "");
}

TEST_F(KernelFaultDeathTest, AlsoWhenTheStackIsUsedUp) {
    // One group runs on the thread that waits, several on workers.
    for (const uint64_t groups : {1u, 4u})
        EXPECT_DEATH(run(recurse_without_end, groups),
                     is_debugging() ? "SIGSEGV at address .* in kernel \"faulty\"" : "");
}

TEST_F(KernelFaultDeathTest, TheApplicationsHandlerRunsAfterTheLine) {
    const auto with_handler = [] {
        struct sigaction action{};
        action.sa_sigaction = applications_handler;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, nullptr);
        run(write_through_null, 5);
    };
    EXPECT_EXIT(with_handler(), testing::ExitedWithCode(9),
                is_debugging() ? "in kernel \"faulty\"(.|\n)*the application's own handler"
                               : "the application's own handler");
}

TEST_F(KernelFaultDeathTest, WithoutDebuggingNoHandlerIsInstalled) {
    const auto look = [] {
        struct sigaction before{};
        sigaction(SIGSEGV, nullptr, &before);
        run([](const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {}, 5);
        struct sigaction after{};
        sigaction(SIGSEGV, nullptr, &after);
        std::_Exit(before.sa_handler == after.sa_handler ? 1 : 2);
    };
    EXPECT_EXIT(look(), testing::ExitedWithCode(is_debugging() ? 2 : 1), "");
}

}  // namespace
}  // namespace polder::conformance
