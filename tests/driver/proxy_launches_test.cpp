// Launches through the proxy: an event costs as much as a launch, so it is made only where one is needed.
#include "proxy_driver.h"

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace polder::conformance {
namespace {

class ProxyLaunches : public ProxyDriver {
protected:
    void SetUp() override {
        ProxyDriver::SetUp();
        memory_.emplace(device(), 4096);
        kernel_ = *device().load(fake_icd::code_of({.function = CountVisits::run}));
        const Bytes zeros(4096);
        const auto queue = make_queue();
        EXPECT_EQ(status_of(upload(*queue, memory_->at(), zeros)), Status::success);
    }
    void TearDown() override {
        kernel_.reset();
        memory_.reset();
        ProxyDriver::TearDown();
    }
    Timepoint launch(driver::Queue& queue, driver::OperationTimes* times = nullptr) {
        const CountVisits arguments{memory_->at().value};
        return queue.launch(launch_of(*kernel_, arguments), {{}, times});
    }
    Timepoint launch_after(driver::Queue& queue, driver::Waits waits) {
        const CountVisits arguments{memory_->at().value};
        return queue.launch(launch_of(*kernel_, arguments), {waits});
    }
    [[nodiscard]] DeviceAddress at() const { return memory_->at(); }
    [[nodiscard]] uint64_t events() const { return calls_("event"); }
    uint32_t visits() {
        const auto queue = make_queue();
        uint32_t seen = 0;
        EXPECT_EQ(status_of(queue->copy({device_end(memory_->at()), host_end(&seen), {sizeof seen, 1, 1}}, {})),
                  Status::success);
        return seen;
    }

private:
    std::optional<DeviceBytes> memory_;
    std::unique_ptr<driver::LoadedKernel> kernel_;
    const fake_icd::Calls calls_ = fake_icd::find<fake_icd::Calls>("fake_icd_calls");
};

TEST_F(ProxyLaunches, HaveOneEventFor64OfThem) {
    const auto queue = make_queue();
    const uint64_t before = events();
    Timepoint last;
    for (int i = 0; i < 640; ++i)
        last = launch(*queue);
    EXPECT_EQ(status_of(last), Status::success);
    EXPECT_EQ(queue->completed(), 640u);
    EXPECT_EQ(events() - before, 10u);
    EXPECT_EQ(visits(), 640u);
}

TEST_F(ProxyLaunches, WhoseTimesAreWantedHaveAnEventEach) {
    const auto queue = make_queue();
    const uint64_t before = events();
    std::array<driver::OperationTimes, 16> times;
    Timepoint last;
    for (driver::OperationTimes& of : times)
        last = launch(*queue, &of);
    EXPECT_EQ(status_of(last), Status::success);
    EXPECT_EQ(events() - before, 16u);
    for (const driver::OperationTimes& of : times)
        EXPECT_GE(of.end_ns.load(), of.start_ns.load());
}

TEST_F(ProxyLaunches, ThatAreAwaitedAllTheSameEndWithTheNextEvent) {
    const auto queue = make_queue();
    std::vector<Timepoint> points;
    for (int i = 0; i < 20; ++i)
        points.push_back(launch(*queue));
    for (const size_t i : {size_t{2}, size_t{9}, size_t{17}, size_t{19}}) {
        EXPECT_EQ(status_of(points[i]), Status::success);
        EXPECT_GE(queue->completed(), points[i].value);
    }
    EXPECT_EQ(visits(), 20u);
}

// A thread that waits for one launch may wait for others, too.
TEST_F(ProxyLaunches, HaveAnEventEachAfterOneWithoutWasAwaited) {
    const auto queue = make_queue();
    const Timepoint awaited = launch(*queue);
    Timepoint last = launch(*queue);
    EXPECT_EQ(status_of(awaited), Status::success);
    EXPECT_EQ(status_of(last), Status::success);
    const uint64_t before = events();
    for (int i = 0; i < 20; ++i)
        last = launch(*queue);
    EXPECT_EQ(status_of(last), Status::success);
    EXPECT_EQ(events() - before, 20u);
}

// A kernel that waits for the test, and counts at its end.
struct GatedCount {
    static inline std::atomic<bool> is_open{true};
    static inline std::atomic<uint64_t> executed{0};
    static void run(const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
        is_open.wait(false);
        executed.fetch_add(1);
    }
    static void open() {
        is_open = true;
        is_open.notify_all();
    }
};

class GatedProxyLaunches : public ProxyDriver {
protected:
    void SetUp() override {
        ProxyDriver::SetUp();
        kernel_ = *device().load(fake_icd::code_of({.function = GatedCount::run}));
        GatedCount::executed = 0;
        GatedCount::is_open = false;
    }
    void TearDown() override {
        GatedCount::open();
        kernel_.reset();
        ProxyDriver::TearDown();
    }
    Timepoint launch(driver::Queue& queue) {
        driver::LaunchOperation operation;
        operation.kernel = kernel_.get();
        return queue.launch(operation, {});
    }

private:
    std::unique_ptr<driver::LoadedKernel> kernel_;
};

// Long enough for a thread of a queue to publish what has not executed.
void expect_none_complete(const driver::Queue& queue) {
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(queue.completed(), 0u);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

TEST_F(GatedProxyLaunches, ThatAnotherQueueWaitsForComeFirst) {
    const auto first = make_queue(), second = make_queue();
    for (int i = 0; i < 3; ++i)
        static_cast<void>(launch(*first));
    const std::array waits{launch(*first)};
    const Timepoint marker = second->marker({waits});
    second->flush();
    expect_none_complete(*second);
    GatedCount::open();
    EXPECT_EQ(status_of(marker), Status::success);
    EXPECT_TRUE(waits[0].is_complete());
    EXPECT_EQ(GatedCount::executed.load(), 4u);
}

TEST_F(GatedProxyLaunches, AreCompleteSomeTimeAfterAFlushWhenTheyHaveExecuted) {
    const auto queue = make_queue();
    Timepoint last;
    for (int i = 0; i < 3; ++i)
        last = launch(*queue);
    queue->flush();
    expect_none_complete(*queue);
    GatedCount::open();
    while (!last.is_complete())
        std::this_thread::yield();
    EXPECT_EQ(GatedCount::executed.load(), 3u);
}

TEST_F(GatedProxyLaunches, ThatAreAwaitedHaveExecuted) {
    const auto queue = make_queue();
    std::vector<Timepoint> points;
    for (int i = 0; i < 5; ++i)
        points.push_back(launch(*queue));
    std::thread opens([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        GatedCount::open();
    });
    for (const size_t i : {size_t{1}, size_t{4}}) {
        EXPECT_EQ(status_of(points[i]), Status::success);
        EXPECT_GE(GatedCount::executed.load(), points[i].value);
    }
    opens.join();
}

TEST_F(ProxyLaunches, ThatFailWithTheEventBehindThemFail) {
    const auto queue = make_queue();
    fail_call("execute", -9999);
    driver::OperationTimes times;
    const Timepoint without = launch(*queue);
    const Timepoint with = launch(*queue, &times);
    const Timepoint behind = queue->marker({});
    EXPECT_EQ(status_of(with), Status::out_of_resources);
    EXPECT_EQ(status_of(without), Status::out_of_resources);
    EXPECT_EQ(status_of(behind), Status::success);
    mend("execute");
}

TEST_F(ProxyLaunches, ThatAreRefusedFailAlone) {
    const auto queue = make_queue();
    std::vector<Timepoint> points;
    for (int i = 0; i < 9; ++i) {
        if (i == 4)
            fail_call("clEnqueueNDRangeKernel", CL_OUT_OF_HOST_MEMORY);
        points.push_back(launch(*queue));
        if (i == 4)
            mend("clEnqueueNDRangeKernel");
    }
    queue->wait(points.back().value);
    for (size_t i = 0; i < points.size(); ++i)
        EXPECT_EQ(queue->status(points[i].value), i == 4 ? Status::out_of_host_memory : Status::success) << i;
    EXPECT_EQ(visits(), 8u);
}

// A failed command fails the commands that wait for it, also through launches in between, and no others.
TEST_F(ProxyLaunches, FailWithWhatTheyWaitForAndNotWithTheirNeighbours) {
    const auto queue = make_queue();
    fail_call("clEnqueueFillBuffer", CL_OUT_OF_HOST_MEMORY);
    const std::array<std::byte, 1> zero{};
    const std::array failed{queue->fill({at(), 64, zero}, {})};
    mend("clEnqueueFillBuffer");
    const std::array first{launch_after(*queue, failed)};
    const std::array second{launch_after(*queue, first)};
    const Timepoint neighbour = launch(*queue);
    const Timepoint third = launch_after(*queue, second);
    const Timepoint other = launch_after(*queue, std::array{neighbour});
    for (const Timepoint fails : {first[0], second[0], third})
        EXPECT_EQ(status_of(fails), Status::exec_status_error_for_events_in_wait_list);
    for (const Timepoint succeeds : {neighbour, other})
        EXPECT_EQ(status_of(succeeds), Status::success);
    EXPECT_EQ(visits(), 2u);
}

TEST_F(ProxyLaunches, AreAwaitedWhileOthersFollow) {
    constexpr uint64_t launches = 3000;
    const auto queue = make_queue();
    std::atomic<uint64_t> launched{0};
    std::thread waits([&] {
        for (uint64_t value = 0; value < launches;) {
            const uint64_t newest = launched.load();
            if (newest == value)
                continue;
            value = newest;
            queue->wait(value);
            EXPECT_GE(queue->completed(), value);
            EXPECT_EQ(queue->status(value), Status::success);
        }
    });
    Timepoint last;
    for (uint64_t i = 0; i < launches; ++i) {
        last = i % 7 == 0 ? launch(*queue) : launch_after(*queue, std::array{last});
        launched.store(last.value);
    }
    waits.join();
    EXPECT_EQ(visits(), launches);
}

// No marker can be made: the whole queue is waited for.
TEST_F(ProxyLaunches, WithoutAnEventOrAMarkerEndWithTheQueue) {
    const auto queue = make_queue();
    const Timepoint first = launch(*queue);
    const Timepoint second = launch(*queue);
    fail_call("clEnqueueMarkerWithWaitList", CL_OUT_OF_HOST_MEMORY);
    EXPECT_EQ(status_of(first), Status::success);
    mend("clEnqueueMarkerWithWaitList");
    EXPECT_EQ(status_of(second), Status::success);
    EXPECT_EQ(visits(), 2u);
}

}  // namespace
}  // namespace polder::conformance
