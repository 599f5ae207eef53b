// Fences: a queue that calls the queues which wait for its timeline.
#include "../unit/support/stub_queue.h"
#include "conformance.h"

#include <array>
#include <deque>
#include <thread>

namespace polder::conformance {
namespace {

struct Signal : driver::FenceWaiter {
    explicit Signal(Timepoint point) : queue(*point.queue) {
        value = point.value;
        reached = [](driver::FenceWaiter& waiter) {
            auto& me = static_cast<Signal&>(waiter);
            me.was_complete = me.queue.completed() >= me.value;
            me.status = me.queue.status(me.value);
            me.calls.fetch_add(1);
            me.calls.notify_all();
        };
    }
    void wait() const { calls.wait(0); }

    driver::Queue& queue;
    std::atomic<int> calls{0};
    bool was_complete = false;
    Status status = Status::success;
};

}  // namespace

TEST_P(DriverConformance, AFenceCallsOnceAndNotBefore) {
    const auto queue = make_queue();
    driver::Fence* const fence = queue->fence();
    if (!fence)
        GTEST_SKIP() << "has no fences";
    Gate gate;
    static_cast<void>(queue->call({Gate::pass, &gate}, {}));
    Signal middle{queue->marker({})};
    Signal last{queue->marker({})};
    ASSERT_TRUE(fence->notify(last));
    ASSERT_TRUE(fence->notify(middle));
    // Nothing but `notify` has flushed.
    gate.wait_until_reached();
    EXPECT_EQ(middle.calls.load() + last.calls.load(), 0);
    gate.open();
    middle.wait();
    last.wait();
    EXPECT_TRUE(middle.was_complete && last.was_complete);
    queue->wait(3);
    EXPECT_EQ(middle.calls.load(), 1);
    EXPECT_EQ(last.calls.load(), 1);
    EXPECT_EQ(last.status, Status::success);
}

TEST_P(DriverConformance, AFenceCallsForFailuresToo) {
    const auto queue = make_queue();
    driver::Fence* const fence = queue->fence();
    if (!fence)
        GTEST_SKIP() << "has no fences";
    Gate gate;
    static_cast<void>(queue->call({Gate::pass, &gate}, {}));
    test::FailedQueue failed;
    const std::array waits{Timepoint{&failed, 1}};
    Signal signal{queue->marker({waits})};
    ASSERT_TRUE(fence->notify(signal));
    gate.open();
    signal.wait();
    EXPECT_EQ(signal.status, Status::exec_status_error_for_events_in_wait_list);
    queue->wait(2);
}

TEST_P(DriverConformance, ManyThreadsWaitAtOneFence) {
    const auto queue = make_queue();
    driver::Fence* const fence = queue->fence();
    if (!fence)
        GTEST_SKIP() << "has no fences";
    constexpr uint64_t points = 200;
    std::atomic<uint64_t> missed{0};
    std::deque<Signal> signals;
    for (uint64_t i = 0; i < 2 * points; ++i)
        signals.emplace_back(Timepoint{queue.get(), 1 + i / 2});
    std::atomic<uint64_t> submitted{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 2; ++t)
        threads.emplace_back([&, t] {
            for (uint64_t i = 0; i < points; ++i) {
                while (submitted.load() <= i)
                    std::this_thread::yield();
                // False: it was there already.
                if (fence->notify(signals[2 * i + t]))
                    signals[2 * i + t].wait();
                else
                    ++missed;
                EXPECT_GE(queue->completed(), i + 1);
            }
        });
    for (uint64_t i = 0; i < points; ++i) {
        static_cast<void>(queue->marker({}));
        submitted.store(i + 1);
    }
    for (std::thread& thread : threads)
        thread.join();
    queue->wait(points);
    uint64_t called = 0;
    for (const Signal& signal : signals)
        called += static_cast<uint64_t>(signal.calls.load());
    EXPECT_EQ(called + missed.load(), 2 * points);
}

}  // namespace polder::conformance
