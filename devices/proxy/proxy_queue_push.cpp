// The half of ProxyQueue that gives operations to the implementation, and publishes those that have executed.
#include <base/log.h>

#include <algorithm>
#include <host/clock.h>
#include <proxy/proxy_queue.h>
#include <utility>

namespace polder::proxy {
namespace {

using Place = driver::CopyOperation::Place;

cl_uint count_of(const EventList& events) { return static_cast<cl_uint>(events.size()); }
const cl_event* list_of(const EventList& events) { return events.empty() ? nullptr : events.begin(); }

} // namespace

void ProxyQueue::push(Operation& operation) {
    const uint64_t pushed_ns = operation.times ? devices::now_ns() : 0;
    if (operation.times && !is_profiled_)
        start_profiling();
    Pushed pushed;
    Status status = Status::exec_status_error_for_events_in_wait_list;
    const bool may = may_execute(operation);
    // What needs memory comes before everything that the implementation gets.
    flights_.emplace_back();
    if (may)
        try {
            push_work(operation, pushed);
            status = report(pushed.code, pushed.what);
        } catch (...) {
            if (pushed.code == CL_SUCCESS) {
                flights_.pop_back();
                throw;
            }
            status = Status::out_of_host_memory;  // there was none for the report
        }
    using Ends = Flight::Ends;
    const Ends ends = pushed.last          ? Ends::with_its_event
                      : pushed.is_enqueued ? Ends::before_the_next_event
                                           : Ends::with_the_one_before;
    release_events(operation);
    pushed_ = operation.value;
    is_flushed_ = false;
    const bool is_run =
        ends == Ends::before_the_next_event && std::holds_alternative<LaunchWork>(operation.work) && !operation.times;
    flights_.back() = {operation.value,
                       operation.value,
                       pushed.first,
                       pushed.last,
                       ends,
                       status,
                       operation.times,
                       pushed_ns,
                       std::move(operation.after),
                       std::move(operation.own_waits),
                       false,
                       std::move(pushed.kept),
                       is_run};
    if (context_.is_lost())
        abandon();
}

// --- runs of launches ---

std::optional<ProxyQueue::Flight*> ProxyQueue::run_for(driver::Waits waits) {
    Flight* const newest = flights_.empty() ? nullptr : &flights_.back();
    // One that has an event ends with it.
    const bool is_open = newest && newest->is_run && !newest->last && newest->status == Status::success;
    bool waits_for_the_run = false;
    for (const driver::Timepoint wait : waits) {
        if (!wait.queue)
            continue;
        if (is_open && wait.value >= newest->first_value)
            waits_for_the_run = true;
        else if (!wait.is_complete() || failures_.status(wait.value) != Status::success)
            return std::nullopt;
    }
    // What the run waits for, if anything, must not matter to a launch that does not wait for the run.
    if (is_open && (waits_for_the_run || (newest->after.empty() && newest->own_waits.empty())))
        return newest;
    return nullptr;
}

bool ProxyQueue::push_in_run(const LaunchWork& launch, driver::Waits waits) {
    const std::optional<Flight*> run = run_for(waits);
    if (!run)
        return false;
    flights_.emplace_back();
    cl_event event = nullptr;
    cl_int code = CL_SUCCESS;
    try {
        code = launch.kernel->enqueue(launch, handle_, {}, needs_event(nullptr) ? &event : nullptr);
    } catch (...) {
        flights_.pop_back();
        throw;
    }
    const Status status = report(code, "clEnqueueNDRangeKernel");
    pushed_ = ++submitted_;
    is_flushed_ = false;
    using Ends = Flight::Ends;
    if (*run && status == Status::success) {
        flights_.pop_back();
        (*run)->value = pushed_;
        (*run)->last = event;
        (*run)->ends = event ? Ends::with_its_event : Ends::before_the_next_event;
        return true;
    }
    const Ends ends = event                       ? Ends::with_its_event
                      : status == Status::success ? Ends::before_the_next_event
                                                  : Ends::with_the_one_before;
    flights_.back() = {pushed_, pushed_, nullptr, event, ends, status, nullptr, 0, {}, {}, false, {}, true};
    if (context_.is_lost())
        abandon();
    return true;
}

// A queue with profiling makes every launch slower, by 9 us on NVIDIA's OpenCL. So it is made for the first operation whose times
// are requested, and waits for the operations on the old queue. When it cannot be made, the host's times are used.
void ProxyQueue::start_profiling() {
    is_profiled_ = true;
    const Result<cl_command_queue> profiled = context_.create_queue(CL_QUEUE_PROFILING_ENABLE);
    if (!profiled)
        return;
    if (const cl_event newest = event_at(pushed_)) {
        flush_commands();
        const cl_int code = context_.cl.clEnqueueMarkerWithWaitList(*profiled, 1, &newest, nullptr);
        release(newest);
        if (code != CL_SUCCESS) {
            context_.cl.clReleaseCommandQueue(*profiled);
            return;
        }
    }
    unprofiled_ = std::exchange(handle_, *profiled);
}

bool ProxyQueue::needs_event(const driver::OperationTimes* times) {
    constexpr uint32_t launches_without_event_max = 63;
    if (launches_with_event_ > 0)
        --launches_with_event_;
    else if (!times && ++launches_without_event_ <= launches_without_event_max)
        return false;
    launches_without_event_ = 0;
    return true;
}

void ProxyQueue::push_work(Operation& operation, Pushed& pushed) {
    const cl_icd_dispatch& cl = context_.cl;
    const EventList& waits = operation.events;
    if (auto* const launch = std::get_if<LaunchWork>(&operation.work)) {
        push_launch(*launch, operation.times, waits, pushed);
    } else if (const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work)) {
        pushed.what = "a copy";
        push_copy(*copy, waits, pushed);
    } else if (auto* const fill = std::get_if<devices::FillWork>(&operation.work)) {
        pushed.what = "a fill";
        push_fill(*fill, waits, pushed);
    } else if (!waits.empty() || operation.times) {
        pushed.what = "clEnqueueMarkerWithWaitList";
        pushed.code = cl.clEnqueueMarkerWithWaitList(handle_, count_of(waits), list_of(waits), &pushed.last);
    }
}

