// The half of ProxyQueue that needs the host: operations that the host executes, and the queue's thread.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <host/clock.h>
#include <proxy/proxy_queue.h>

namespace polder::proxy {

void ProxyQueue::execute_on_host(Operation& operation) {
    for (const cl_event event : operation.events)
        wait_for(event);
    // What it waited for is seen to be complete before it is.
    for (const driver::Timepoint after : operation.after) {
        after.queue->wait(after.value);
        operation.has_failed_wait |= after.queue->status(after.value) != Status::success;
    }
    if (operation.value > 1)
        wait(operation.value - 1);
    if (context_.is_lost())
        return;
    started_.store(operation.value, std::memory_order_release);
    if (operation.times)
        operation.times->start(devices::now_ns());
    bool may = false;
    {
        const Lock lock(mutex_);
        may = may_execute(operation);
    }
    if (!may) {
        // Its failure is noted below.
    } else if (auto* const host = std::get_if<driver::HostOperation>(&operation.work)) {
        host->function(host->data);
    } else if (const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work)) {
        devices::for_each_host_row(*copy, std::memcpy);
    }
    const Lock lock(mutex_);
    if (context_.is_lost())
        return abandon();
    if (!may)
        failures_.note(operation.value, Status::exec_status_error_for_events_in_wait_list);
    last_end_ns_ = std::max(last_end_ns_, devices::now_ns());
    if (operation.times)
        operation.times->end(last_end_ns_);
    pushed_ = operation.value;
    publish(operation.value);
}

// --- the queue's thread ---

// A thread that waits for the queue publishes what it waited for; this one does it only when there is none, so it gives others
// time first. It sleeps when there was nothing to do for a while: waking it costs the thread that flushes more than these pauses.
void ProxyQueue::work() {
    constexpr std::chrono::microseconds pause_min{50}, pause_max{200};
    constexpr int idle_pauses_max = 50;
    std::chrono::microseconds pause = pause_min;
    int idle_pauses = 0;
    const Lock lock(mutex_);
    while (!stopping_) {
        if (has_pending_work()) {
            pump_one();
            idle_pauses = 0;
            continue;
        }
        const bool is_idle = completed() >= wanted_;
        if (is_idle && idle_pauses == idle_pauses_max) {
            thread_sleeps_ = true;
            wake_.wait(mutex_);
            thread_sleeps_ = false;
            idle_pauses = 0;
            pause = pause_min;
            continue;
        }
        const uint64_t seen = completed();
        wake_.wait_for(mutex_, pause);
        if (is_idle) {
            ++idle_pauses;
            continue;
        }
        idle_pauses = 0;
        bool has_moved = completed() != seen;
        if (!has_moved)
            while (!stopping_ && !flights_.empty() && completed() < wanted_ && publish_oldest())
                has_moved = true;
        pause = has_moved ? pause_min : std::min(2 * pause, pause_max);
    }
}

}  // namespace polder::proxy
