// BuildThreads: threads that use the compiler while the application continues: builds with a callback, and early code (early_code.h).
//
// exit() waits for builds, so that callbacks of builds are not called while the application's older static objects are destroyed. It
// does not wait for the build whose callback has called exit(). The waiting is done by a function that exit() calls.
//
// When LLVM is a shared library, exit() also destroys the compiler's static objects, newest first. A thread that uses them then crashes,
// perhaps while it holds a lock of the C library's allocator. Objects that a build thread has made are newer than our exit function, so they
// are destroyed before it is called. Therefore the main thread, which nearly always calls exit(), waits earlier: in the destructor of a
// thread-local object, which exit() runs first. lib/api/no_destructors.cpp solves this when LLVM is linked into the library.
//
// Nobody needs early code after exit: the compiler ends it between two of its steps (compiler/optional_work.h). A step may take a second for a kernel of many thousands of
// statements, so exit waits for at most 20 ms, where the compiler may continue until the process ends.
//
// The application does not know of early code. So a fork waits for it, up to five seconds; otherwise the child could not use OpenCL (base/fork.h).
//
// Any thread may call any function.
#pragma once

#include <base/fork.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace polder::runtime {

class BuildThreads final : private ForkParticipant {
public:
    enum class Work : uint8_t { build, early_code };

    static BuildThreads& get();
    // Throws std::system_error or std::bad_alloc when no thread can be made.
    void start(Work kind, std::function<void()> work);
    // Whether exit() has been called.
    [[nodiscard]] bool is_process_ending() const { return is_ending_.load(); }
    // True when exit or a fork waits for these threads, which should then leave out optional work.
    [[nodiscard]] bool should_end() const { return is_ending_.load() || forks_.load() != 0; }

private:
    struct WaitAtExit;

    BuildThreads() = default;
    void wait();
    void count(Work kind, uint32_t by);

    // Handlers of pthread_atfork, called before and after those of base/fork.h.
    static void before_fork();
    static void after_fork();

    void lock_for_fork() override { mutex_.lock(); }
    void unlock_after_fork() override { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override { return running_ == 0; }
    void forget_threads() override { running_ = running_early_ = 0; }

    std::mutex mutex_;
    std::condition_variable idle_;
    uint32_t running_ = 0;
    uint32_t running_early_ = 0;  // how many of the running threads make early code
    std::atomic<bool> is_ending_{false};  // whether the process is ending
    std::atomic<uint32_t> forks_{0};  // the number of forks in progress
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::runtime