void ProxyQueue::push_launch(const LaunchWork& launch, const driver::OperationTimes* times, const EventList& waits,
                             Pushed& pushed) {
    const std::span<const cl_event> before{list_of(waits), waits.size()};
    if (launch.kernel->has_images()) {
        pushed.what = "a launch with images";
        ProxyKernel::ImageEvents events;
        pushed.code = launch.kernel->enqueue_with_images(launch, images_, handle_, before, events);
        add_event(pushed, events.executed);
        add_event(pushed, events.done);
    } else {
        pushed.what = "clEnqueueNDRangeKernel";
        pushed.code = launch.kernel->enqueue(launch, handle_, before, needs_event(times) ? &pushed.last : nullptr);
    }
    pushed.is_enqueued = pushed.code == CL_SUCCESS;
}

// --- fills and copies ---

// OpenCL wants the offset to be a multiple of the pattern's size. Where it is not, the pattern is written once, then
// doubled by copies.
void ProxyQueue::push_fill(devices::FillWork& fill, const EventList& waits, Pushed& pushed) {
    const cl_icd_dispatch& cl = context_.cl;
    const ProxyMemory::Place to = memory_.resolve(fill.to);
    const uint64_t pattern_bytes = fill.pattern.size();
    if (to.offset % pattern_bytes == 0) {
        pushed.code = cl.clEnqueueFillBuffer(handle_, to.buffer, fill.pattern.data(), pattern_bytes, to.offset,
                                             fill.size, count_of(waits), list_of(waits), &pushed.last);
        return;
    }
    pushed.kept = std::move(fill.pattern);
    pushed.code = cl.clEnqueueWriteBuffer(handle_, to.buffer, CL_FALSE, to.offset, pattern_bytes, pushed.kept.data(),
                                          count_of(waits), list_of(waits), &pushed.last);
    for (uint64_t filled = pattern_bytes; filled < fill.size && pushed.code == CL_SUCCESS; filled *= 2) {
        cl_event event = nullptr;
        pushed.code = cl.clEnqueueCopyBuffer(handle_, to.buffer, to.buffer, to.offset, to.offset + filled,
                                             std::min(filled, fill.size - filled), 0, nullptr, &event);
        add_event(pushed, event);
    }
}

