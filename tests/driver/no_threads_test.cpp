// The CPU device when the system refuses to start threads: submitted operations are executed by the threads
// that flush and wait, and by those of other devices.
#include "../support/refused_threads.h"
#include "conformance.h"
#include "driver_named.h"
#include "kernels.h"

#include <array>
#include <chrono>
#include <thread>
#include <unistd.h>

namespace polder::conformance {
namespace {

using test::refuse_threads;

class NoThreads : public testing::Test {
protected:
    void SetUp() override {
        cpu_driver_ = driver_named("cpu");
        cpu_ = *cpu_driver_->open(0, host_space, "");
        refuse_threads.store(true);
    }
    // Opens the discrete device, which starts its one worker then.
    void open_discrete() {
        refuse_threads.store(false);
        discrete_driver_ = driver_named("discrete");
        discrete_ = *discrete_driver_->open(0, SpaceId{1}, "memory=1M");
        refuse_threads.store(true);
    }
    void TearDown() override { refuse_threads.store(false); }
    static std::unique_ptr<driver::Queue> queue_of(driver::Device& device) {
        return *device.create_queue(driver::QueueRole::compute);
    }

    // A hang ends the test with SIGALRM, also one in a destructor of what follows.
    struct Alarm {
        Alarm() { alarm(60); }
        ~Alarm() { alarm(0); }
    } alarm_;
    std::unique_ptr<driver::Driver> discrete_driver_, cpu_driver_;
    std::unique_ptr<driver::Device> discrete_, cpu_;
};

TEST_F(NoThreads, ADiscreteQueueThatWaitsForTheCpuGoesOn) {
    open_discrete();
    const auto cpu = queue_of(*cpu_);
    const auto discrete = queue_of(*discrete_);
    std::vector<int> numbers;
    AppendNumber call{&numbers, 7};
    const std::array waits{cpu->call({AppendNumber::run, &call}, {})};
    const Timepoint done = discrete->marker({waits});
    discrete->wait(done.value);
    EXPECT_EQ(numbers, std::vector<int>{7});
}

TEST_F(NoThreads, AChainThroughBothDevicesEnds) {
    open_discrete();
    constexpr size_t queue_count = 40;
    constexpr int links = 2000;
    std::vector<std::unique_ptr<driver::Queue>> queues;
    for (size_t i = 0; i < queue_count; ++i)
        queues.push_back(queue_of(i % 3 == 0 ? *discrete_ : *cpu_));
    Timepoint last;
    for (int i = 0; i < links; ++i) {
        const std::array waits{last};
        last = queues[static_cast<size_t>(i * 7) % queue_count]->marker({waits});
    }
    last.queue->wait(last.value);
    EXPECT_TRUE(last.is_complete());
}

TEST_F(NoThreads, AChainThroughTheCpuAloneEnds) {
    constexpr size_t queue_count = 40;
    std::vector<std::unique_ptr<driver::Queue>> queues;
    for (size_t i = 0; i < queue_count; ++i)
        queues.push_back(queue_of(*cpu_));
    Timepoint last;
    for (size_t i = 0; i < 2000; ++i) {
        const std::array waits{last};
        last = queues[i * 7 % queue_count]->marker({waits});
    }
    last.queue->flush();
    EXPECT_TRUE(last.is_complete());
}

TEST_F(NoThreads, FlushAloneOnTheCpuIsServedByAnotherDevicesWorker) {
    open_discrete();
    const auto queue = queue_of(*cpu_);
    const Timepoint point = queue->marker({});
    queue->flush();
    while (!point.is_complete())
        std::this_thread::yield();
}

// While the processor's pool asks for a thread and is refused, the other device's worker has nothing to do, is in its pool's list of
// idle workers, and waits for the lock under which it may take the processor's queue. So it takes the queue, and is also woken for it. The
// wake ended its next sleep while it was in the list: it was added twice, and the list became a circle.
TEST_F(NoThreads, AWorkerThatIsWokenLateIsIdleOnce) {
    open_discrete();
    const auto cpu = queue_of(*cpu_);
    const auto discrete = queue_of(*discrete_);
    const auto submit = [&cpu] {
        const Timepoint point = cpu->marker({});
        cpu->flush();
        // A wait could execute it.
        while (!point.is_complete())
            std::this_thread::yield();
    };
    submit();
    test::on_refusal = [&discrete] {
        static_cast<void>(discrete->marker({}));
        discrete->flush();
        // Long enough for the worker to come to that lock. When it is too short, the test passes without having tried.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    for (int round = 0; round < 5; ++round)
        submit();
    test::on_refusal = nullptr;
}

TEST_F(NoThreads, FlushAloneExecutes) {
    const auto queue = queue_of(*cpu_);
    std::vector<int> numbers;
    AppendNumber call{&numbers, 1};
    const Timepoint large = queue->call({AppendNumber::run, &call}, {});
    queue->flush();
    EXPECT_TRUE(large.is_complete());
    const Timepoint small = queue->marker({});
    queue->flush();
    EXPECT_TRUE(small.is_complete());
}

TEST_F(NoThreads, AKernelThatNeedsMoreStackThanThereIsFails) {
    const auto kernel = *cpu_->load(driver::HostCode{.function = DeepStack::run, .stack_bytes = 14 << 20});
    const auto queue = queue_of(*cpu_);
    const DeviceBytes out(*cpu_, 64);
    const DeepStack arguments{out.at().value};
    const Timepoint failed = queue->launch(launch_of(*kernel, arguments), {});
    const Timepoint after = queue->marker({});
    queue->wait(after.value);
    EXPECT_EQ(queue->status(failed.value), Status::out_of_resources);
    EXPECT_EQ(queue->status(after.value), Status::success);
}

TEST_F(NoThreads, WorkersStartAsSoonAsTheSystemAllowsThem) {
    const auto queue = queue_of(*cpu_);
    queue->wait(queue->marker({}).value);
    static_cast<void>(queue->marker({}));
    queue->flush();
    refuse_threads.store(false);
    Gate gate;
    static_cast<void>(queue->call({Gate::pass, &gate}, {}));
    queue->flush();
    // Only another thread can have executed this.
    gate.wait_until_reached();
    gate.open();
    queue->wait(3);
}

}  // namespace
}  // namespace polder::conformance
