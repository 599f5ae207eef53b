// HostQueue: a driver::Queue whose operations are executed by threads of this process.
//
// Submitting writes a record and raises a counter. One thread at a time *claims* the queue and drains it: a worker of its
// pool, or a host thread that waits for the queue and helps, so that waiting for a small operation costs no thread
// switch. Small operations are delayed until `flush`, until a thread waits, or until 16 of them have accumulated. For a large
// operation, a worker is woken at once.
//
// When an operation's waits are not complete, a helping thread drains the queue that the operation waits for, or sleeps. A worker
// never sleeps: it parks the queue as a waiter on the other timeline, which resumes it. An operation waits only for operations
// that were submitted before it, so no wait is endless. When the system refuses to start workers, the threads that flush and wait do all the work.
//
// Threads: see driver::Queue. The queue must be idle when it is destroyed.
#pragma once

#include <base/mutex.h>

#include <host/claim_state.h>
#include <host/failure_log.h>
#include <host/host_kernel.h>
#include <host/interconnect.h>
#include <host/operation_log.h>
#include <host/spin_time.h>
#include <host/timeline_waiters.h>
#include <host/worker_pool.h>
#include <limits>
#include <polder/driver.h>

namespace polder::devices {

// Turns the addresses that the runtime sees into addresses to dereference: those within
// [base, base + size) move by `shift`, all others stay.
struct AddressWindow {
    uint64_t base = 0;
    uint64_t size = 0;
    uint64_t shift = 0;

    [[nodiscard]] uint64_t resolve(uint64_t address) const { return address - base < size ? address + shift : address; }
    [[nodiscard]] std::byte* resolve(DeviceAddress address) const {
        return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(resolve(address.value)));
    }
};

class HostQueue final : public driver::Queue, private driver::Fence, private PooledQueue {
public:
    struct Options {
        AddressWindow window;
        InterconnectModel* interconnect = nullptr;  // null: copies are not slowed down
    };
    HostQueue(WorkerPool& pool, const Options& options);
    HostQueue(const HostQueue&) = delete;
    HostQueue& operator=(const HostQueue&) = delete;
    ~HostQueue() override;

    driver::Timepoint copy(const driver::CopyOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint fill(const driver::FillOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint call(const driver::HostOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint marker(const driver::Submission& submission) override;
    // For PeerCopy: both addresses are to be dereferenced as they are.
    driver::Timepoint copy_resolved(const std::byte* from, std::byte* to, const driver::CopyOperation& operation,
                                    LinkDirection direction, const driver::Submission& submission);

    void flush() override;
    void wait(uint64_t value) override;
    [[nodiscard]] Status status(uint64_t value) const override;
    [[nodiscard]] driver::Fence* fence() override { return this; }

    // Notifies `waiter` when the timeline reaches its value; false, and no notification, when it already has.
    [[nodiscard]] bool add_waiter(driver::FenceWaiter& waiter) { return waiters_.add(waiter, completed_); }
    // Makes sure that operations up to `value` are executed without further calls: by a worker, or, when there is none
    // and the system refuses to start one, by the calling thread.
    // `depth`: how many queues the calling thread drains within each other.
    void promise(uint64_t value, uint32_t depth);

private:
    // `interrupted`: promised operations are left, which other threads must execute.
    enum class Outcome : uint8_t { drained, interrupted, parked };
    enum class Wait : uint8_t { over, parked };

    [[nodiscard]] bool become_scheduled(QueueState from) override { return claim_.become_scheduled(from); }
    [[nodiscard]] bool claim_scheduled() override { return claim_.claim_scheduled(); }
    void run_claimed() override;
    [[nodiscard]] bool has_completed(uint64_t value) const override { return completed() >= value; }
    [[nodiscard]] bool notify(driver::FenceWaiter& waiter) override {
        promise(waiter.value, 0);
        return add_waiter(waiter);
    }

    template <class Record>
    Record& begin_record(OperationKind kind, const driver::Submission& submission, size_t extra_bytes);
    enum class Weight : uint8_t { small, large };
    driver::Timepoint publish(Weight weight);
    [[nodiscard]] uint64_t backlog_at(uint64_t value);

    [[nodiscard]] uint32_t help_depth_max() const;
    void help(uint64_t value, uint32_t depth);
    // Waits until another thread has executed the operation of this value, and takes part where that thread shares it.
    void wait_and_help(uint64_t value);
    void sleep_until(uint64_t value);
    Outcome drain(uint64_t limit, uint32_t depth);
    [[nodiscard]] bool waits_are_complete(Operation& operation, uint32_t depth);
    void wait_as_helper(driver::Timepoint timepoint, uint32_t depth);
    [[nodiscard]] Wait wait_as_worker(driver::Timepoint timepoint, uint32_t depth);
    [[nodiscard]] static uint64_t stack_left();
    [[nodiscard]] bool fits_this_thread(Operation& operation) const;
    [[nodiscard]] Status execute(Operation& operation);
    void execute_copy(const CopyRecord& record, Workspace& workspace);
    void complete(uint64_t value);
    void note_failure(uint64_t value, Status status);

    WorkerPool& pool_;
    const Options options_;

    // Used by the submitting thread.
    OperationLog log_;
    uint64_t last_promised_ = 0;  // the highest value that was promised or seen to be complete

    alignas(64) std::atomic<uint64_t> submitted_{0};

    // Used by the thread that has the claim.
    alignas(64) ClaimState claim_;
    Operation* current_ = nullptr;  // the operation that was taken from the log, whose waits are not complete
    uint64_t executed_ = 0;
    bool has_previous_failed_ = false;  // whether the operation executed_ has failed
    Workspace workspace_;  // used by helping threads
    struct Resumption : driver::FenceWaiter {
        HostQueue* queue = nullptr;
    } resumption_;

    static constexpr uint64_t nobody = std::numeric_limits<uint64_t>::max();
    TimelineWaiters waiters_;
    SpinTime spinning_;  // of threads that wait
    mutable Mutex mutex_;
    std::atomic<bool> any_failed_{false};
    FailureLog failed_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::devices