// Keeps the first and the last one.
void ProxyQueue::add_event(Pushed& pushed, cl_event event) {
    if (!event)
        return;
    if (!pushed.first)
        std::swap(pushed.first, pushed.last);
    else if (pushed.last)
        context_.cl.clReleaseEvent(pushed.last);
    pushed.last = event;
}

cl_int ProxyQueue::push_row(const driver::CopyOperation& copy, uint64_t from_offset, uint64_t to_offset,
                            const EventList& waits, cl_event* event) {
    const cl_icd_dispatch& cl = context_.cl;
    const uint64_t bytes = copy.shape.row_bytes;
    const DeviceAddress from = copy.from.address.plus(from_offset);
    const DeviceAddress to = copy.to.address.plus(to_offset);
    if (copy.from.place == Place::host) {
        const ProxyMemory::Place target = memory_.resolve(to);
        return cl.clEnqueueWriteBuffer(handle_, target.buffer, CL_FALSE, target.offset, bytes, from.host(),
                                       count_of(waits), list_of(waits), event);
    }
    const ProxyMemory::Place source = memory_.resolve(from);
    if (copy.to.place == Place::host)
        return cl.clEnqueueReadBuffer(handle_, source.buffer, CL_FALSE, source.offset, bytes, to.host(),
                                      count_of(waits), list_of(waits), event);
    const ProxyMemory::Place target = memory_.resolve(to);
    return cl.clEnqueueCopyBuffer(handle_, source.buffer, target.buffer, source.offset, target.offset, bytes,
                                  count_of(waits), list_of(waits), event);
}

// The rows of one slice, so that pitches of slices need not be multiples of those of rows, which OpenCL wants.
cl_int ProxyQueue::push_slice(const driver::CopyOperation& copy, uint64_t from_offset, uint64_t to_offset,
                              const EventList& waits, cl_event* event) {
    const cl_icd_dispatch& cl = context_.cl;
    const size_t region[3] = {copy.shape.row_bytes, copy.shape.rows, 1};
    const size_t none[3] = {0, 0, 0};
    const DeviceAddress from = copy.from.address.plus(from_offset);
    const DeviceAddress to = copy.to.address.plus(to_offset);
    const uint64_t from_pitch = copy.from.layout.row_pitch;
    const uint64_t to_pitch = copy.to.layout.row_pitch;
    if (copy.from.place == Place::host) {
        const ProxyMemory::Place target = memory_.resolve(to);
        const size_t origin[3] = {target.offset, 0, 0};
        return cl.clEnqueueWriteBufferRect(handle_, target.buffer, CL_FALSE, origin, none, region, to_pitch, 0,
                                           from_pitch, 0, from.host(), count_of(waits), list_of(waits), event);
    }
    const ProxyMemory::Place source = memory_.resolve(from);
    const size_t source_origin[3] = {source.offset, 0, 0};
    if (copy.to.place == Place::host)
        return cl.clEnqueueReadBufferRect(handle_, source.buffer, CL_FALSE, source_origin, none, region, from_pitch, 0,
                                          to_pitch, 0, to.host(), count_of(waits), list_of(waits), event);
    const ProxyMemory::Place target = memory_.resolve(to);
    const size_t target_origin[3] = {target.offset, 0, 0};
    return cl.clEnqueueCopyBufferRect(handle_, source.buffer, target.buffer, source_origin, target_origin, region,
                                      from_pitch, 0, to_pitch, 0, count_of(waits), list_of(waits), event);
}

