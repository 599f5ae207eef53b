// HiddenQueues: the driver queues of one device and one direction that transfers run on.
//
// Created when first needed and shared by all contexts. A transfer leases one queue while it submits, so no lock is held
// across a driver call; other transfers lease other queues meanwhile.
//
// A queue executes in order. So a transfer must not be submitted behind another one that waits for work which it does not wait for
// itself: that work may depend on a thread of the application, and may never end. Therefore each queue records what its operations
// still wait for, and a lease chooses, in this order:
//   1. a queue without work;
//   2. a new queue, up to `parallel_queues`;
//   3. a queue whose operations wait only for what the new transfer waits for as well (the next one in turn);
//   4. a new queue, up to `max_queues`;
//   5. any queue. Only here can a transfer be held up by others.
// Transfers that wait for one queue at ascending points share a queue by rule 3, so the number of queues grows with the
// number of application queues that are waited for at once, not with the number of transfers.
//
// Any thread. A transfer that needs both directions leases `transfer_out` before `transfer_in`: when all `max_queues` are
// leased, `lease` waits for one, which others give back after submitting.
#pragma once

#include <base/mutex.h>
#include <base/wait_list.h>

#include <memory>
#include <polder/driver.h>
#include <polder/result.h>
#include <utility>
#include <vector>

namespace polder::memory {

class HiddenQueues {
public:
    static constexpr uint32_t parallel_queues = 2;
    static constexpr uint32_t max_queues = 64;

    // `device` may be null; then there are no queues.
    HiddenQueues(driver::Device* device, driver::QueueRole role) : device_(device), role_(role) {}

private:
    struct Entry {
        std::unique_ptr<driver::Queue> queue;
        driver::Timepoint last;
        WaitList pending;  // what its operations wait for, as far as known
        bool leased = false;
    };

public:
    // One queue, to which only the caller submits. The destructor flushes the queue and gives it back.
    class [[nodiscard]] Lease {
    public:
        Lease(Lease&& other) noexcept : owner_(other.owner_), entry_(std::exchange(other.entry_, nullptr)) {}
        Lease& operator=(Lease&&) = delete;
        ~Lease() {
            if (entry_)
                owner_->give_back(*entry_);
        }
        [[nodiscard]] driver::Queue& queue() const { return *entry_->queue; }
        // Must be called with the last submission.
        void submitted(driver::Timepoint last) noexcept { entry_->last = last; }

    private:
        friend class HiddenQueues;
        Lease(HiddenQueues& owner, Entry& entry) : owner_(&owner), entry_(&entry) {}
        HiddenQueues* owner_;
        Entry* entry_;
    };
    // Leases a queue for operations that wait for `waits`. `preferred` is chosen if it is one of these queues and not leased: it executes
    // earlier operations of the same transfer. Fails when there is no device, or the first queue cannot be created.
    [[nodiscard]] Result<Lease> lease(driver::Waits waits, const driver::Queue* preferred = nullptr);

private:
    // Returns null when all queues are leased.
    [[nodiscard]] Result<Entry*> choose(driver::Waits waits, const driver::Queue* preferred) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Entry* idle() POLDER_REQUIRES(mutex_);
    [[nodiscard]] Entry* in_turn(const driver::Waits* waits) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Result<Entry*> add() POLDER_REQUIRES(mutex_);
    void give_back(Entry& entry) noexcept;

    driver::Device* device_;
    driver::QueueRole role_;
    Mutex mutex_;  // held while a queue is chosen, never during a submission
    ConditionVariable given_back_;
    uint32_t waiting_ POLDER_GUARDED_BY(mutex_) = 0;  // threads that wait for a lease
    std::vector<std::unique_ptr<Entry>> entries_ POLDER_GUARDED_BY(mutex_);
    size_t next_ POLDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace polder::memory
