// CudaQueue: a driver::Queue on a CUDA stream. The GPU writes the timeline's counter into pinned memory.
//
// An operation that is "pushed" (foreign/foreign_queue.h) is on the stream, where it waits for events of other streams. Host operations,
// copies from or to pageable memory and kernels that print need the host. No pushed operation waits for the host, so the GPU's hardware
// queues, which several streams share, never block each other for long.
//
// The counter is not written by each operation, because the stream is idle for some microseconds at each write. It is written when a thread
// flushes or waits, and in between after 64 operations; that distance doubles up to 1,024 until a thread waits again. So a thread that waits
// for one of many operations waits for at most as many operations after it as there are before it. Operations with times are *flights*: the
// host publishes them after it has read their events. The counter of a stream that has failed stops: a waiting thread notices that, or
// StreamWatch does.
//
// Any call of CUDA may fail. A command that CUDA refuses fails alone. A call that is not for one command (writing the counter, recording or
// querying an event) is repeated or left out: a thread that waits then checks whether the stream is idle, and publishes the pushed
// operations. A failure after which no call for the context succeeds makes the GPU lost. When a stream waits for a lost GPU, only its queue
// is lost. So each wait ends, unless a kernel runs forever.
//
// Threads: see driver::Queue. The mutex is not held while the host waits for anything.
#pragma once

#include <cuda/cuda_operation.h>
#include <cuda/pinned_memory.h>
#include <cuda/refusals.h>
#include <cuda/registered_regions.h>
#include <cuda/stream_watch.h>
#include <deque>
#include <foreign/foreign_queue.h>
#include <optional>
#include <vector>

namespace polder::cuda {

// The objects that the queues of a device share.
struct QueueServices {
    CudaContext& context;
    StagingPool& staging;
    const RegisteredRegions& regions;
    StreamWatch& watch;
};

class CudaQueue final : public devices::ForeignQueue<Operation>, private StreamWatch::Watched {
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

    [[nodiscard]] bool is_lost() const override {
        return context_.is_lost() || is_stuck_.load(std::memory_order_relaxed);
    }
    void lose_in_child() override { context_.lose_in_child(); }
    [[nodiscard]] bool needs_host(const Operation& operation) const override;
    [[nodiscard]] bool order_after(driver::Timepoint wait, Operation& operation) override;
    void flush_pushed() override POLDER_REQUIRES(mutex_) {
        write_counter();
        begin_to_watch();
    }
    void publish_by_host(uint64_t value) override POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool needs_thread() const override POLDER_REQUIRES(mutex_) { return !flights_.empty(); }
    void forget_pushed(Where where) override POLDER_REQUIRES(mutex_);

    [[nodiscard]] bool is_pageable(const driver::CopyOperation& copy) const;
    // For other queues: an event after which the operation has executed; null when it has executed, std::nullopt when the
    // operation is pending.
    [[nodiscard]] std::optional<Event> event_after(uint64_t value);
    // The stream waits for an event of `other`.
    void wait_for_gpu(const CudaContext& other, uint64_t value) POLDER_REQUIRES(mutex_);

    // Pushing.
    void push(Operation& operation) override POLDER_REQUIRES(mutex_);
    // False when an operation that it waits for has failed; the failure of `operation` is then noted.
    [[nodiscard]] bool check_waits(const Operation& operation) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Code push_work(Operation& operation);
    [[nodiscard]] Code push_copy(const driver::CopyOperation& copy);
    [[nodiscard]] Code push_fill(const devices::FillWork& fill);
    void begin_flight(Flight& flight) POLDER_REQUIRES(mutex_);
    void end_flight(Flight& flight) POLDER_REQUIRES(mutex_);
    // When CUDA refuses it, a later call tries again.
    void write_counter() POLDER_REQUIRES(mutex_);
    void retire() POLDER_REQUIRES(mutex_);
    void retire_oldest() POLDER_REQUIRES(mutex_);
    void read_times(const Flight& flight) POLDER_REQUIRES(mutex_);
    // Records an event on the stream now; null when CUDA refuses.
    [[nodiscard]] Event record_event() POLDER_REQUIRES(mutex_);
    [[nodiscard]] Event take_event() POLDER_REQUIRES(mutex_);
    void give_back(Event event) POLDER_REQUIRES(mutex_);
    // If the stream is idle, everything that was pushed has executed, and is published.
    [[nodiscard]] Code publish_idle_stream() POLDER_REQUIRES(mutex_);

