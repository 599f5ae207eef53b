// Threads that use the compiler while the application goes on: builds with a callback, and code that is made ahead (early_code.h).
//
// exit waits for them, so that callbacks of builds do not come while the application's older static objects are destroyed. It does not
// wait for the build whose callback has called exit. The wait is a function that exit calls.
//
// Where LLVM is a shared library, exit also destroys the compiler's static objects, newest first. A thread that uses them crashes,
// perhaps with a lock of the C library's allocator held. Objects that the running thread has made are destroyed before exit calls our
// function. So the main thread, which nearly always is the one that calls exit, waits before all of them: exit destroys the
// thread-local objects of its thread first. lib/api/no_destructors.cpp has a cure where LLVM is inside of the library.
//
// Code that is made ahead ends by itself, and the application does not know of it. So a fork waits for it, up to five seconds: its
// child could not use OpenCL otherwise (base/fork.h).
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
    // Whether the process ends or forks, and waits for these threads: what can be left out should be.
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
    uint32_t running_early_ = 0;  // of them, those that make code ahead
    std::atomic<bool> is_ending_{false};  // the process
    std::atomic<uint32_t> forks_{0};  // that wait, or go on
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::runtime