// Within one buffer, OpenCL wants equal pitches on both sides.
bool ProxyQueue::goes_row_by_row(const driver::CopyOperation& copy) const {
    if (copy.shape.rows == 1)
        return true;
    return copy.from.place == Place::device && copy.to.place == Place::device &&
           memory_.resolve(copy.from.address).buffer == memory_.resolve(copy.to.address).buffer;
}

void ProxyQueue::push_copy(const driver::CopyOperation& copy, const EventList& waits, Pushed& pushed) {
    const bool by_row = goes_row_by_row(copy);
    const uint64_t pieces_of_slice = by_row ? copy.shape.rows : 1;
    const uint64_t pieces = copy.shape.slices * pieces_of_slice;
    const EventList none;
    for (uint64_t i = 0; i < pieces && pushed.code == CL_SUCCESS; ++i) {
        const uint64_t z = i / pieces_of_slice;
        const uint64_t y = i % pieces_of_slice;
        const uint64_t from = z * copy.from.layout.slice_pitch + y * copy.from.layout.row_pitch;
        const uint64_t to = z * copy.to.layout.slice_pitch + y * copy.to.layout.row_pitch;
        // The queue is in order: the first piece waits, the last one ends.
        cl_event event = nullptr;
        pushed.code = by_row ? push_row(copy, from, to, i == 0 ? waits : none, &event)
                             : push_slice(copy, from, to, i == 0 ? waits : none, &event);
        add_event(pushed, event);
    }
}

// --- publishing ---

// Publishes everything up to `value`, whose event is complete. What an operation waited for is published before it: the
// list of what is still to do is kept here instead of in calls of calls.
void ProxyQueue::publish_up_to(uint64_t value) {
    SmallVector<driver::Timepoint, 8> to_do;
    to_do.push_back({this, value});
    while (!to_do.empty()) {
        const driver::Timepoint point = to_do.back();
        if (point.is_complete()) {
            to_do.resize_down(to_do.size() - 1);
            continue;
        }
        if (const auto before = static_cast<ProxyQueue*>(point.queue)->publish_next(point.value))
            to_do.push_back(*before);
    }
}

// Takes a step to publish the oldest flight, or returns what must be published before it.
std::optional<driver::Timepoint> ProxyQueue::publish_next(uint64_t value) {
    Ending ending;
    {
        const Lock lock(mutex_);
        if (context_.is_lost()) {
            abandon();
            return std::nullopt;
        }
        if (completed() >= value || flights_.empty())
            return std::nullopt;
        Flight& flight = flights_.front();
        if (!flight.after.empty()) {
            const driver::Timepoint before = flight.after.back();
            if (!before.is_complete())
                return before;
            // Asked without this queue's mutex: two queues may wait for each other's operations.
            const uint64_t of = flight.first_value;
            mutex_.unlock();
            const bool has_failed = before.queue->status(before.value) != Status::success;
            mutex_.lock();
            if (!flights_.empty() && flights_.front().first_value == of && !flights_.front().after.empty() &&
                flights_.front().after.back() == before) {
                flights_.front().has_failed_wait |= has_failed;
                flights_.front().after.resize_down(flights_.front().after.size() - 1);
            }
            return std::nullopt;
        }
        const cl_int state = state_of_oldest();
        if (state <= CL_COMPLETE) {
            retire(flight, state);
            flights_.pop_front();
            if (context_.is_lost())
                abandon();
            return std::nullopt;
        }
        ending = ending_of(flight.value);
    }
    wait_for(ending);
    return std::nullopt;
}

cl_int ProxyQueue::state_of_oldest() {
    const Flight& flight = flights_.front();
    const bool is_over = flight.ends == Flight::Ends::with_the_one_before ||
                         (flight.ends == Flight::Ends::before_the_next_event && flight.value <= finished_);
    if (is_over)
        return CL_COMPLETE;
    const cl_event event = event_behind(0);
    return event ? state_of(event) : CL_SUBMITTED;
}

cl_int ProxyQueue::state_of(cl_event event) const {
    cl_int state = CL_COMPLETE;
    const cl_int code =
        context_.cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
    return code == CL_SUCCESS ? state : code;
}

