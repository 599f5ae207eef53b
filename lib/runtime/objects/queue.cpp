#include <base/completion.h>
#include <runtime/queue.h>

#include <algorithm>
#include <utility>

namespace polder::runtime {
namespace {

// How many driver queues an out-of-order queue spreads its commands over.
constexpr size_t lanes_max = 4;

// What one submission keeps alive at most: the code or the call, and the times of profiling.
constexpr size_t kept_by_a_submission = 2;

} // namespace

Queue::Queue(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
             std::vector<cl_queue_properties> property_list)
    : context_(std::move(context)), device_(std::move(device)), properties_(properties),
      property_list_(std::move(property_list)) {}

Result<Ref<Queue>> Queue::create(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
                                 std::vector<cl_queue_properties> property_list) {
    auto queue =
        Ref<Queue>::adopt(new Queue(std::move(context), std::move(device), properties, std::move(property_list)));
    const size_t lane_count = queue->is_out_of_order() ? lanes_max : 1;
    Lock lock(queue->mutex_);
    queue->lanes_.reserve(lane_count);  // a driver queue that was taken is in the list
    for (size_t i = 0; i < lane_count; ++i) {
        POLDER_ASSIGN(driver_queue, queue->device_->take_queue());
        queue->lanes_.push_back({driver_queue, {}});
    }
    return queue;
}

Queue::~Queue() {
    for (const Lane& lane : lanes_)
        lane.queue->flush();
    for (Kept& kept : kept_)
        run_when_complete({&kept.until, 1}, {[](void* object) { static_cast<const RefCounted*>(object)->release(); },
                                             const_cast<RefCounted*>(kept.object.detach())});
    for (const Lane& lane : lanes_)
        device_->give_queue(lane.queue);
}

// Makes room for what one submission keeps alive, so that nothing can fail once the driver has it. Amortised: complete
// entries are dropped each time the list has doubled since the last time.
void Queue::reserve_kept_locked() {
    if (kept_.size() >= sweep_at_) {
        std::erase_if(kept_, [](const Kept& kept) { return kept.until.is_complete(); });
        sweep_at_ = std::max<size_t>(16, 2 * kept_.size());
    }
    if (kept_.capacity() - kept_.size() < kept_by_a_submission) [[unlikely]]
        kept_.reserve(std::max(2 * kept_.size(), kept_.size() + kept_by_a_submission));
}

void Queue::keep_alive(const RefCounted& object, driver::Timepoint until) {
    if (!kept_.empty() && kept_.back().object.get() == &object && kept_.back().until.queue == until.queue) {
        kept_.back().until = until;
        return;
    }
    kept_.push_back({until, Ref<const RefCounted>::share(&object)});
}

void Queue::flush() {
    Lock lock(mutex_);
    is_flushed_ahead_ = has_pending_locked();
    for (const Lane& lane : lanes_)
        lane.queue->flush();
}

void Queue::finish() {
    std::vector<Ref<Event>> pending;
    driver::Timepoint last[lanes_max];
    size_t lane_count = 0;
    {
        Lock lock(mutex_);
        pending = pending_;
        for (const Lane& lane : lanes_)
            last[lane_count++] = lane.last;
    }
    for (const Ref<Event>& event : pending)
        event->wait();
    for (size_t i = 0; i < lane_count; ++i)
        if (last[i].queue)
            last[i].queue->wait(last[i].value);
    Kept one;  // destroyed unlocked, as the others
    std::vector<Kept> finished;
    Lock lock(mutex_);
    if (kept_.size() == 1 && kept_.front().until.is_complete()) [[likely]] {  // the code of one kernel
        one = std::move(kept_.front());
        kept_.clear();
        return;
    }
    const auto first =
        std::partition(kept_.begin(), kept_.end(), [](const Kept& kept) { return !kept.until.is_complete(); });
    std::move(first, kept_.end(), std::back_inserter(finished));
    kept_.erase(first, kept_.end());
}

} // namespace polder::runtime
