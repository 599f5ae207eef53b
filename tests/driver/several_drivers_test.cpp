// Queues of different drivers in one process, waiting for each other.
#include "conformance.h"

#include <devices/drivers.h>

#include <array>
#include <example_driver.h>
#include <thread>

namespace polder::conformance {
namespace {

class SeveralDrivers : public testing::Test {
protected:
    void SetUp() override {
        for (const devices::DriverEntry& entry : devices::all_drivers())
            add(entry.make());
        add(example::make_driver());
    }
    void add(std::unique_ptr<driver::Driver> driver) {
        auto device = driver->open(0, SpaceId{static_cast<uint32_t>(drivers_.size() + 1)}, "memory=64M");
        if (!device)
            return;  // this machine lacks the hardware
        drivers_.push_back(std::move(driver));
        devices_.push_back(std::move(*device));
        queues_.push_back(*devices_.back()->create_queue(driver::QueueRole::compute));
        queues_.push_back(*devices_.back()->create_queue(driver::QueueRole::transfer_out));
    }

    std::vector<std::unique_ptr<driver::Driver>> drivers_;
    std::vector<std::unique_ptr<driver::Device>> devices_;
    std::vector<std::unique_ptr<driver::Queue>> queues_;
};

TEST_F(SeveralDrivers, AChainThroughAllQueuesKeepsItsOrder) {
    constexpr int links = 3000;
    std::vector<int> numbers;
    std::vector<AppendNumber> calls;
    calls.reserve(links);
    Timepoint last;
    uint32_t random = 1;
    for (int i = 0; i < links; ++i) {
        calls.push_back({&numbers, i});
        const std::array waits{last};
        random = random * 1664525 + 1013904223;
        last = queues_[(random >> 16) % queues_.size()]->call({AppendNumber::run, &calls.back()}, {waits});
    }
    last.queue->wait(last.value);
    std::vector<int> expected(links);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(numbers, expected);
}

TEST_F(SeveralDrivers, FlushAloneCarriesAChainThroughAllQueues) {
    Timepoint last;
    for (size_t i = 0; i < 600; ++i) {
        const std::array waits{last};
        last = queues_[i % queues_.size()]->marker({waits});
    }
    last.queue->flush();
    while (!last.is_complete())
        std::this_thread::yield();
}

TEST_F(SeveralDrivers, BlockedQueuesOfEveryDriverLeaveTheOthersGoing) {
    // Each driver's first queue waits for a gate on another driver's second queue.
    std::vector<Gate> gates(devices_.size());
    ASSERT_GE(gates.size(), 3u);
    for (size_t i = 0; i < gates.size(); ++i) {
        const std::array waits{queues_[2 * i + 1]->call({Gate::pass, &gates[i]}, {})};
        auto& waiting = *queues_[(2 * i + 2) % queues_.size()];
        static_cast<void>(waiting.marker({waits}));
        waiting.flush();
    }
    for (Gate& gate : gates)
        gate.wait_until_reached();
    // In the opposite order, so that no wait can hide the end of another one.
    for (size_t i = gates.size(); i-- > 0;) {
        auto& waiting = *queues_[(2 * i + 2) % queues_.size()];
        EXPECT_EQ(waiting.completed(), 0u);
        gates[i].open();
        waiting.wait(1);
    }
}

TEST_F(SeveralDrivers, ThreadsSubmitEverywhereAndWaitEverywhere) {
    constexpr int steps = 300;
    std::vector<std::atomic<uint64_t>> newest(queues_.size());
    std::vector<std::thread> threads;
    for (size_t t = 0; t < queues_.size(); ++t)
        threads.emplace_back([&, t] {
            uint32_t random = static_cast<uint32_t>(t) + 1;
            for (int step = 0; step < steps; ++step) {
                random = random * 1664525 + 1013904223;
                const size_t other = (random >> 16) % queues_.size();
                const std::array waits{Timepoint{queues_[other].get(), newest[other].load()}};
                const Timepoint point = queues_[t]->marker({waits});
                newest[t].store(point.value);
                if ((random >> 24) % 16 == 0)
                    queues_[t]->wait(point.value);
                else if ((random >> 24) % 16 == 1)
                    queues_[t]->flush();
            }
            queues_[t]->wait(steps);
        });
    for (std::thread& thread : threads)
        thread.join();
}

} // namespace
} // namespace polder::conformance
