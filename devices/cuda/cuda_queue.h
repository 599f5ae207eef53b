// CudaQueue: a driver::Queue on a CUDA stream. The GPU writes the timeline's counter into pinned memory.
//
// What foreign/foreign_queue.h calls pushed is given to the stream; waits are then events of other streams. Besides host operations,
// copies from or to pageable memory and kernels that print need the host. Nothing that is pushed waits for the host, so the GPU's hardware
// queues, which streams share, never stop each other for long.
//
// The counter is written lazily, by the newest operation, when a thread flushes or waits, and now and then in between: the stream
// is idle for some microseconds at each write, so the distance doubles from 64 to 1,024 operations until a thread waits again. Thus a
// thread that waits for one operation of a long row waits for at most as many behind it as lie before it. Operations whose times are
// asked for are *flights*: the host publishes them after it has read their events.
//
// Threads: see driver::Queue. The mutex is not held while the host waits for anything.
#pragma once

#include <cuda/cuda_operation.h>
#include <cuda/pinned_memory.h>
#include <cuda/registered_regions.h>
#include <deque>
#include <foreign/foreign_queue.h>
#include <optional>
#include <vector>

namespace polder::cuda {

// What the queues of a device share.
struct QueueServices {
    CudaContext& context;
    StagingPool& staging;
    const RegisteredRegions& regions;
};

class CudaQueue final : public devices::ForeignQueue<Operation> {
public:
    [[nodiscard]] static Result<std::unique_ptr<driver::Queue>> create(const QueueServices& services);
    ~CudaQueue() override;

    driver::Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override;
    // Between the memories of GPUs: one operation of the timeline.
    driver::Timepoint copy_all(std::span<const driver::CopyOperation> operations,
                               const driver::Submission& submission) {
        return submit_work(PeerCopies(operations.begin(), operations.end()), submission);
    }
    void wait(uint64_t value) override;

private:
    struct Flight {
        uint64_t value;
        Event start;
        Event end;
        driver::OperationTimes* times;
    };

    static constexpr uint64_t unwritten_min = 64;
    static constexpr uint64_t unwritten_limit = 1024;

    CudaQueue(const QueueServices& services, Stream stream, Event tail, std::unique_ptr<PinnedCounter> counter);

    [[nodiscard]] bool is_lost() const override { return context_.is_lost(); }
    void lose_in_child() override { context_.lose_in_child(); }
    [[nodiscard]] bool needs_host(const Operation& operation) const override;
    [[nodiscard]] bool order_after(driver::Timepoint wait, Operation& operation) override;
    void flush_pushed() override POLDER_REQUIRES(mutex_) { write_counter(); }
    [[nodiscard]] bool needs_thread() const override POLDER_REQUIRES(mutex_) { return !flights_.empty(); }
    void forget_pushed(Where where) override POLDER_REQUIRES(mutex_);

    [[nodiscard]] bool is_pageable(const driver::CopyOperation& copy) const;
    // For other queues: an event after which the operation has executed; null when it has already, nothing when the
    // operation is pending.
    [[nodiscard]] std::optional<Event> event_after(uint64_t value);

    // Pushing.
    void push(Operation& operation) override POLDER_REQUIRES(mutex_);
    // False, and its failure is noted, when something that it waits for has failed.
    [[nodiscard]] bool check_waits(const Operation& operation) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Code push_work(Operation& operation);
    [[nodiscard]] Code push_copy(const driver::CopyOperation& copy);
    [[nodiscard]] Code push_fill(const devices::FillWork& fill);
    void begin_flight(Flight& flight) POLDER_REQUIRES(mutex_);
    void end_flight(const Flight& flight) POLDER_REQUIRES(mutex_);
    void write_counter() POLDER_REQUIRES(mutex_);
    void retire() POLDER_REQUIRES(mutex_);
    void read_times(const Flight& flight) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Event take_event() POLDER_REQUIRES(mutex_);

    // With the host's help.
    [[nodiscard]] Code execute_printing(LaunchWork& launch);
    void execute_on_host(Operation& operation) override;
    void wait_for_event(Event event);
    // Returns when the operation has executed, which has been pushed.
    void poll(uint64_t value);
    void work() override;

    // Failures.
    void note(uint64_t value, Code code, const char* what) POLDER_REQUIRES(mutex_);
    void lose(const char* what, Code code);

    const QueueServices services_;
    CudaContext& context_;
    const Stream stream_;
    const std::unique_ptr<PinnedCounter> counter_;
    std::byte* print_ring_ = nullptr;  // pinned; of the thread that pumps

    uint64_t written_ POLDER_GUARDED_BY(mutex_) = 0;  // a value that the GPU or the host will publish
    uint64_t unwritten_max_ POLDER_GUARDED_BY(mutex_) = unwritten_min;  // operations without a write of the counter
    uint64_t host_written_ POLDER_GUARDED_BY(mutex_) = 0;  // the newest pushed operation that writes host memory
    const Event tail_;
    uint64_t tail_value_ POLDER_GUARDED_BY(mutex_) = 0;
    std::deque<Flight> flights_ POLDER_GUARDED_BY(mutex_);
    std::vector<Event> events_ POLDER_GUARDED_BY(mutex_);  // with times, to be used again
    // The event of a flight that has ended, and when that was: what the next flight's times are counted from.
    Event reference_ POLDER_GUARDED_BY(mutex_) = nullptr;
    uint64_t reference_ns_ POLDER_GUARDED_BY(mutex_) = 0;
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::cuda
