// Order, timelines and waits.
#include "conformance.h"

#include <array>
#include <thread>

namespace polder::conformance {

TEST_P(DriverConformance, ANewQueueHasAnEmptyTimeline) {
    const auto queue = make_queue();
    EXPECT_EQ(queue->completed(), 0u);
    EXPECT_EQ(queue->started(), 0u);
    queue->flush();
    queue->wait(0);
    EXPECT_TRUE(Timepoint{}.is_complete());
}

TEST_P(DriverConformance, TimepointsCountUpByOneAndNameTheirQueue) {
    const auto queue = make_queue();
    for (uint64_t i = 1; i <= 100; ++i) {
        const Timepoint point = queue->marker({});
        EXPECT_EQ(point.queue, queue.get());
        EXPECT_EQ(point.value, i);
    }
    queue->wait(100);
    EXPECT_EQ(queue->completed(), 100u);
    EXPECT_EQ(queue->status(100), Status::success);
}

TEST_P(DriverConformance, OperationsExecuteInTheOrderOfTheirSubmission) {
    constexpr int count = 1000;
    std::vector<int> numbers;
    std::vector<AppendNumber> calls;
    for (int i = 0; i < count; ++i)
        calls.push_back({&numbers, i});
    const auto queue = make_queue();
    for (AppendNumber& call : calls)
        static_cast<void>(queue->call({AppendNumber::run, &call}, {}));
    queue->wait(count);
    std::vector<int> expected(count);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(numbers, expected);
}

TEST_P(DriverConformance, WaitReturnsAtItsValueAndNotBefore) {
    std::vector<int> numbers;
    AppendNumber call{&numbers, 7};
    const auto queue = make_queue();
    Gate gate;
    const Timepoint first = queue->call({AppendNumber::run, &call}, {});
    const Timepoint second = queue->call({Gate::pass, &gate}, {});
    queue->flush();
    queue->wait(first.value);
    EXPECT_EQ(numbers, std::vector<int>{7});
    EXPECT_FALSE(second.is_complete());
    gate.open();
    queue->wait(second.value);
    EXPECT_TRUE(second.is_complete());
}

TEST_P(DriverConformance, FlushAloneMakesWorkHappen) {
    Gate gate;
    const auto queue = make_queue();
    const Timepoint point = queue->call({Gate::pass, &gate}, {});
    queue->flush();
    gate.wait_until_reached();
    EXPECT_GE(queue->started(), point.value);
    EXPECT_LT(queue->completed(), point.value);
    gate.open();
    while (!point.is_complete())
        std::this_thread::yield();
}

TEST_P(DriverConformance, FlushAloneExecutesSmallOperations) {
    const auto queue = make_queue();
    for (int round = 0; round < 50; ++round) {
        Timepoint last;
        for (int i = 0; i < round; ++i)
            last = queue->marker({});
        queue->flush();
        while (!last.is_complete())
            std::this_thread::yield();
    }
}

TEST_P(DriverConformance, OperationsWaitForTimepointsOfOtherQueues) {
    std::vector<int> numbers;
    AppendNumber before{&numbers, 1};
    AppendNumber after{&numbers, 2};
    const auto first = make_queue();
    const auto second = make_queue();
    Gate gate;
    static_cast<void>(first->call({Gate::pass, &gate}, {}));
    const std::array waits{first->call({AppendNumber::run, &before}, {})};
    const Timepoint done = second->call({AppendNumber::run, &after}, {waits});
    second->flush();
    gate.wait_until_reached();
    EXPECT_FALSE(done.is_complete());
    gate.open();
    wait(done);
    EXPECT_EQ(numbers, (std::vector<int>{1, 2}));
}

TEST_P(DriverConformance, WaitingForAQueueThatWasNotFlushedMakesProgress) {
    const auto first = make_queue();
    const auto second = make_queue();
    const std::array waits{first->marker({})};
    const Timepoint done = second->marker({waits});
    wait(done);
    EXPECT_TRUE(waits[0].is_complete());
}

TEST_P(DriverConformance, WaitsOnTheOwnQueueAndOnNothingAreAllowed) {
    const auto queue = make_queue();
    const std::array waits{Timepoint{}, queue->marker({}), Timepoint{}};
    wait(queue->marker({waits}));
    EXPECT_EQ(queue->completed(), 2u);
}

TEST_P(DriverConformance, AnOperationMayWaitForManyQueues) {
    constexpr size_t count = 40;
    std::vector<std::unique_ptr<driver::Queue>> queues;
    std::vector<Timepoint> waits;
    for (size_t i = 0; i < count; ++i) {
        queues.push_back(make_queue());
        waits.push_back(queues.back()->marker({}));
    }
    const auto last = make_queue();
    wait(last->marker({waits}));
    for (const Timepoint point : waits)
        EXPECT_TRUE(point.is_complete());
}

TEST_P(DriverConformance, ALongChainThroughManyQueuesEnds) {
    constexpr size_t queue_count = 50;
    constexpr int links = 5000;
    std::vector<std::unique_ptr<driver::Queue>> queues;
    for (size_t i = 0; i < queue_count; ++i)
        queues.push_back(make_queue());
    std::vector<int> numbers;
    std::vector<AppendNumber> calls;
    calls.reserve(links);
    Timepoint last;
    for (int i = 0; i < links; ++i) {
        calls.push_back({&numbers, i});
        const std::array waits{last};
        last = queues[static_cast<size_t>(i * 7) % queue_count]->call({AppendNumber::run, &calls.back()}, {waits});
    }
    wait(last);
    std::vector<int> expected(links);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(numbers, expected);
}

namespace {
// Another driver's queue with one operation, which fails when the test says so.
class FailingQueue final : public driver::Queue {
public:
    [[nodiscard]] Timepoint operation() { return {this, 1}; }
    void fail() {
        completed_.store(1, std::memory_order_release);
        completed_.notify_all();
    }
    Timepoint copy(const CopyOperation&, const driver::Submission&) override { return {}; }
    Timepoint fill(const driver::FillOperation&, const driver::Submission&) override { return {}; }
    Timepoint launch(const driver::LaunchOperation&, const driver::Submission&) override { return {}; }
    Timepoint call(const driver::HostOperation&, const driver::Submission&) override { return {}; }
    Timepoint marker(const driver::Submission&) override { return {}; }
    void flush() override {}
    void wait(uint64_t) override { completed_.wait(0); }
    [[nodiscard]] Status status(uint64_t value) const override {
        return value == 1 ? Status::out_of_resources : Status::success;
    }
};

constexpr Status wait_failed = Status::exec_status_error_for_events_in_wait_list;
} // namespace

TEST_P(DriverConformance, AnOperationWhoseWaitFailsIsNotExecutedAndFails) {
    for (const bool fails_before : {false, true}) {
        SCOPED_TRACE(fails_before);
        FailingQueue other;
        if (fails_before)
            other.fail();
        const auto queue = make_queue();
        const std::array waits{other.operation()};
        std::vector<int> numbers;
        AppendNumber call{&numbers, 1};
        AppendNumber later{&numbers, 2};
        const DeviceBytes memory(device(), 64);
        const Bytes ones(64, std::byte{1});
        Bytes seen(64, std::byte{7});
        static_cast<void>(upload(*queue, memory.at(), ones.data(), 64));
        driver::OperationTimes times;
        const Timepoint called = queue->call({AppendNumber::run, &call}, {waits, &times});
        const Timepoint copied = download(*queue, seen.data(), memory.at(), 64, waits);
        const std::array<std::byte, 1> pattern{std::byte{9}};
        const Timepoint filled = queue->fill({memory.at(), 64, pattern}, {waits});
        const Timepoint independent = queue->call({AppendNumber::run, &later}, {});
        queue->flush();
        other.fail();
        wait(independent);
        for (const Timepoint point : {called, copied, filled})
            EXPECT_EQ(queue->status(point.value), wait_failed);
        EXPECT_LE(times.start_ns.load(), times.end_ns.load());
        EXPECT_NE(times.end_ns.load(), 0u);
        EXPECT_EQ(queue->status(independent.value), Status::success);
        EXPECT_EQ(numbers, std::vector<int>{2});
        EXPECT_EQ(seen, Bytes(64, std::byte{7}));
        wait(download(*queue, seen.data(), memory.at(), 64));
        EXPECT_EQ(seen, ones);
    }
}

TEST_P(DriverConformance, FailuresTravelAlongTheTimelines) {
    for (const bool fails_before : {false, true}) {
        SCOPED_TRACE(fails_before);
        FailingQueue other;
        if (fails_before)
            other.fail();
        const auto first = make_queue();
        const auto second = make_queue();
        const std::array from_other{other.operation()};
        const std::array from_first{first->marker({from_other})};
        if (fails_before)
            wait(from_first[0]);
        const std::array from_second{second->marker({from_first})};
        const Timepoint unrelated = second->marker({});
        // A wait for the same queue, which is over when the operation begins.
        const Timepoint last = second->marker({from_second});
        second->flush();
        other.fail();
        wait(last);
        EXPECT_EQ(first->status(from_first[0].value), wait_failed);
        EXPECT_EQ(second->status(from_second[0].value), wait_failed);
        EXPECT_EQ(second->status(unrelated.value), Status::success);
        EXPECT_EQ(second->status(last.value), wait_failed);
    }
}

TEST_P(DriverConformance, ABlockedQueueDoesNotStopTheOthers) {
    constexpr size_t blocked_count = 20;
    std::vector<std::unique_ptr<driver::Queue>> blocked;
    std::array<Gate, blocked_count> gates;
    for (Gate& gate : gates) {
        blocked.push_back(make_queue());
        static_cast<void>(blocked.back()->call({Gate::pass, &gate}, {}));
        blocked.back()->flush();
    }
    for (Gate& gate : gates)
        gate.wait_until_reached();
    const auto free_queue = make_queue();
    const Timepoint point = free_queue->marker({});
    free_queue->flush();
    while (!point.is_complete())
        std::this_thread::yield();
    for (Gate& gate : gates)
        gate.open();
    for (const auto& queue : blocked)
        queue->wait(1);
}

TEST_P(DriverConformance, ManyQueuesParkedOnOneTimepointAllGoOn) {
    constexpr size_t count = 64;
    Gate gate;
    const auto first = make_queue();
    const std::array waits{first->call({Gate::pass, &gate}, {})};
    std::vector<std::unique_ptr<driver::Queue>> queues;
    for (size_t i = 0; i < count; ++i) {
        queues.push_back(make_queue());
        static_cast<void>(queues.back()->marker({waits}));
        queues.back()->flush();
    }
    gate.wait_until_reached();
    for (const auto& queue : queues)
        EXPECT_EQ(queue->completed(), 0u);
    gate.open();
    for (const auto& queue : queues)
        queue->wait(1);
}

TEST_P(DriverConformance, TheTimelineNeverGoesBackAndStartedLeads) {
    constexpr uint64_t count = 20000;
    const auto queue = make_queue();
    std::atomic<bool> stop{false};
    std::thread watcher([&] {
        uint64_t seen = 0;
        while (!stop.load()) {
            const uint64_t completed = queue->completed();
            EXPECT_GE(completed, seen);
            EXPECT_GE(queue->started(), completed);
            seen = completed;
        }
    });
    for (uint64_t i = 0; i < count; ++i)
        static_cast<void>(queue->marker({}));
    queue->wait(count);
    stop.store(true);
    watcher.join();
}

TEST_P(DriverConformance, AThreadThatSeesACompletionSeesWhatWasWritten) {
    const auto queue = make_queue();
    for (int round = 0; round < 200; ++round) {
        std::vector<int> numbers;
        AppendNumber call{&numbers, round};
        const Timepoint point = queue->call({AppendNumber::run, &call}, {});
        queue->flush();
        while (!point.is_complete())
            std::this_thread::yield();
        ASSERT_EQ(numbers, std::vector<int>{round});
    }
}

TEST_P(DriverConformance, SeveralThreadsMayWaitForOneQueue) {
    constexpr uint64_t count = 400;
    const auto queue = make_queue();
    for (uint64_t i = 0; i < count; ++i)
        static_cast<void>(queue->marker({}));
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (uint64_t value = t + 1; value <= count; value += 4) {
                queue->wait(value);
                EXPECT_GE(queue->completed(), value);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST_P(DriverConformance, EightThreadsSubmitAndWaitAcrossQueues) {
    constexpr int thread_count = 8;
    constexpr int steps = 500;
    std::vector<std::unique_ptr<driver::Queue>> queues;
    for (int i = 0; i < thread_count; ++i)
        queues.push_back(make_queue());
    // The newest timepoint of each thread's queue, for the others to wait for.
    std::array<std::atomic<uint64_t>, thread_count> newest{};
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t)
        threads.emplace_back([&, t] {
            uint32_t random = static_cast<uint32_t>(t) + 1;
            auto& mine = *queues[static_cast<size_t>(t)];
            for (int step = 0; step < steps; ++step) {
                random = random * 1664525 + 1013904223;
                const size_t other = (random >> 16) % thread_count;
                const std::array waits{Timepoint{queues[other].get(), newest[other].load()}};
                const Timepoint point = mine.marker({waits});
                newest[static_cast<size_t>(t)].store(point.value);
                if ((random >> 24) % 8 == 0) {
                    mine.wait(point.value);
                    EXPECT_TRUE(waits[0].is_complete());
                } else if ((random >> 24) % 8 == 1) {
                    mine.flush();
                }
            }
            mine.wait(steps);
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST_P(DriverConformance, TimesAreMonotonicAndBetweenTheHostsOwn) {
    constexpr size_t count = 20;
    const auto queue = make_queue();
    std::array<driver::OperationTimes, count> times;
    const uint64_t before_ns = device().now_ns();
    for (driver::OperationTimes& time : times)
        static_cast<void>(queue->marker({{}, &time}));
    queue->wait(count);
    const uint64_t after_ns = device().now_ns();
    uint64_t previous_ns = before_ns;
    for (const driver::OperationTimes& time : times) {
        EXPECT_LE(previous_ns, time.start_ns.load());
        EXPECT_LE(time.start_ns.load(), time.end_ns.load());
        previous_ns = time.end_ns.load();
    }
    EXPECT_LE(previous_ns, after_ns);
}

TEST_P(DriverConformance, AQueueIsDestroyedRightAfterItsLastWait) {
    for (int round = 0; round < 300; ++round) {
        const auto first = make_queue();
        const auto second = make_queue();
        const std::array waits{first->marker({})};
        const Timepoint point = second->marker({waits});
        second->flush();
        wait(point);
    }
}

} // namespace polder::conformance