void ProxyQueue::retire(const Flight& flight, cl_int code) {
    Status status = flight.status;
    // Of several commands, the last one has ended, and the others before it.
    if (flight.first && code == CL_COMPLETE)
        code = std::min(code, state_of(flight.first));
    if (status == Status::success)
        status = report(code, "a command of the queue");
    // Checked here, because implementations need not make a command fail that waits for a failed one.
    bool has_failed_wait = flight.has_failed_wait;
    for (const uint64_t value : flight.own_waits)
        has_failed_wait |= has_failed(value);
    if (status == Status::success && has_failed_wait)
        status = Status::exec_status_error_for_events_in_wait_list;
    if (status != Status::success)
        for (uint64_t value = flight.first_value; value <= flight.value; ++value)
            failures_.note(value, status);
    if (flight.times)
        read_times(flight);
    release(flight.first);
    release(flight.last);
    publish(flight.value);
    changed_.notify_all();
}

void ProxyQueue::read_times(const Flight& flight) {
    const uint64_t now_ns = devices::now_ns();
    const auto ask = [&](cl_event event, cl_profiling_info what) {
        cl_ulong ns = 0;
        return event && context_.cl.clGetEventProfilingInfo(event, what, sizeof ns, &ns, nullptr) == CL_SUCCESS ? ns
                                                                                                                : 0;
    };
    const uint64_t end = ask(flight.last, CL_PROFILING_COMMAND_END);
    const uint64_t start = ask(flight.first ? flight.first : flight.last, CL_PROFILING_COMMAND_START);
    uint64_t start_ns = flight.pushed_ns;
    uint64_t end_ns = now_ns;
    if (end != 0 && start != 0 && start <= end) {
        start_ns = context_.to_host_ns(start, end, now_ns);
        end_ns = context_.to_host_ns(end, end, now_ns);
    }
    // In order, and between what the host knows, whatever the clocks say.
    start_ns = std::clamp(start_ns, std::max(flight.pushed_ns, last_end_ns_), now_ns);
    end_ns = std::clamp(end_ns, start_ns, now_ns);
    flight.times->start(start_ns);
    flight.times->end(end_ns);
    last_end_ns_ = end_ns;
}

bool ProxyQueue::publish_oldest() {
    if (!context_.is_lost() && state_of_oldest() > CL_COMPLETE) {
        flush_commands();
        return false;
    }
    // What it waited for is complete as well, and is published before it.
    const uint64_t value = flights_.front().value;
    mutex_.unlock();
    publish_up_to(value);
    mutex_.lock();
    return true;
}

ProxyQueue::Ending ProxyQueue::ending_of(uint64_t value) {
    Ending ending;
    const bool executes = std::ranges::any_of(flights_, [value](const Flight& flight) {
        return flight.first_value <= value && flight.ends != Flight::Ends::with_the_one_before;
    });
    // Waiting for the whole queue costs less than for an event; what was pushed ends without the host's help.
    if (executes && value != pushed_)
        ending.event = event_at(value);
    if (executes && !ending.event) {
        // clFinish flushes.
        ending.queue = handle_;
        ending.pushed = pushed_;
        return ending;
    }
    flush_commands();
    return ending;
}

// The failure of a command is that of its event; one of the whole queue means that the device is lost.
void ProxyQueue::wait_for(const Ending& ending) {
    if (ending.event)
        return wait_for(ending.event);
    if (!ending.queue)
        return;
    if (const cl_int code = context_.cl.clFinish(ending.queue))
        return context_.lose("clFinish", code);
    const Lock lock(mutex_);
    finished_ = std::max(finished_, ending.pushed);
    is_flushed_ |= pushed_ == ending.pushed;
}

// Releases the caller's reference. A failed command ends the wait too; its status says so.
void ProxyQueue::wait_for(cl_event event) {
    const cl_int code = context_.cl.clWaitForEvents(1, &event);
    if (code != CL_SUCCESS)
        context_.lose("clWaitForEvents", code);
    release(event);
}

}  // namespace polder::proxy
