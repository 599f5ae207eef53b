// StreamWatch: notices streams that have failed, for programs that wait for no command of theirs.
//
// The GPU publishes the timeline of a queue, and stops when the stream fails. A thread that waits asks CUDA now and then. Callbacks, and
// programs that poll the status of events, only read the timeline. So one thread for each GPU looks every 4 ms at the queues that have
// flushed commands which are not complete. It starts at the first flush. A queue stays listed for a while when it has nothing in flight,
// because waking the thread costs some microseconds.
//
// Any thread may call any function. Lock order: queue -> StreamWatch; `look` is called without a lock. Must exist before the queues, for
// forks (base/fork.h).
#pragma once

#include <base/fork.h>
#include <base/mutex.h>
#include <base/service_thread.h>

namespace polder::cuda {

class StreamWatch final : private ForkParticipant {
public:
    class Watched {
    public:
        // True when there is to be another look.
        [[nodiscard]] virtual bool look() = 0;
        Watched* next_watched = nullptr;  // of the list

    protected:
        ~Watched() = default;
    };

    StreamWatch() = default;
    StreamWatch(const StreamWatch&) = delete;
    StreamWatch& operator=(const StreamWatch&) = delete;
    ~StreamWatch();

    // Looks at a queue that is not listed until `look` returns false. Without memory. Nothing happens where there can be no thread: then
    // false.
    bool add(Watched& queue);
    // Returns when no thread looks at the queue, and none will.
    void remove(Watched& queue);

private:
    static void* run(void* watch);
    void work();
    static void erase(Watched*& list, const Watched& queue);

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    // In the child no queue works, whatever the thread did.
    [[nodiscard]] bool is_quiet() const override { return true; }
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS;

    Mutex mutex_;
    ConditionVariable changed_;
    Watched* listed_ POLDER_GUARDED_BY(mutex_) = nullptr;
    Watched* to_look_at_ POLDER_GUARDED_BY(mutex_) = nullptr;  // in this round
    Watched* looking_at_ POLDER_GUARDED_BY(mutex_) = nullptr;
    bool is_ending_ POLDER_GUARDED_BY(mutex_) = false;
    ServiceThread thread_;  // started under the mutex
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::cuda