    // With the host's help.
    [[nodiscard]] Code execute_printing(LaunchWork& launch);
    [[nodiscard]] Code execute_work(Operation& operation);
    void execute_on_host(Operation& operation) override;
    void wait_for_event(Event event, const Operation& operation);
    [[nodiscard]] bool waits_for_lost_gpu(const Operation& operation) const;
    // Returns when the stream is idle, with success, or the queue is lost. Nothing is pushed meanwhile.
    [[nodiscard]] Code drain();
    [[nodiscard]] bool is_over() POLDER_EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        return is_lost() || is_stuck();
    }
    // Returns when the operation has executed, which has been pushed.
    void poll(uint64_t value);
    void work() override;
    // The GPU publishes what is flushed, unless the stream fails.
    void begin_to_watch() POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool look() override;

    // Failures.
    // Notes the failure of the operation `value`.
    void note(uint64_t value, Code code, const char* what) POLDER_REQUIRES(mutex_);
    // For a call that is not for one operation: false when the GPU is lost, so that all operations fail.
    bool survives(Code code, const char* what) POLDER_REQUIRES(mutex_);
    void lose(const char* what, Code code);
    // True when the stream waits for a lost GPU and has had time to execute everything before that wait. The queue is then lost.
    [[nodiscard]] bool is_stuck() POLDER_REQUIRES(mutex_);

    const QueueServices services_;
    CudaContext& context_;
    const Stream stream_;
    std::unique_ptr<PinnedCounter> counter_;
    std::byte* print_ring_ = nullptr;  // pinned; of the thread that pumps

    uint64_t written_ POLDER_GUARDED_BY(mutex_) = 0;  // a value that the GPU or the host will publish
    uint64_t unwritten_max_ POLDER_GUARDED_BY(mutex_) = unwritten_min;  // operations without a write of the counter
    uint64_t host_written_ POLDER_GUARDED_BY(mutex_) = 0;  // the newest pushed operation that writes host memory
    const Event tail_;
    uint64_t tail_value_ POLDER_GUARDED_BY(mutex_) = 0;
    std::deque<Flight> flights_ POLDER_GUARDED_BY(mutex_);
    std::vector<Event> events_ POLDER_GUARDED_BY(mutex_);  // with times, to be used again; room for all that were made
    size_t events_made_ POLDER_GUARDED_BY(mutex_) = 0;
    // The event of a flight that has ended, and when that was: what the next flight's times are counted from.
    Event reference_ POLDER_GUARDED_BY(mutex_) = nullptr;
    uint64_t reference_ns_ POLDER_GUARDED_BY(mutex_) = 0;
    // Other GPUs that this stream waits for or has waited for, and the newest operation that did.
    struct AwaitedGpu {
        const CudaContext* context;
        uint64_t value;
    };
    std::vector<AwaitedGpu> awaited_ POLDER_GUARDED_BY(mutex_);
    uint64_t lost_gpu_seen_ns_ POLDER_GUARDED_BY(mutex_) = 0;  // when one of them was first seen to be lost
    std::atomic<bool> is_stuck_{false};  // it waits for a lost GPU
    bool is_watched_ POLDER_GUARDED_BY(mutex_) = false;
    uint64_t seen_ POLDER_GUARDED_BY(mutex_) = 0;  // of the timeline, at the last look
    uint32_t idle_looks_ POLDER_GUARDED_BY(mutex_) = 0;
    Refusals refusals_ POLDER_GUARDED_BY(mutex_);  // of looks
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::cuda
