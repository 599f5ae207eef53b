// The half of CudaQueue that gives operations to the stream, and reads the times of those that have executed.
#include <algorithm>
#include <cstring>
#include <cuda/copy_pieces.h>
#include <cuda/cuda_queue.h>
#include <cuda/enqueue_copy.h>
#include <host/clock.h>

namespace polder::cuda {
namespace {

// Distances between events are floats in milliseconds: within this, they are exact to 60 ns.
constexpr float reference_distance_max_ms = 1000;

uint64_t as_ns(float ms) { return static_cast<uint64_t>(std::max(0.0f, ms) * 1e6); }

// True when the rows have no gaps at both ends of the copy.
bool is_one_row(const driver::CopyOperation& copy) {
    return is_contiguous(copy.shape, copy.from.layout) && is_contiguous(copy.shape, copy.to.layout);
}

// The length of the part at the pattern's beginning that the pattern repeats, in bytes.
size_t period_of(const std::vector<std::byte>& pattern) {
    for (size_t period = 1; period < pattern.size(); period *= 2)
        if (std::memcmp(pattern.data(), pattern.data() + period, pattern.size() - period) == 0)
            return period;
    return pattern.size();
}

template <class Word>
Word word_at(const std::vector<std::byte>& bytes, size_t offset) {
    Word word;
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
}

} // namespace

bool CudaQueue::is_pageable(const driver::CopyOperation& copy) const {
    const auto pageable = [&](const driver::CopyOperation::End& end) {
        if (end.place != driver::CopyOperation::Place::host)
            return false;
        const uint64_t bytes = (copy.shape.slices - 1) * end.layout.slice_pitch +
                               (copy.shape.rows - 1) * end.layout.row_pitch + copy.shape.row_bytes;
        return !(is_one_row(copy) ? services_.regions.cover(end.address.host(), bytes)
                                  : services_.regions.contain(end.address.host(), bytes));
    };
    return pageable(copy.from) || pageable(copy.to);
}

bool CudaQueue::needs_host(const Operation& operation) const {
    using Place = driver::CopyOperation::Place;
    if (std::holds_alternative<driver::HostOperation>(operation.work))
        return true;
    if (const auto* const launch = std::get_if<LaunchWork>(&operation.work))
        return launch->kernel->print() != nullptr;
    const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work);
    return copy && ((copy->from.place == Place::host && copy->to.place == Place::host) || is_pageable(*copy));
}

void CudaQueue::push(Operation& operation) {
    // The only step that needs memory.
    for (const driver::Timepoint wait : operation.after)
        wait_for_gpu(static_cast<CudaQueue*>(wait.queue)->context_, operation.value);
    const CudaContext::Current current(context_);
    Flight flight{operation.value, nullptr, nullptr, operation.times};
    Code code = code_success;
    for (const Event event : operation.events)
        if (code == code_success)
            code = context_.api.stream_wait_event(stream_, event, 0);
    const bool is_flight = operation.times || !flights_.empty();
    if (is_flight)
        begin_flight(flight);
    if (code == code_success && check_waits(operation))
        code = push_work(operation);
    pushed_ = operation.value;
    if (const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work))
        if (copy->to.place == driver::CopyOperation::Place::host)
            host_written_ = operation.value;
    if (is_flight)
        end_flight(flight);
    note(operation.value, code, "a command of the queue");
    if (pushed_ - written_ >= unwritten_max_) {
        write_counter();
        unwritten_max_ = std::min(2 * unwritten_max_, unwritten_limit);
    }
}

Code CudaQueue::push_work(Operation& operation) {
    if (auto* const launch = std::get_if<LaunchWork>(&operation.work))
        return launch->kernel->launch(stream_, launch->parameter, launch->dynamic_bytes);
    if (const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work))
        return push_copy(*copy);
    if (const auto* const fill = std::get_if<devices::FillWork>(&operation.work))
        return push_fill(*fill);
    Code code = code_success;
    if (const auto* const copies = std::get_if<PeerCopies>(&operation.work))
        for (size_t i = 0; i < copies->size() && code == code_success; ++i)
            code = enqueue_copy(context_.api, stream_, (*copies)[i]);
    return code;
}

// Host memory that was registered as several regions is copied region by region.
Code CudaQueue::push_copy(const driver::CopyOperation& copy) {
    using Place = driver::CopyOperation::Place;
    const CudaApi& api = context_.api;
    if (!is_one_row(copy) || copy.from.place == copy.to.place)
        return enqueue_copy(api, stream_, copy);
    const std::byte* const host = copy.from.place == Place::host ? copy.from.address.host() : copy.to.address.host();
    const uint64_t size = copy.shape.row_bytes * copy.shape.rows * copy.shape.slices;
    Code code = code_success;
    for (uint64_t done = 0; done < size && code == code_success;) {
        driver::CopyOperation part = copy;
        part.from.address = copy.from.address.plus(done);
        part.to.address = copy.to.address.plus(done);
        const uint64_t here = services_.regions.bytes_from(host + done, size - done);
        part.shape = {here != 0 ? here : size - done, 1, 1};
        code = enqueue_copy(api, stream_, part);
        done += part.shape.row_bytes;
    }
    return code;
}

