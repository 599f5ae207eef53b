// A driver queue with a fence that the test steps, for tests of queues that wait for it.
#pragma once

#include "../unit/support/stub_queue.h"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace polder::conformance {

class FencedQueue final : public test::StubQueue, private driver::Fence {
public:
    // A fence that refuses is one that cannot promise the call.
    enum class Fences : uint8_t { call, refuse, are_none };
    explicit FencedQueue(Fences fences) : fences_(fences) {}

    [[nodiscard]] driver::Fence* fence() override { return fences_ == Fences::are_none ? nullptr : this; }
    [[nodiscard]] Status status(uint64_t value) const override {
        return value == failed_ ? Status::out_of_resources : Status::success;
    }
    void wait(uint64_t value) override {
        std::unique_lock lock(mutex_);
        ++waiting_threads_;
        changed_.wait(lock, [&] { return completed() >= value; });
    }

    void fail(uint64_t value) { failed_ = value; }
    // Completes everything up to `value`, on the calling thread.
    void reach(uint64_t value) {
        std::vector<driver::FenceWaiter*> reached;
        {
            const std::lock_guard lock(mutex_);
            completed_.store(value, std::memory_order_release);
            for (driver::FenceWaiter*& waiter : waiters_)
                if (waiter->value <= value)
                    reached.push_back(std::exchange(waiter, nullptr));
            std::erase(waiters_, nullptr);
        }
        changed_.notify_all();
        for (driver::FenceWaiter* const waiter : reached)
            waiter->reached(*waiter);
    }
    // How many waits there were on threads, and by the fence.
    [[nodiscard]] uint32_t waiting_threads() const {
        const std::lock_guard lock(mutex_);
        return waiting_threads_;
    }
    [[nodiscard]] uint32_t notified() const {
        const std::lock_guard lock(mutex_);
        return notified_;
    }

private:
    [[nodiscard]] bool notify(driver::FenceWaiter& waiter) override {
        const std::lock_guard lock(mutex_);
        if (fences_ == Fences::refuse || completed() >= waiter.value)
            return false;
        ++notified_;
        waiters_.push_back(&waiter);
        return true;
    }

    const Fences fences_;
    uint64_t failed_ = 0;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<driver::FenceWaiter*> waiters_;
    uint32_t waiting_threads_ = 0;
    uint32_t notified_ = 0;
};

}  // namespace polder::conformance
