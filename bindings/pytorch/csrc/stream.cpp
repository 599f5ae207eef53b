// A stream is an index into its device's table of queues; a queue is made when it is first used. Counters of uses show whether a stream may
// have work that was not waited for, so that most queries need no call of OpenCL.
#include "stream.h"

#include <array>
#include <atomic>
#include <c10/util/Exception.h>
#include <memory>
#include <pthread.h>

namespace torch_opencl {
namespace {

constexpr int streams_max = 33;  // of one device: the default stream and the pool's

// `uses` counts how often the queue was requested. So it changes whenever something may have been enqueued.
struct StreamState {
    std::atomic<cl_command_queue> queue{nullptr};
    std::atomic<uint64_t> uses{0};
    std::atomic<uint64_t> finished_uses{0};
    std::mutex mutex;
    Event marker;  // guarded by mutex, as is the next
    uint64_t marker_uses = 0;
};

struct DeviceStreams {
    std::mutex mutex;
    std::array<StreamState, streams_max> states{};
    std::atomic<unsigned> next{0};
    std::atomic<bool> has_others{false};  // than the default one
};

std::atomic<bool> forked{false};

// Never destroyed, as the platform.
std::vector<std::unique_ptr<DeviceStreams>>& all_streams() {
    static auto* const it = [] {
        auto* const made = new std::vector<std::unique_ptr<DeviceStreams>>;
        for (size_t i = 0; i < Platform::get().devices().size(); ++i)
            made->push_back(std::make_unique<DeviceStreams>());
        pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
        return made;
    }();
    return *it;
}

thread_local int this_device = 0;
// The current stream's id for each device; devices without an entry have the default stream.
thread_local std::vector<c10::StreamId> this_streams;

c10::Stream make_stream(int device, c10::StreamId id) {
    const c10::Device where(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device));
    return c10::Stream(c10::Stream::UNSAFE, where, id);
}

StreamState& state_at(int index, c10::StreamId id) {
    static_cast<void>(Platform::get().device(index));
    TORCH_CHECK(!is_in_bad_fork(), "opencl: devices were used before fork; use the 'spawn' start method");
    TORCH_CHECK(id >= 0 && id < streams_max, "opencl: no stream ", id);
    return all_streams()[static_cast<size_t>(index)]->states[static_cast<size_t>(id)];
}

cl_command_queue queue_at(int index, c10::StreamId id) {
    StreamState& state = state_at(index, id);
    state.uses.fetch_add(1, std::memory_order_relaxed);
    if (cl_command_queue queue = state.queue.load(std::memory_order_acquire))
        return queue;
    const Device& device = Platform::get().device(index);
    const std::lock_guard lock(all_streams()[static_cast<size_t>(index)]->mutex);
    if (cl_command_queue queue = state.queue.load(std::memory_order_acquire))
        return queue;
    // Profiling gives events their times.
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    cl_int error = CL_SUCCESS;
    cl_command_queue queue = clCreateCommandQueueWithProperties(device.context, device.id, properties, &error);
    check(error, "clCreateCommandQueueWithProperties");
    if (id != 0)
        all_streams()[static_cast<size_t>(index)]->has_others.store(true);
    state.queue.store(queue, std::memory_order_release);
    return queue;
}

// Waits for the queue of a stream, if it has one.
void finish(StreamState& state) {
    cl_command_queue queue = state.queue.load(std::memory_order_acquire);
    if (!queue)
        return;
    const uint64_t uses = state.uses.load(std::memory_order_relaxed);
    check(clFinish(queue), "clFinish");
    state.finished_uses.store(uses, std::memory_order_relaxed);
}

}  // namespace

bool is_in_bad_fork() { return forked.load(std::memory_order_relaxed); }

int current_device() { return this_device; }

void set_device(int index) {
    static_cast<void>(Platform::get().device(index));
    this_device = index;
}

int exchange_device(int index) {
    const int before = this_device;
    if (index >= 0)
        set_device(index);
    return before;
}

c10::Stream default_stream(int device) { return make_stream(device, 0); }

c10::Stream current_stream(int device) {
    const auto place = static_cast<size_t>(device);
    return make_stream(device, place < this_streams.size() ? this_streams[place] : 0);
}

c10::Stream exchange_stream(c10::Stream stream) {
    const c10::Stream before = current_stream(stream.device_index());
    const auto place = static_cast<size_t>(stream.device_index());
    if (place >= this_streams.size())
        this_streams.resize(place + 1, 0);
    this_streams[place] = stream.id();
    return before;
}

c10::Stream stream_from_pool(int device) {
    static_cast<void>(Platform::get().device(device));
    DeviceStreams& streams = *all_streams()[static_cast<size_t>(device)];
    return make_stream(device, 1 + streams.next.fetch_add(1) % (streams_max - 1));
}

cl_command_queue queue_of(c10::Stream stream) { return queue_at(stream.device_index(), stream.id()); }

cl_command_queue current_queue(int device) {
    const auto place = static_cast<size_t>(device);
    return queue_at(device, place < this_streams.size() ? this_streams[place] : 0);
}

std::vector<cl_command_queue> queues_of(int device) {
    std::vector<cl_command_queue> used;
    for (const StreamState& state : all_streams()[static_cast<size_t>(device)]->states)
        if (cl_command_queue queue = state.queue.load(std::memory_order_acquire))
            used.push_back(queue);
    return used;
}

bool uses_default_stream_alone(int device) {
    const auto place = static_cast<size_t>(device);
    return (place >= this_streams.size() || this_streams[place] == 0) &&
           !all_streams()[place]->has_others.load(std::memory_order_acquire);
}

bool is_idle(c10::Stream stream) {
    StreamState& state = state_at(stream.device_index(), stream.id());
    cl_command_queue queue = state.queue.load(std::memory_order_acquire);
    const uint64_t uses = state.uses.load(std::memory_order_relaxed);
    if (!queue || uses == state.finished_uses.load(std::memory_order_relaxed))
        return true;
    const std::lock_guard lock(state.mutex);
    if (state.marker_uses != uses) {
        state.marker = record(queue);
        state.marker_uses = uses;
    }
    return state.marker.is_complete();
}

void synchronize_stream(c10::Stream stream) { finish(state_at(stream.device_index(), stream.id())); }

void synchronize_device(int device) {
    static_cast<void>(Platform::get().device(device));
    for (StreamState& state : all_streams()[static_cast<size_t>(device)]->states)
        finish(state);
}

bool Event::is_complete() const {
    if (!event_)
        return true;
    cl_int status = CL_COMPLETE;
    check(clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
          "clGetEventInfo");
    return status <= CL_COMPLETE;
}

Event record(cl_command_queue queue) {
    cl_event event = nullptr;
    check(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
    Event recorded(event);
    check(clFlush(queue), "clFlush");
    return recorded;
}

void block(cl_command_queue queue, const Event& event) {
    const cl_event waited = event.get();
    if (waited)
        check(clEnqueueBarrierWithWaitList(queue, 1, &waited, nullptr), "clEnqueueBarrierWithWaitList");
}

}  // namespace torch_opencl
