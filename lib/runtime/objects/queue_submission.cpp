// Queue: from the enqueue call to the driver. A command whose dependencies all have timepoints is submitted by the enqueue
// call. A command that has to wait becomes a PendingCommand. The last event that it waits for submits it.
//
// Threads that use one out-of-order queue at the same time without events, barriers or markers share no lock:
// each has its own shard. A marker or a barrier that waits for everything reads all shards, one after the other. That
// is enough, because a command that another thread enqueues meanwhile may come before or after it.
#include "pending_command.h"

#include <runtime/queue_shard.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <utility>

namespace polder::runtime {

// Returns std::bad_alloc as an error, so that the API's functions undo what they did before.
Result<Ref<Event>> Queue::enqueue_command(const EnqueueRequest& request, Command& command, MoveToHeap move) {
    try {
        return reserve_and_submit(request, command, move);
    } catch (const std::bad_alloc&) {
        return fail(Status::out_of_host_memory);
    }
}

Result<Ref<Event>> Queue::reserve_and_submit(const EnqueueRequest& request, Command& command, MoveToHeap move) {
    using Ordering = EnqueueRequest::Ordering;
    if (Result<void> reserved = command.reserve(*this); !reserved) [[unlikely]]
        return fail(context_->reported(std::move(reserved)).error());
    Afterwards afterwards;
    Result<Ref<Event>> event = request.ordering == Ordering::command || !is_out_of_order()
                                   ? submit_or_hold_back(request, nullptr, command, move, afterwards)
                                   : submit_marker(request, command, move, afterwards);
    afterwards.ready.run();
    return event;
}

// A marker or a barrier of an out-of-order queue.
Result<Ref<Event>> Queue::submit_marker(const EnqueueRequest& request, Command& command, MoveToHeap move,
                                        Afterwards& afterwards) {
    std::optional<Lock> turn;
    if (request.ordering == EnqueueRequest::Ordering::barrier)
        turn.emplace(barrier_turn_);
    std::optional<Earlier> earlier;
    if (request.wait_list.empty())
        earlier = everything_so_far();
    return submit_or_hold_back(request, earlier ? &*earlier : nullptr, command, move, afterwards);
}

Result<Ref<Event>> Queue::submit_or_hold_back(const EnqueueRequest& request, const Earlier* earlier, Command& command,
                                              MoveToHeap move, Afterwards& afterwards) {
    bool must_wait = false;
    bool failed = false;
    for (const Event* event : request.wait_list) {
        must_wait |= event->is_pending();
        failed |= event->is_failed();
    }
    if (earlier)
        for (const Ref<Event>& event : earlier->pending)
            must_wait |= event->is_pending();

    Ref<Event> event;
    if (request.want_event == EnqueueRequest::WantEvent::yes)
        event = make_event(request.type);

    QueueShard& shard = shard_here();
    const BiasedLock lock(shard.mutex);
    must_wait |= is_out_of_order() ? is_behind_pending_barrier(shard) : has_pending();
    if (must_wait || failed) {
        if (!event)
            event = make_event(request.type);
        hold_back(shard, request, earlier, move(command), event, afterwards.ready);
        return event;
    }
    shard.waits.reset(nullptr);
    for (const Event* dependency : request.wait_list)
        shard.waits.require(dependency->timepoint());
    if (is_out_of_order())
        shard.waits.add(shard.barrier);
    if (earlier)
        shard.waits.add(earlier->submitted.view());
    POLDER_ASSIGN(timepoint, submit(shard, command, shard.waits, event.get(), afterwards.dropped));
    if (request.ordering == EnqueueRequest::Ordering::barrier && is_out_of_order())
        set_barrier(timepoint);
    if (event)
        event->resolve_unseen(timepoint);
    return event;
}

Ref<Event> Queue::make_event(cl_command_type type) {
    return make_ref<Event>(Ref<Queue>::share(this), type,
                           has_profiling() ? Event::Profiling::on : Event::Profiling::off);
}

Queue::Earlier Queue::everything_so_far() {
    Earlier earlier;
    if (may_have_pending_.load(std::memory_order_acquire)) {
        const Lock lock(mutex_);
        if (has_pending_locked())
            earlier.pending = pending_;
    }
    add_submitted_so_far(earlier.submitted);
    return earlier;
}

void Queue::add_submitted_so_far(WaitList& waits) {
    for_each_shard([&](QueueShard& shard) {
        const BiasedLock lock(shard.mutex);
        for (const QueueShard::Stream& stream : shard.streams)
            waits.add(stream.last);
    });
}

void Queue::forget_pending_locked(const std::vector<Ref<Event>>& events) {
    if (events.empty())
        return;
    std::vector<const Event*> sorted(events.size());
    std::ranges::transform(events, sorted.begin(), [](const Ref<Event>& event) { return event.get(); });
    std::ranges::sort(sorted, std::less<>());
    std::erase_if(pending_, [&](const Ref<Event>& event) {
        return std::ranges::binary_search(sorted, event.get(), std::less<>());
    });
}

void Queue::hold_back(QueueShard&, const EnqueueRequest& request, const Earlier* earlier,
                      std::unique_ptr<Command> command, const Ref<Event>& event, ReadyList& ready) {
    using Dependency = PendingCommand::Dependency;
    auto pending = make_ref<PendingCommand>(Ref<Queue>::share(this), std::move(command), event);
    for (Event* dependency : request.wait_list)
        pending->depend_on(*dependency, Dependency::explicit_);
    if (earlier) {
        for (const Ref<Event>& before : earlier->pending)
            pending->depend_on(*before, Dependency::implicit);
        for (const driver::Timepoint timepoint : earlier->submitted.view())
            pending->wait_for(timepoint);
    }
    {
        const Lock lock(mutex_);
        if (is_out_of_order()) {
            if (!pending_barriers_.empty())
                pending->depend_on(*pending_barriers_.back(), Dependency::implicit);
            pending->wait_for(barrier_);
        } else if (!pending_.empty()) {
            pending->depend_on(*pending_.back(), Dependency::implicit);
        }
        const bool is_barrier = request.ordering == EnqueueRequest::Ordering::barrier && is_out_of_order();
        if (is_barrier && pending_barriers_.size() == pending_barriers_.capacity())
            pending_barriers_.reserve(2 * pending_barriers_.size() + 1);
        // This command leaves the state `pending` after all that it waits for, so later commands need to wait for this command only.
        if (earlier)
            forget_pending_locked(earlier->pending);
        add_pending_locked(event);
        if (is_barrier) {
            pending_barriers_.push_back(event);
            barrier_changes_.fetch_add(1, std::memory_order_release);
        }
    }
    pending->armed(ready);
}

bool Queue::is_behind_pending_barrier(QueueShard& shard) {
    if (!shard.is_behind_pending_barrier && shard.barriers_seen == barrier_changes_.load(std::memory_order_acquire))
        [[likely]]
        return false;
    const Lock lock(mutex_);
    pass_barriers_locked();
    shard.barrier = barrier_;
    shard.is_behind_pending_barrier = !pending_barriers_.empty();
    shard.barriers_seen = barrier_changes_.load(std::memory_order_relaxed);
    return shard.is_behind_pending_barrier;
}

void Queue::set_barrier(driver::Timepoint barrier) {
    const Lock lock(mutex_);
    barrier_ = barrier;
    barrier_changes_.fetch_add(1, std::memory_order_release);
}

bool Queue::has_pending() {
    if (!may_have_pending_.load(std::memory_order_acquire)) [[likely]]
        return false;
    const Lock lock(mutex_);
    return has_pending_locked();
}

bool Queue::has_pending_locked() {
    // Each command of an in-order queue waits for the one before it, so only the last has to be checked.
    if (!is_out_of_order() && !pending_.empty() && !pending_.back()->is_pending())
        pending_.clear();
    if (is_out_of_order())
        std::erase_if(pending_, [](const Ref<Event>& event) { return !event->is_pending(); });
    may_have_pending_.store(!pending_.empty(), std::memory_order_release);
    return !pending_.empty();
}

void Queue::add_pending_locked(const Ref<Event>& event) {
    // In an in-order queue, only the last pending command is needed.
    if (!is_out_of_order())
        pending_.clear();
    pending_.push_back(event);
    may_have_pending_.store(true, std::memory_order_release);
}

// Removes resolved events from pending_ each time half of them may be resolved, and when the last one is resolved.
void Queue::note_resolved() {
    Lock lock(mutex_);
    pass_barriers_locked();
    if (2 * ++resolved_since_sweep_ < pending_.size())
        return;
    resolved_since_sweep_ = 0;
    static_cast<void>(has_pending_locked());
}

// Each barrier waits for the one before it, so they leave the state `pending` in order.
void Queue::pass_barriers_locked() {
    const auto first_pending =
        std::ranges::find_if(pending_barriers_, [](const Ref<Event>& barrier) { return barrier->is_pending(); });
    if (first_pending == pending_barriers_.begin())
        return;
    for (auto passed = pending_barriers_.begin(); passed != first_pending; ++passed)
        if ((*passed)->is_submitted())
            barrier_ = (*passed)->timepoint();
    pending_barriers_.erase(pending_barriers_.begin(), first_pending);
    barrier_changes_.fetch_add(1, std::memory_order_release);
}

driver::Timepoint Queue::newest_barrier() {
    const Lock lock(mutex_);
    pass_barriers_locked();
    return barrier_;
}

Result<driver::Timepoint> Queue::submit_pending(const Command& command, WaitList& waits, Event& event) {
    std::vector<QueueShard::Kept> dropped;
    QueueShard& shard = shard_here();
    const BiasedLock lock(shard.mutex);
    POLDER_ASSIGN(timepoint, submit(shard, command, waits, &event, dropped));
    if (timepoint.queue && is_flushed_ahead_.load(std::memory_order_acquire))
        timepoint.queue->flush();
    return timepoint;
}

Result<driver::Timepoint> Queue::submit(QueueShard& shard, const Command& command, WaitList& waits, Event* event,
                                        std::vector<QueueShard::Kept>& dropped) {
    QueueShard::Stream& stream = shard.choose_stream(waits.view());
    waits.set_waiting(stream.queue);
    Event::Times* times = event ? event->times() : nullptr;
    if (times)
        times->submit_ns = device_->driver().now_ns();
    const memory::Execution execution{*stream.queue, space(), waits.view(), times ? &times->operation : nullptr};
    shard.reserve_kept(dropped);
    const Result<driver::Timepoint> submitted = command.submit(*this, execution);
    // A failed command may have submitted some of its operations, so a marker after them ends what is kept alive.
    const driver::Timepoint end = submitted ? *submitted : stream.queue->marker({});
    if (end.queue == stream.queue)
        stream.last = end;
    if (times)  // kept alive, because the driver writes them
        keep_alive(*times, end);
    return submitted;
}

}  // namespace polder::runtime
