// AheadThread: calls a function of a pool when the pool should get memory before a request needs it.
//
// Owned by the pool. The thread starts with the first request and sleeps in between. Where no thread can be started, nothing is done ahead.
// In the child of a fork there is no thread until the next request. Any thread may call any function.
#pragma once

#include <base/fork.h>
#include <base/mutex.h>
#include <base/service_thread.h>

namespace polder::memory {

class AheadThread final : private ForkParticipant {
public:
    using Work = void (*)(void* owner) noexcept;

    AheadThread(Work function, void* owner) : function_(function), owner_(owner) {}
    AheadThread(const AheadThread&) = delete;
    AheadThread& operator=(const AheadThread&) = delete;
    ~AheadThread();

    // The thread calls the function once more. Without any lock of the owner.
    void request() noexcept;
    // Returns when the function does not run and was not requested. What was requested and has not begun is forgotten.
    void cancel() noexcept;
    // Returns when everything that was requested has been done; for tests.
    void wait_until_idle();

private:
    [[nodiscard]] bool start_thread() POLDER_REQUIRES(mutex_);
    void work();

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override POLDER_NO_THREAD_SAFETY_ANALYSIS { return !is_working_; }
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS;

    const Work function_;
    void* const owner_;
    Mutex mutex_;
    ConditionVariable changed_;
    bool is_requested_ POLDER_GUARDED_BY(mutex_) = false;
    bool is_working_ POLDER_GUARDED_BY(mutex_) = false;
    bool is_stopping_ POLDER_GUARDED_BY(mutex_) = false;
    ServiceThread thread_;  // started under the mutex
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::memory
