// The half of ProxyQueue that needs the host: pending operations, and the queue's thread.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <host/clock.h>
#include <host/service_thread.h>
#include <proxy/proxy_queue.h>

namespace polder::proxy {

// --- pending operations ---

// Executes the oldest pending operation; the mutex is released meanwhile.
void ProxyQueue::pump_one() {
    Operation operation = std::move(pending_.front());
    pending_.pop_front();
    is_pumping_ = true;
    mutex_.unlock();
    execute_pending(operation);
    mutex_.lock();
    is_pumping_ = false;
    if (context_.is_lost())
        abandon();
    changed_.notify_all();
}

void ProxyQueue::execute_pending(Operation& operation) {
    const bool is_for_host = needs_host(operation);
    for (const driver::Timepoint wait : operation.waits)
        if (!wait.is_complete() && (is_for_host || !order_after(wait, operation))) {
            wait.queue->flush();
            wait.queue->wait(wait.value);
        }
    for (const driver::Timepoint wait : operation.waits)
        operation.has_failed_wait |= wait.queue->status(wait.value) != Status::success;
    if (is_for_host && !context_.is_lost())
        return execute_on_host(operation);
    const Lock lock(mutex_);
    if (context_.is_lost())
        return abandon();
    push(operation);
    if (operation.value <= wanted_)
        flush_commands();
}

void ProxyQueue::execute_on_host(Operation& operation) {
    for (size_t i = 0; i < operation.events.size(); ++i)
        wait_for(operation.events[i]);
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
        for (uint64_t z = 0; z < copy->shape.slices; ++z)
            for (uint64_t y = 0; y < copy->shape.rows; ++y)
                std::memcpy(copy->to.address.host() + z * copy->to.layout.slice_pitch + y * copy->to.layout.row_pitch,
                            copy->from.address.host() + z * copy->from.layout.slice_pitch +
                                y * copy->from.layout.row_pitch,
                            copy->shape.row_bytes);
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
    completed_.store(operation.value, std::memory_order_release);
}

// --- the queue's thread ---

bool ProxyQueue::start_thread() {
    if (!has_thread_)
        has_thread_ = devices::start_service_thread(
            thread_, "polder-proxy",
            [](void* queue) -> void* {
                static_cast<ProxyQueue*>(queue)->work();
                return nullptr;
            },
            this);
    return has_thread_;
}

// A thread that waits for the queue publishes what it waited for; this one does it only when there is none, so it gives others
// time first. It sleeps when there was nothing to do for a while: waking it costs the thread that flushes more than these pauses.
void ProxyQueue::work() {
    constexpr std::chrono::microseconds pause_min{50}, pause_max{200};
    constexpr int idle_pauses_max = 50;
    std::chrono::microseconds pause = pause_min;
    int idle_pauses = 0;
    const Lock lock(mutex_);
    while (!stopping_) {
        if (!pending_.empty() && !is_pumping_ && pending_.front().value <= wanted_) {
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
