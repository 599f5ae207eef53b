// runtime::Queue with commands that fail in ways that a driver's device does not show.
#include "support/stub_queue.h"

#include <runtime/buffer_commands.h>
#include <runtime/platform.h>
#include <runtime/queue.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace polder::runtime {
namespace {

// Submits one operation, which blocks until the gate opens, and then fails, as a command does whose second part is refused.
struct HalfwayCommand final : Command {
    explicit HalfwayCommand(std::promise<void>& opened) : gate(&opened) {}
    Result<driver::Timepoint> submit(Queue&, const memory::Execution& execution) const override {
        static_cast<void>(execution.queue.call(
            {[](void* data) { static_cast<std::promise<void>*>(data)->get_future().wait(); }, gate},
            {execution.waits, execution.times}));
        return fail(Status::out_of_resources);
    }
    std::promise<void>* gate;
};

class QueueTest : public testing::Test {
protected:
    Ref<Queue> make_queue(cl_command_queue_properties properties) {
        setenv("POCL_DEVICES", "cpu", 1);
        const auto devices = Platform::get().devices();
        auto context = Context::create({devices.front()}, {}, nullptr, nullptr);
        return Queue::create(std::move(context), devices.front(), properties, {}).value();
    }
};

TEST_F(QueueTest, TimesOfACommandThatFailedHalfwayLiveUntilTheDriverHasWrittenThem) {
    const Ref<Queue> queue = make_queue(CL_QUEUE_PROFILING_ENABLE);
    std::promise<void> gate;
    EnqueueRequest request;
    request.type = CL_COMMAND_MARKER;
    request.want_event = EnqueueRequest::WantEvent::yes;
    EXPECT_FALSE(queue->enqueue(request, HalfwayCommand(gate)));
    // Freed memory is in use again, for bytes that must not change.
    std::vector<std::unique_ptr<std::byte[]>> blocks;
    const std::vector<std::byte> pattern(sizeof(Event::Times), std::byte{0x5a});
    for (int i = 0; i < 100; ++i) {
        blocks.push_back(std::make_unique<std::byte[]>(pattern.size()));
        std::memcpy(blocks.back().get(), pattern.data(), pattern.size());
    }
    gate.set_value();
    queue->finish();
    for (const auto& block : blocks)
        EXPECT_EQ(std::memcmp(block.get(), pattern.data(), pattern.size()), 0);
}

// A device with driver queues of its own, on the processor.
class DriverQueues : public testing::Test {
protected:
    DriverQueues() {
        setenv("POCL_DEVICES", "cpu", 1);
        const auto processor = Platform::get().devices().front();
        static auto* const slot = new DriverSlot(processor->driver());  // never destroyed, as those of the platform
        device = make_ref<Device>(*slot, processor->space(), "cpu");
    }
    // A queue that has an operation which waits until the gate opens.
    driver::Timepoint make_busy(driver::Timepoint taken) {
        if (!blocked.queue)
            return blocked = taken.queue->call(
                       {[](void* data) { static_cast<std::promise<void>*>(data)->get_future().wait(); }, &gate}, {});
        return taken.queue->marker({{&blocked, 1}});
    }

