// runtime::Queue with commands that fail in ways that a driver's device does not show.
#include <runtime/platform.h>
#include <runtime/queue.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <future>
#include <gtest/gtest.h>
#include <memory>
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

}  // namespace
}  // namespace polder::runtime
