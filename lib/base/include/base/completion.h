// Completion callbacks: functions that are called once work on devices is complete.
//
// One callback thread for the whole process calls all functions, one after the other, in order of completion: functions for one
// queue in the order of its timeline, functions for several queues as the thread sees their timelines advance. Drivers never call
// back, so the thread polls the timelines: at once after something was added or completed, then at intervals that
// double up to 1 ms. A function is called without any lock and may call all of OpenCL's functions. A function that blocks delays
// all others; a function that waits until another one has been called never returns.
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

// Starts the callback thread unless it runs. out_of_resources when no thread can be started. A function of the API that
// registers a callback calls this first, so that it can report the failure.
[[nodiscard]] Result<void> start_callback_thread();

// Calls `callback` once, after every timepoint of `after` is complete: on the calling thread, before this returns, when
// all of them are complete already; otherwise on the callback thread. When that thread cannot be started, or
// there is no memory, the calling thread waits for the timepoints and calls the function itself.
void run_when_complete(driver::Waits after, CompletionCallback callback) noexcept;
// The same, but when the thread cannot be started or there is no memory, it calls nothing and returns false.
[[nodiscard]] bool try_run_when_complete(driver::Waits after, CompletionCallback callback) noexcept;

// An object whose destruction must be tried again, because commands in flight use it and the host has no memory for a list of these
// commands. The list of such objects is linked through them, so that it needs no memory.
class Retried {
public:
    // True when it has succeeded: the object does not exist any more. Called without locks.
    [[nodiscard]] virtual bool try_again() noexcept = 0;
    Retried* next_retried = nullptr;  // the next object in the list of those to try

protected:
    ~Retried() = default;
};
// Arranges that job.try_again() is called until it succeeds: by the callback thread, every 1 ms, or by calls of retry_now when that thread
// cannot be started. Returns at once.
void retry_until_done(Retried& job) noexcept;
// Tries all jobs once. Costs one atomic load when there are none.
void retry_now() noexcept;

}  // namespace polder
