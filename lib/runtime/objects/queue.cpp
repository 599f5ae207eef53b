// Queue: its shards, and waiting for all of its commands. queue_submission.cpp submits commands.
#include <base/completion.h>
#include <base/small_vector.h>
#include <runtime/queue.h>
#include <runtime/queue_shard.h>

#include <new>
#include <utility>

namespace polder::runtime {
namespace {

// How many driver queues a thread's commands in an out-of-order queue are spread over.
constexpr size_t streams_of_a_shard = 4;

// Returns std::bad_alloc as an error, so that the caller gives back the driver queues that it has taken before.
Result<driver::Timepoint> take_queue(Device& device) {
    try {
        return device.take_queue();
    } catch (const std::bad_alloc&) {
        return fail(Status::out_of_host_memory);
    }
}

}  // namespace

Queue::Queue(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
             std::vector<cl_queue_properties> property_list)
    : context_(std::move(context)), device_(std::move(device)), properties_(properties),
      property_list_(std::move(property_list)) {}

Result<Ref<Queue>> Queue::create(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
                                 std::vector<cl_queue_properties> property_list) {
    auto queue =
        Ref<Queue>::adopt(new Queue(std::move(context), std::move(device), properties, std::move(property_list)));
    POLDER_TRY(queue->make_first_shard());
    return queue;
}

Result<void> Queue::make_first_shard() {
    POLDER_ASSIGN(shard, make_shard(is_out_of_order() ? streams_of_a_shard : 1));
    {
        const BiasedLock lock(shard->mutex);
        only_driver_queue_ = is_out_of_order() ? nullptr : shard->streams.front().queue;
    }
    first_shard_ = shard.release();
    // The first shard belongs to the creating thread, which probably uses the queue.
    shards_[thread_number() % shards_max].store(first_shard_, std::memory_order_relaxed);
    return {};
}

Result<std::unique_ptr<QueueShard>> Queue::make_shard(size_t stream_count) {
    auto shard = std::make_unique<QueueShard>();
    const BiasedLock lock(shard->mutex);
    shard->streams.reserve(stream_count);
    while (shard->streams.size() < stream_count) {
        const Result<driver::Timepoint> taken = take_queue(*device_);
        if (!taken) {
            give_back_streams(*shard);
            return fail(taken.error());
        }
        shard->streams.push_back({taken->queue, {}, taken->value});
    }
    return shard;
}

void Queue::give_back_streams(const QueueShard& shard) {
    for (const QueueShard::Stream& stream : shard.streams)
        device_->give_queue(stream.newest());
}

QueueShard& Queue::shard_here() {
    if (!is_out_of_order())
        return *first_shard_;
    std::atomic<QueueShard*>& place = shards_[thread_number() % shards_max];
    QueueShard* const known = place.load(std::memory_order_acquire);
    return known ? *known : new_shard(place);
}

QueueShard& Queue::new_shard(std::atomic<QueueShard*>& place) {
    Result<std::unique_ptr<QueueShard>> made = [this]() -> Result<std::unique_ptr<QueueShard>> {
        try {
            return make_shard(streams_of_a_shard);
        } catch (const std::bad_alloc&) {
            return fail(Status::out_of_host_memory);
        }
    }();
    QueueShard* const shard = made ? made->get() : first_shard_;
    QueueShard* earlier = nullptr;
    if (place.compare_exchange_strong(earlier, shard, std::memory_order_acq_rel)) {
        if (made)
            static_cast<void>(made->release());
        return *shard;
    }
    if (made) {  // not used, because another thread with the same shard number has made one
        const BiasedLock lock(shard->mutex);
        give_back_streams(*shard);
    }
    return *earlier;
}

void Queue::for_each_shard(FunctionRef<void(QueueShard&)> function) {
    if (!first_shard_)  // creating the queue failed
        return;
    function(*first_shard_);
    if (!is_out_of_order())
        return;
    for (const std::atomic<QueueShard*>& place : shards_)
        if (QueueShard* const shard = place.load(std::memory_order_acquire); shard && shard != first_shard_)
            function(*shard);
}

Queue::~Queue() {
    for_each_shard([this](QueueShard& shard) {
        {
            const BiasedLock lock(shard.mutex);
            for (const QueueShard::Stream& stream : shard.streams)
                stream.queue->flush();
            give_back_streams(shard);
        }
        if (!shard.try_again())
            retry_until_done(shard);
    });
}

void Queue::keep_alive(const RefCounted& object, driver::Timepoint until) {
    std::vector<QueueShard::Kept>& kept = shard_here().kept;
    if (!kept.empty() && kept.back().object.get() == &object && kept.back().until.queue == until.queue) {
        kept.back().until = until;
        return;
    }
    kept.push_back({until, Ref<const RefCounted>::share(&object)});
}

void Queue::flush() {
    is_flushed_ahead_.store(has_pending(), std::memory_order_release);
    for_each_shard([](QueueShard& shard) {
        const BiasedLock lock(shard.mutex);
        for (const QueueShard::Stream& stream : shard.streams)
            stream.queue->flush();
    });
}

void Queue::finish() {
    if (may_have_pending_.load(std::memory_order_acquire)) [[unlikely]]
        wait_for_pending();
    if (is_out_of_order())
        finish_shards();
    else
        finish_stream(*first_shard_);
}

void Queue::wait_for_pending() {
    std::vector<Ref<Event>> pending;
    {
        const Lock lock(mutex_);
        pending = pending_;
    }
    for (const Ref<Event>& event : pending)
        event->wait();
}

// The objects that the shard keeps alive are destroyed without its lock, because a last reference may call the application.
void Queue::finish_stream(QueueShard& shard) {
    driver::Timepoint last;
    QueueShard::Kept kept;  // taken out before waiting, so that no lock is needed afterwards
    bool keeps_more = false;
    {
        const BiasedLock lock(shard.mutex);
        last = shard.streams.front().last;
        if (shard.kept.size() == 1 && shard.kept.front().until.queue == last.queue) [[likely]] {  // one kernel's code
            kept = std::move(shard.kept.front());
            shard.kept.clear();
        }
        keeps_more = !shard.kept.empty();
    }
    if (last.queue)
        last.queue->wait(last.value);
    if (keeps_more)
        drop_kept(shard);
}

void Queue::finish_shards() {
    SmallVector<driver::Timepoint, streams_of_a_shard> last;
    for_each_shard([&](QueueShard& shard) {
        const BiasedLock lock(shard.mutex);
        for (const QueueShard::Stream& stream : shard.streams)
            if (!stream.last.is_complete())
                last.push_back(stream.last);
    });
    // The wait below may execute the first queue's operations on this thread, so the other queues are started before.
    for (uint32_t i = 1; i < last.size(); ++i)
        last[i].queue->flush();
    for (const driver::Timepoint timepoint : last.view())
        timepoint.queue->wait(timepoint.value);
    for_each_shard([](QueueShard& shard) { drop_kept(shard); });
}

void Queue::drop_complete() {
    for_each_shard([](QueueShard& shard) { drop_kept(shard); });
}

void Queue::drop_kept(QueueShard& shard) {
    std::vector<QueueShard::Kept> dropped;
    const BiasedLock lock(shard.mutex);
    shard.drop_complete(dropped);
}

}  // namespace polder::runtime
