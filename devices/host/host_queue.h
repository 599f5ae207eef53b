// HostQueue: a driver::Queue whose operations are executed by threads of this process.
//
// Submitting writes a record and raises a counter. Whoever *claims* the queue drains it, one thread at a
// time: a worker of its engine, or a host thread that waits for it and helps, so that a small operation
// that is waited for costs no thread switch. Small operations are held back until `flush`, until somebody
// waits, or until `backlog_max` of them stand; large ones are promised to a worker at once.
//
// An operation whose waits are not complete makes a helping thread drain the queue it waits for, or sleep;
// a worker never sleeps: it parks the queue as a waiter on the other timeline, which resumes it. Waits
// name earlier submissions only, so both end.
//
// Threads: see driver::Queue. The queue must be idle when it is destroyed.
#pragma once

#include <base/mutex.h>

#include <host/engine.h>
#include <host/host_kernel.h>
#include <host/interconnect.h>
#include <host/operation_log.h>
#include <limits>
#include <map>
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

// Something that is told when a timeline reaches a value. Told once, by any thread; may then be gone.
struct TimelineWaiter {
    uint64_t value = 0;
    void (*reached)(TimelineWaiter& waiter) = nullptr;
    TimelineWaiter* next = nullptr;
};

// idle -> scheduled -> running -> idle, running -> parked -> scheduled; idle -> running by a helper.
// `running_more`: something was promised meanwhile, look again before becoming idle.
enum class QueueState : uint32_t { idle, scheduled, running, running_more, parked };

class HostQueue final : public driver::Queue {
public:
    struct Options {
        AddressWindow window;
        InterconnectModel* link = nullptr;  // null: copies take as long as they take
    };
    HostQueue(Engine& engine, const Options& options);
    HostQueue(const HostQueue&) = delete;
    HostQueue& operator=(const HostQueue&) = delete;
    ~HostQueue() override;

    driver::Timepoint copy(const driver::CopyOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint fill(const driver::FillOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint call(const driver::HostOperation& operation, const driver::Submission& submission) override;
    driver::Timepoint marker(const driver::Submission& submission) override;
    // For PeerCopy: both addresses are to be dereferenced as they are.
    driver::Timepoint copy_resolved(const std::byte* from, std::byte* to, uint64_t size, LinkDirection direction,
                                    const driver::Submission& submission);

    void flush() override;
    void wait(uint64_t value) override;
    [[nodiscard]] Status status(uint64_t value) const override;

    // Tells `waiter` when the timeline reaches its value; false, and not told, when it already has.
    [[nodiscard]] bool add_waiter(TimelineWaiter& waiter);
    // Makes sure that operations up to `value` are executed without further calls.
    void promise(uint64_t value);

private:
    friend class Engine;
    using State = QueueState;

    // `interrupted`: there is more, which this thread leaves to others.
    enum class Outcome : uint8_t { drained, interrupted, parked };
    enum class Wait : uint8_t { over, parked };

    // For the engine, under its lock.
    [[nodiscard]] bool become_scheduled(State from);
    [[nodiscard]] bool claim_scheduled();
    bool in_ready_list = false;
    HostQueue* next_ready = nullptr;
    // For the engine's workers.
    void run_claimed();

    template <class Record>
    Record& begin_record(OperationKind kind, const driver::Submission& submission, size_t extra_bytes);
    enum class Weight : uint8_t { small, large };
    driver::Timepoint publish(Weight weight);
    [[nodiscard]] uint64_t backlog_at(uint64_t value);

    [[nodiscard]] bool claim();
    [[nodiscard]] bool become_idle();
    void help(uint64_t value, uint32_t depth);
    void sleep_until(uint64_t value);
    Outcome drain(uint64_t limit, uint32_t depth);
    [[nodiscard]] bool waits_are_complete(Operation& operation, uint32_t depth);
    void wait_as_helper(driver::Timepoint timepoint, uint32_t depth);
    [[nodiscard]] Wait wait_as_worker(driver::Timepoint timepoint, uint32_t depth);
    [[nodiscard]] bool fits_this_thread(const Operation& operation) const;
    [[nodiscard]] Status execute(Operation& operation);
    void execute_copy(const CopyRecord& record, Workspace& workspace);
    void complete(uint64_t value);
    void note_failure(uint64_t value, Status status);
    void tell_waiters(uint64_t value);

    Engine& engine_;
    const Options options_;

    // The submitting thread's.
    OperationLog log_;
    uint64_t last_promised_ = 0;  // promised, or seen to be complete

    alignas(64) std::atomic<uint64_t> submitted_{0};

    // The draining thread's.
    alignas(64) std::atomic<State> state_{State::idle};
    std::atomic<uint64_t> promised_{0};
    Operation* current_ = nullptr;  // taken from the log, waiting for its waits
    uint64_t executed_ = 0;
    Workspace workspace_;  // of helping threads
    struct Resumption : TimelineWaiter {
        HostQueue* queue = nullptr;
    } resumption_;

    static constexpr uint64_t nobody = std::numeric_limits<uint64_t>::max();
    std::atomic<uint64_t> lowest_awaited_{nobody};
    mutable Mutex mutex_;
    TimelineWaiter* waiters_ POLDER_GUARDED_BY(mutex_) = nullptr;
    std::atomic<bool> any_failed_{false};
    std::map<uint64_t, Status> failed_ POLDER_GUARDED_BY(mutex_);
};

} // namespace polder::devices
