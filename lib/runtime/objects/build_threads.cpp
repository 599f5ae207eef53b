#include <base/log.h>
#include <base/service_thread.h>
#include <compiler/optional_work.h>
#include <runtime/build_threads.h>

#include <chrono>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <unistd.h>

namespace polder::runtime {
namespace {

constexpr std::chrono::seconds fork_wait_max{5};
constexpr std::chrono::milliseconds exit_wait_max{20};
thread_local bool is_build_thread = false;

}  // namespace

struct BuildThreads::WaitAtExit {
    WaitAtExit() {}  // NOLINT(modernize-use-equals-default): a const object needs one
    ~WaitAtExit() { get().wait(); }
};

// Never destroyed, because builds on other threads may continue during exit. Uses on_exit of the C library, which calls the function also
// when static objects of this library are not destroyed (lib/api/no_destructors.cpp).
BuildThreads& BuildThreads::get() {
    static BuildThreads& threads = *new BuildThreads;
    static const int registered = ::on_exit([](int, void*) { get().wait(); }, nullptr);
    static_cast<void>(registered);
    return threads;
}

void BuildThreads::start(Work kind, std::function<void()> work) {
    if (::getpid() == ::gettid()) {
        thread_local const WaitAtExit main_thread_waits;
        static_cast<void>(main_thread_waits);
    }
    if (kind == Work::early_code) {
        // Registered after the handlers of base/fork.h, so that before_fork is called before theirs.
        static const int registered = pthread_atfork(before_fork, after_fork, after_fork);
        static_cast<void>(registered);
    }
    count(kind, 1);
    try {
        const SignalsBlocked blocked;
        std::thread([this, kind, work = std::move(work)]() mutable {
            is_build_thread = kind == Work::build;
            work();
            work = nullptr;  // destroys what it refers to before `count` lets exit continue
            count(kind, ~0U);
        }).detach();
    } catch (...) {
        count(kind, ~0U);
        throw;
    }
}

// Adds `by` to the counts of running threads: 1, or -1 as an unsigned number.
void BuildThreads::count(Work kind, uint32_t by) {
    const std::lock_guard lock(mutex_);
    running_ += by;
    if (kind == Work::early_code)
        running_early_ += by;
    idle_.notify_all();
}

void BuildThreads::wait() {
    std::unique_lock lock(mutex_);
    is_ending_ = true;
    idle_.wait(lock, [&] { return running_ - running_early_ == (is_build_thread ? 1u : 0u); });
    const auto is_idle = [&] { return running_early_ == 0; };
    if (!compiler::may_outlive_static_objects())
        idle_.wait(lock, is_idle);
    else if (!idle_.wait_for(lock, exit_wait_max, is_idle))
        POLDER_LOG(compiler, "exit: the compiler still runs on %u threads, for code that nobody needs", running_early_);
}

void BuildThreads::before_fork() {
    BuildThreads& threads = get();
    ++threads.forks_;
    std::unique_lock lock(threads.mutex_);
    threads.idle_.wait_for(lock, fork_wait_max, [&] { return threads.running_early_ == 0; });
}

void BuildThreads::after_fork() { --get().forks_; }

}  // namespace polder::runtime
