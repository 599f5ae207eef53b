// Completion callbacks: functions that are called once work on devices is complete.
//
// One callback thread for the whole process calls them all, one after the other, in order of completion: those of one
// queue in the order of its timeline, those of several queues as the thread sees their timelines advance. Drivers never call
// back, so the thread polls the timelines: at once after something was added or completed, then at intervals that
// double up to 1 ms. A function is entered without any lock and may use every call of OpenCL. One that blocks delays all
// other functions; one that waits for another function of this kind never returns.
//
// The thread starts at the first `start_callback_thread` and never ends. In the child of a fork it is started anew.
// Any thread may call any function.
#pragma once

#include <polder/driver.h>
#include <polder/result.h>

namespace polder {

struct CompletionCallback {
    void (*function)(void* data) = nullptr;
    void* data = nullptr;
};

// Makes sure that the callback thread runs. out_of_resources when no thread can be made. A function of the API that
// registers a callback calls this first, so that it can report the failure.
[[nodiscard]] Result<void> start_callback_thread();

// Calls `callback` once, after every timepoint of `after` is complete: on the calling thread, before this returns, when
// all of them are complete already; otherwise on the callback thread. When there is no thread and none can be
// made, or no memory, the calling thread waits for the timepoints and calls the function itself.
void run_when_complete(driver::Waits after, CompletionCallback callback) noexcept;
// Likewise, but does nothing and returns false when there is no memory or no thread.
[[nodiscard]] bool try_run_when_complete(driver::Waits after, CompletionCallback callback) noexcept;

// The end of an object that cannot end yet, because commands in flight use it and the host has no memory to wait for them in a
// better way. It is linked through itself, so that this needs no memory.
class Retried {
public:
    // True when it has succeeded; the object is gone then. Without locks.
    [[nodiscard]] virtual bool try_again() noexcept = 0;
    Retried* next_retried = nullptr;  // of the list that tries it

protected:
    ~Retried() = default;
};
// Calls job.try_again() until it succeeds: on the callback thread, 1 ms apart. Where no such thread can be started, at calls of
// retry_now. Never waits.
void retry_until_done(Retried& job) noexcept;
// Tries all jobs. One atomic load when there are none.
void retry_now() noexcept;

}  // namespace polder
