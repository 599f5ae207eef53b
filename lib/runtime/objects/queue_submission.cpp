// Queue: from the enqueue call to the driver. A command whose dependencies all have timepoints is submitted by the enqueue
// call. One that has to wait becomes a PendingCommand, which the last event that it waits for submits.
#include "pending_command.h"

#include <new>
#include <utility>

namespace polder::runtime {

// No memory is a failure like others: the API's functions undo what they did before.
Result<Ref<Event>> Queue::enqueue_command(const EnqueueRequest& request, Command& command, MoveToHeap move) {
    try {
        return submit_or_hold_back(request, command, move);
    } catch (const std::bad_alloc&) {
        return fail(Status::out_of_host_memory);
    }
}

Result<Ref<Event>> Queue::submit_or_hold_back(const EnqueueRequest& request, Command& command, MoveToHeap move) {
    POLDER_TRY(context_->reported(command.reserve(*this)));
    bool must_wait = false;
    bool failed = false;
    for (const Event* event : request.wait_list) {
        must_wait |= event->is_pending();
        failed |= event->is_failed();
    }
    const bool joins_all = request.ordering != EnqueueRequest::Ordering::command && request.wait_list.empty();

    Ref<Event> event;
    if (request.want_event == EnqueueRequest::WantEvent::yes)
        event = make_event(request.type);

    ReadyList ready;
    {
        Lock lock(mutex_);
        pass_barrier_locked();
        if (is_out_of_order())
            must_wait |= pending_barrier_ || (joins_all && has_pending_locked());
        else
            must_wait |= has_pending_locked();
        if (!must_wait && !failed) {
            waits_.clear();
            for (const Event* dependency : request.wait_list)
                add_event(waits_, dependency->timepoint());
            const size_t event_count = waits_.size();
            add_order_waits_locked(joins_all, waits_);
            POLDER_ASSIGN(timepoint, submit_locked(command, waits_, event_count, event.get()));
            if (request.ordering == EnqueueRequest::Ordering::barrier)
                barrier_ = timepoint;
            if (event)
                event->resolve(timepoint, ready);
            return event;
        }
        if (!event)
            event = make_event(request.type);
        hold_back_locked(request, joins_all, move(command), event, ready);
    }
    ready.run();
    return event;
}

Ref<Event> Queue::make_event(cl_command_type type) {
    return make_ref<Event>(context_, Ref<Queue>::share(this), type,
                           has_profiling() ? Event::Profiling::on : Event::Profiling::off);
}

// What queue order alone demands of a command submitted now.
void Queue::add_order_waits_locked(bool joins_all, std::vector<driver::Timepoint>& waits) {
    if (!is_out_of_order())
        return;  // one lane, in order
    add_wait(waits, barrier_);
    if (joins_all)
        for (const Lane& lane : lanes_)
            add_wait(waits, lane.last);
}

void Queue::hold_back_locked(const EnqueueRequest& request, bool joins_all, std::unique_ptr<Command> command,
                             const Ref<Event>& event, ReadyList& ready) {
    using Dependency = PendingCommand::Dependency;
    auto pending = make_ref<PendingCommand>(Ref<Queue>::share(this), std::move(command), event);
    for (Event* dependency : request.wait_list)
        pending->depend_on(*dependency, Dependency::explicit_);
    if (is_out_of_order()) {
        if (pending_barrier_)
            pending->depend_on(*pending_barrier_, Dependency::implicit);
        pending->wait_for(barrier_);
        if (joins_all) {
            for (const Ref<Event>& earlier : pending_)
                pending->depend_on(*earlier, Dependency::implicit);
            for (const Lane& lane : lanes_)
                pending->wait_for(lane.last);
        }
    } else if (!pending_.empty()) {
        pending->depend_on(*pending_.back(), Dependency::implicit);
    }
    add_pending_locked(event);
    if (request.ordering == EnqueueRequest::Ordering::barrier && is_out_of_order())
        pending_barrier_ = event;
    pending->armed(ready);
}

bool Queue::has_pending_locked() {
    if (pending_.empty())
        return false;
    if (!is_out_of_order()) {
        // Each one waits for the one before it, so the last tells for all.
        if (!pending_.back()->is_pending())
            pending_.clear();
        return !pending_.empty();
    }
    std::erase_if(pending_, [](const Ref<Event>& event) { return !event->is_pending(); });
    return !pending_.empty();
}

void Queue::add_pending_locked(const Ref<Event>& event) {
    // Of an in-order queue only the last is ever asked for.
    if (!is_out_of_order())
        pending_.clear();
    pending_.push_back(event);
}

// Swept each time half of them may be resolved, so the last one to be resolved is removed too.
void Queue::note_resolved() {
    Lock lock(mutex_);
    pass_barrier_locked();
    if (2 * ++resolved_since_sweep_ < pending_.size())
        return;
    resolved_since_sweep_ = 0;
    static_cast<void>(has_pending_locked());
}

void Queue::pass_barrier_locked() {
    if (!pending_barrier_ || pending_barrier_->is_pending())
        return;
    if (pending_barrier_->is_submitted())
        barrier_ = pending_barrier_->timepoint();
    pending_barrier_ = nullptr;
}

Result<driver::Timepoint> Queue::submit_pending(const Command& command, std::vector<driver::Timepoint>& waits,
                                                size_t event_count, Event& event) {
    Lock lock(mutex_);
    POLDER_ASSIGN(timepoint, submit_locked(command, waits, event_count, &event));
    if (is_flushed_ahead_ && timepoint.queue)
        timepoint.queue->flush();
    return timepoint;
}

Result<driver::Timepoint> Queue::submit_locked(const Command& command, std::vector<driver::Timepoint>& waits,
                                               size_t event_count, Event* event) {
    Lane& lane = choose_lane(waits);
    // Order within a driver queue is implied. That the events succeed is not.
    const auto order = waits.begin() + static_cast<ptrdiff_t>(event_count);
    waits.erase(std::remove_if(order, waits.end(), [&](driver::Timepoint t) { return t.queue == lane.queue; }),
                waits.end());
    Event::Times* times = event ? event->times() : nullptr;
    if (times)
        times->submit_ns = device_->driver().now_ns();
    const memory::Execution execution{*lane.queue, space(), waits, times ? &times->operation : nullptr};
    reserve_kept_locked();
    const Result<driver::Timepoint> submitted = command.submit(*this, execution);
    // A command that fails may have submitted some of its operations.
    const driver::Timepoint end = submitted ? *submitted : lane.queue->marker({});
    if (end.queue == lane.queue)
        lane.last = end;
    if (times)  // the driver writes them
        keep_alive(*times, end);
    return submitted;
}

Queue::Lane& Queue::choose_lane(std::span<const driver::Timepoint> waits) {
    if (lanes_.size() == 1)
        return lanes_.front();
    for (Lane& lane : lanes_)
        for (const driver::Timepoint& wait : waits)
            if (wait == lane.last)
                return lane;
    next_lane_ = (next_lane_ + 1) % lanes_.size();
    return lanes_[next_lane_];
}

}  // namespace polder::runtime
