// CudaQueue: a driver::Queue on a CUDA stream. The GPU writes the timeline's counter into pinned memory.
//
// An operation is *pushed*, that is, given to the stream, by the submitting thread when the GPU can do all of it: then its
// waits are events of other streams. What needs the host stays *pending*, and so does everything after it: operations
// that wait for another driver's queue, host operations, copies from or to pageable memory, kernels that print. A thread
// that waits for the queue executes pending operations; `flush` has the queue's own thread do it. Nothing that is pushed
// waits for the host, so the GPU's hardware queues, which streams share, never stop each other for long.
//
// The counter is written lazily, by the newest operation, when a thread flushes or waits. Operations whose times are
// asked for are *flights*: the host publishes them after it has read their events.
//
// Threads: see driver::Queue. The mutex is not held while the host waits for anything.
#pragma once

#include <base/fork.h>
#include <base/mutex.h>

#include <cuda/cuda_operation.h>
#include <cuda/pinned_memory.h>
#include <deque>
#include <host/failure_log.h>
#include <limits>
#include <optional>
#include <pthread.h>

namespace polder::cuda {

// What the queues of a device share.
struct QueueServices {
    CudaContext& context;
    StagingPool& staging;
    PinnedRegions& regions;
};

class CudaQueue final : public driver::Queue, private ForkParticipant {
public:
    [[nodiscard]] static Result<std::unique_ptr<driver::Queue>> create(const QueueServices& services);
    CudaQueue(const CudaQueue&) = delete;
    CudaQueue& operator=(const CudaQueue&) = delete;
    ~CudaQueue() override;

    driver::Timepoint copy(const driver::CopyOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint fill(const driver::FillOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint call(const driver::HostOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint marker(const driver::Submission& submission) override;

    void flush() override;
    void wait(uint64_t value) override;
    [[nodiscard]] Status status(uint64_t value) const override;

private:
    struct Flight {
        uint64_t value;
        Event start;
        Event end;
        driver::OperationTimes* times;
    };

    CudaQueue(const QueueServices& services, Stream stream, Event tail, std::unique_ptr<PinnedCounter> counter);

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS;
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override POLDER_NO_THREAD_SAFETY_ANALYSIS;
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS;

    driver::Timepoint submit(Operation&& operation, const driver::Submission& submission);
    [[nodiscard]] bool needs_host(const Operation& operation) const;
    [[nodiscard]] bool is_pageable(const driver::CopyOperation& copy) const;
    // For other queues: an event after which the operation has executed; null when it has already, nothing when the
    // operation is pending.
    [[nodiscard]] std::optional<Event> event_after(uint64_t value);
    [[nodiscard]] static bool order_after(driver::Timepoint wait, Operation& operation);
    [[nodiscard]] bool may_execute(const Operation& operation) POLDER_REQUIRES(mutex_);

    // Pushing.
    void push(Operation& operation) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Code push_work(Operation& operation);
    [[nodiscard]] Code push_copy(const driver::CopyOperation& copy);
    [[nodiscard]] Code push_fill(const FillWork& fill);
    void begin_flight(Flight& flight) POLDER_REQUIRES(mutex_);
    void end_flight(const Flight& flight) POLDER_REQUIRES(mutex_);
    void write_counter() POLDER_REQUIRES(mutex_);
    void retire() POLDER_REQUIRES(mutex_);
    void read_times(const Flight& flight) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Event take_event() POLDER_REQUIRES(mutex_);

    // With the host's help.
    void pump_one() POLDER_REQUIRES(mutex_);
    void execute_pending(Operation& operation);
    [[nodiscard]] Code copy_in_staged(const driver::CopyOperation& copy);
    [[nodiscard]] Code copy_out_staged(const driver::CopyOperation& copy);
    [[nodiscard]] StagingChunk take_chunk();
    [[nodiscard]] Code execute_printing(LaunchWork& launch);
    void execute_on_host(Operation& operation);
    void wait_for_event(Event event);
    // Returns when the operation has executed, which has been pushed.
    void poll(uint64_t value);
    [[nodiscard]] bool start_thread() POLDER_REQUIRES(mutex_);
    void work();

    // Failures.
    void note(uint64_t value, Code code, const char* what) POLDER_REQUIRES(mutex_);
    void lose(const char* what, Code code);
    void abandon() POLDER_REQUIRES(mutex_);

    const QueueServices services_;
    CudaContext& context_;
    const Stream stream_;
    const std::unique_ptr<PinnedCounter> counter_;
    std::atomic<uint64_t>* word_;  // the counter, or `completed_` in the child of a fork
    std::byte* print_ring_ = nullptr;  // pinned; of the thread that pumps

    mutable Mutex mutex_;
    ConditionVariable changed_;
    uint64_t submitted_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t pushed_ POLDER_GUARDED_BY(mutex_) = 0;
    uint64_t written_ POLDER_GUARDED_BY(mutex_) = 0;  // a value that the GPU or the host will publish
    uint64_t wanted_ POLDER_GUARDED_BY(mutex_) = 0;  // flushed: the queue's thread works up to here
    uint64_t host_written_ POLDER_GUARDED_BY(mutex_) = 0;  // the newest pushed operation that writes host memory
    const Event tail_;
    uint64_t tail_value_ POLDER_GUARDED_BY(mutex_) = 0;
    std::deque<Operation> pending_ POLDER_GUARDED_BY(mutex_);
    bool is_pumping_ POLDER_GUARDED_BY(mutex_) = false;
    std::deque<Flight> flights_ POLDER_GUARDED_BY(mutex_);
    std::vector<Event> events_ POLDER_GUARDED_BY(mutex_);  // with times, to be used again
    // The event of a flight that has ended, and when that was: what the next flight's times are counted from.
    Event reference_ POLDER_GUARDED_BY(mutex_) = nullptr;
    uint64_t reference_ns_ POLDER_GUARDED_BY(mutex_) = 0;
    devices::FailureLog failed_ POLDER_GUARDED_BY(mutex_);
    std::atomic<uint64_t> lost_from_{std::numeric_limits<uint64_t>::max()};

    uint64_t completed_at_fork_ = 0;
    bool has_thread_ POLDER_GUARDED_BY(mutex_) = false;
    bool stopping_ POLDER_GUARDED_BY(mutex_) = false;
    pthread_t thread_{};
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::cuda