    Ref<Device> device;
    std::promise<void> gate;
    driver::Timepoint blocked;
};

TEST_F(DriverQueues, ThatHaveWorkAreLeftAlone) {
    const driver::Timepoint busy = make_busy(device->take_queue().value());
    device->give_queue(busy);
    const driver::Timepoint second = device->take_queue().value();
    EXPECT_NE(second.queue, busy.queue);
    device->give_queue(second);
    EXPECT_EQ(device->take_queue()->queue, second.queue) << "it has nothing to do";
    gate.set_value();
    busy.queue->wait(busy.value);
    EXPECT_EQ(device->take_queue()->queue, busy.queue) << "it has nothing to do any more";
}

// A program may create and release queues without waiting.
TEST_F(DriverQueues, ThatHaveWorkAreUsedAgainWhenThereAreMany_InTheOrderOfTheirRelease) {
    std::vector<driver::Timepoint> busy;
    for (size_t i = 0; i < Device::busy_queues_max; ++i)
        busy.push_back(make_busy(device->take_queue().value()));
    for (const driver::Timepoint newest : busy)
        device->give_queue(newest);
    for (size_t i = 0; i < 3; ++i) {
        const driver::Timepoint again = device->take_queue().value();
        EXPECT_EQ(again.queue, busy[i].queue) << i;
        EXPECT_EQ(again.value, busy[i].value) << i;
        device->give_queue(again);
    }
    gate.set_value();
    for (const driver::Timepoint newest : busy)
        newest.queue->wait(newest.value);
}

// Is submitted, and fails when the device executes it, after the gate has opened.
struct FailingCommand final : Command {
    FailingCommand(driver::Queue& queue, std::promise<void>& opened) : failed{&queue, 1}, gate(&opened) {}
    Result<driver::Timepoint> submit(Queue&, const memory::Execution& execution) const override {
        static_cast<void>(execution.queue.call(
            {[](void* data) { static_cast<std::promise<void>*>(data)->get_future().wait(); }, gate}, {}));
        return execution.queue.marker({{&failed, 1}});
    }
    driver::Timepoint failed;
    std::promise<void>* gate;
};

template <class T>
Ref<Event> enqueue(Queue& queue, T&& command, std::span<Event* const> wait_list = {}) {
    EnqueueRequest request;
    request.type = CL_COMMAND_MARKER;
    request.wait_list = wait_list;
    request.want_event = EnqueueRequest::WantEvent::yes;
    return queue.enqueue(request, std::forward<T>(command)).value();
}

// In each of three ways a command depends on one that fails while it executes: in the same queue, in another one, and
// after that command has completed.
template <class Test>
void after_a_failed_command(const Ref<Queue>& queue, const Ref<Queue>& other, Test&& test) {
    for (const Ref<Queue>& second : {queue, other}) {
        for (const bool is_complete : {false, true}) {
            SCOPED_TRACE(testing::Message() << (second == queue ? "same" : "other") << " queue, " << is_complete);
            test::FailedQueue failed;
            std::promise<void> gate;
            const Ref<Event> first = enqueue(*queue, FailingCommand(failed, gate));
            if (is_complete) {
                gate.set_value();
                first->wait();
            }
            test(*second, *first, [&] {
                if (!is_complete)
                    gate.set_value();
            });
            queue->finish();
            other->finish();
        }
    }
}

TEST_F(QueueTest, ACommandWhoseEventFailedIsNotExecutedAndFails) {
    const Ref<Queue> queue = make_queue(0);
    const Ref<Queue> other = make_queue(0);
    after_a_failed_command(queue, other, [](Queue& second, Event& first, auto&& open) {
        Event* const wait_list[] = {&first};
        const Ref<Event> event = enqueue(second, MarkerCommand{}, wait_list);
        const Ref<Event> next = enqueue(second, MarkerCommand{});
        open();
        next->wait();
        EXPECT_EQ(event->status(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(next->status(), CL_COMPLETE) << "queue order alone is no dependency";
    });
}

TEST_F(QueueTest, AHostCallIsEitherCalledOrDiscarded) {
    const Ref<Queue> queue = make_queue(0);
    const Ref<Queue> other = make_queue(0);
    struct Counts {
        std::atomic<int> called{0}, discarded{0};
    };
    const auto call_of = [](Counts& counts) {
        return HostCallCommand([](void* data) { ++static_cast<Counts*>(data)->called; },
                               [](void* data) { ++static_cast<Counts*>(data)->discarded; }, &counts);
    };
    after_a_failed_command(queue, other, [&](Queue& second, Event& first, auto&& open) {
        Counts dependent, independent;
        Event* const wait_list[] = {&first};
        const Ref<Event> event = enqueue(second, call_of(dependent), wait_list);
        const Ref<Event> next = enqueue(second, call_of(independent));
        open();
        next->wait();
        // The callback thread calls `discard`.
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (dependent.discarded == 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_LT(event->status(), 0);
        EXPECT_EQ(dependent.called, 0);
        EXPECT_EQ(dependent.discarded, 1);
        EXPECT_EQ(independent.called, 1);
        EXPECT_EQ(independent.discarded, 0);
    });
}

}  // namespace
}  // namespace polder::runtime