// CUDA fills with 1, 2 or 4 bytes. A longer pattern is written once, then doubled by copies.
Code CudaQueue::push_fill(const devices::FillWork& fill) {
    const CudaApi& api = context_.api;
    const DevicePointer to = fill.to.value;
    const size_t period = period_of(fill.pattern);
    if (period == 1)
        return api.fill_8(to, std::to_integer<unsigned char>(fill.pattern[0]), fill.size, stream_);
    if (period == 2)
        return api.fill_16(to, word_at<unsigned short>(fill.pattern, 0), fill.size / 2, stream_);
    if (period == 4)
        return api.fill_32(to, word_at<unsigned>(fill.pattern, 0), fill.size / 4, stream_);
    Code code = code_success;
    for (size_t offset = 0; offset < period && code == code_success; offset += 4)
        code = api.fill_32(to + offset, word_at<unsigned>(fill.pattern, offset), 1, stream_);
    for (uint64_t filled = period; filled < fill.size && code == code_success; filled *= 2)
        code = api.copy_within(to + filled, to, std::min(filled, fill.size - filled), stream_);
    return code;
}

// --- publishing ---

void CudaQueue::write_counter() {
    if (written_ == pushed_ || !flights_.empty() || is_lost())
        return;
    const CudaContext::Current current(context_);
    const uint64_t value = pushed_;
    if (const Code code = context_.api.stream_write_value(stream_, counter_->address(), value, 0))
        static_cast<void>(survives(code, "cuStreamWriteValue64"));
    else
        written_ = value;
}

Event CudaQueue::take_event() {
    Event event = nullptr;
    if (!events_.empty()) {
        event = events_.back();
        events_.pop_back();
        return event;
    }
    try {
        events_.reserve(events_made_ + 1);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    if (context_.api.event_create(&event, event_default) != code_success)
        return nullptr;
    ++events_made_;
    return event;
}

void CudaQueue::give_back(Event event) {
    if (event)
        events_.push_back(event);
}

Event CudaQueue::record_event() {
    const Event event = take_event();
    if (!event)
        return nullptr;
    const Code code = context_.api.event_record(event, stream_);
    if (code == code_success)
        return event;
    // What it was recorded for before is over: it would seem to be complete.
    give_back(event);
    static_cast<void>(survives(code, "cuEventRecord"));
    return nullptr;
}

void CudaQueue::begin_flight(Flight& flight) {
    // What was pushed before is published by the GPU.
    write_counter();
    if (flight.times)
        flight.start = record_event();
}

void CudaQueue::end_flight(Flight& flight) {
    flight.end = record_event();
    try {
        if (!is_lost())
            return flights_.push_back(flight);
    } catch (const std::bad_alloc&) {
        // It is published with what comes behind the flights.
    }
    devices::set_times(flight.times, devices::now_ns());
    give_back(flight.start);
    give_back(flight.end);
}

// Publishes the flights that have ended.
void CudaQueue::retire() {
    if (flights_.empty())
        return;
    const CudaContext::Current current(context_);
    while (!flights_.empty()) {
        const Event end = flights_.front().end;
        // Without an event for it, the whole stream must be done.
        const Code code = end ? context_.api.event_query(end) : context_.api.stream_query(stream_);
        if (code != code_success) {
            // When CUDA refuses, a thread that waits looks at the stream.
            static_cast<void>(code == code_not_ready || survives(code, "a command of the queue"));
            return;
        }
        retire_oldest();
    }
}

void CudaQueue::retire_oldest() {
    const Flight flight = flights_.front();
    if (flight.times)
        read_times(flight);
    flights_.pop_front();
    written_ = std::max(written_, flight.value);
    publish(flight.value);
    for (const Event event : {flight.start, flight.end})
        if (event != reference_)
            give_back(event);
}

Code CudaQueue::publish_idle_stream() {
    const CudaContext::Current current(context_);
    if (const Code code = context_.api.stream_query(stream_))
        return code;
    while (!flights_.empty())
        retire_oldest();
    written_ = pushed_;
    if (completed() < pushed_)
        publish(pushed_);
    return code_success;
}

// Events have distances, not times. The first one ended now, as far as the host knows; later ones are counted from it.
void CudaQueue::read_times(const Flight& flight) {
    const CudaApi& api = context_.api;
    const uint64_t now_ns = devices::now_ns();
    float duration_ms = 0;
    if (!flight.start || !flight.end || api.event_elapsed_ms(&duration_ms, flight.start, flight.end) != code_success)
        duration_ms = 0;
    const uint64_t duration_ns = as_ns(duration_ms);
    uint64_t end_ns = now_ns;
    float distance_ms = 0;
    if (reference_ && flight.end && api.event_elapsed_ms(&distance_ms, reference_, flight.end) == code_success &&
        distance_ms < reference_distance_max_ms)
        end_ns = std::min(now_ns, reference_ns_ + as_ns(distance_ms));
    // Keeps the times of successive flights in order in spite of rounding.
    uint64_t start_ns = end_ns - std::min(duration_ns, end_ns);
    start_ns = std::max(start_ns, reference_ns_);
    end_ns = std::max(end_ns, start_ns);
    flight.times->start(start_ns);
    flight.times->end(end_ns);
    if (flight.end) {
        give_back(reference_);
        reference_ = flight.end;
    }
    reference_ns_ = end_ns;
}

} // namespace polder::cuda
