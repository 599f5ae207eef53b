// HiddenQueues: the driver queues of one device and one direction that transfers run on.
//
// Created when first needed, at most a few, and shared by all contexts. A transfer takes an idle queue if there is
// one, so that one that waits for a long kernel does not hold up the others. Any thread; a Lease
// holds the lock, because submissions to one driver queue must not overlap. Who needs both directions takes
// `transfer_out` before `transfer_in`.
#pragma once

#include <base/mutex.h>

#include <memory>
#include <polder/driver.h>
#include <polder/result.h>

namespace polder::memory {

class HiddenQueues {
public:
    // `device` may be null; then there are no queues.
    HiddenQueues(driver::Device* device, driver::QueueRole role) : device_(device), role_(role) {}

    // One queue, to be submitted to by the caller alone; flushed when given back.
    class [[nodiscard]] Lease {
    public:
        Lease(Lease&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), index_(other.index_) {}
        Lease& operator=(Lease&&) = delete;
        ~Lease() {
            if (owner_)
                owner_->give_back(index_);
        }
        [[nodiscard]] driver::Queue& queue() const { return owner_->queue(index_); }
        // Must be told of the last submission.
        void submitted(driver::Timepoint last) { owner_->note(index_, last); }

    private:
        friend class HiddenQueues;
        Lease(HiddenQueues& owner, uint32_t index) : owner_(&owner), index_(index) {}
        HiddenQueues* owner_;
        uint32_t index_;
    };
    [[nodiscard]] Result<Lease> lease();

private:
    static constexpr uint32_t max_queues = 2;
    struct Entry {
        std::unique_ptr<driver::Queue> queue;
        driver::Timepoint last;
    };
    [[nodiscard]] driver::Queue& queue(uint32_t index) { return *entries_[index].queue; }
    void note(uint32_t index, driver::Timepoint last) { entries_[index].last = last; }
    void give_back(uint32_t index);
    [[nodiscard]] Result<uint32_t> choose();

    driver::Device* device_;
    driver::QueueRole role_;
    Mutex mutex_;  // held from lease() to the end of the Lease
    Entry entries_[max_queues];
    uint32_t count_ = 0;
    uint32_t next_ = 0;
};

} // namespace polder::memory
