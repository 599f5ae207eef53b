// Streams: command queues in order. Stream 0 of a device is its default stream; further ones come from a pool that is never
// destroyed, as in PyTorch's other backends. The current device and streams are those of the calling thread. Any thread.
#pragma once

#include "platform.h"

#include <c10/core/Stream.h>

namespace torch_opencl {

int current_device();
// Throws when there is no such device.
void set_device(int index);
int exchange_device(int index);

// The queue of a stream.
cl_command_queue queue_of(c10::Stream stream);
cl_command_queue current_queue(int device);
c10::Stream current_stream(int device);
c10::Stream exchange_stream(c10::Stream stream);
c10::Stream default_stream(int device);
c10::Stream stream_from_pool(int device);

// Whether everything that was enqueued on the stream is complete.
bool is_idle(c10::Stream stream);
void synchronize_stream(c10::Stream stream);
// Waits for all streams of a device that were used.
void synchronize_device(int device);
// The streams of a device that were used.
std::vector<cl_command_queue> queues_of(int device);
// Whether the device's default stream is the only one that was used, and the calling thread's current one.
bool uses_default_stream_alone(int device);
// Whether the calling process is the child of a fork after devices were used.
bool is_in_bad_fork();

// A reference to a cl_event.
class Event {
public:
    Event() = default;
    explicit Event(cl_event event) : event_(event) {}
    Event(Event&& other) noexcept : event_(other.event_) { other.event_ = nullptr; }
    Event& operator=(Event&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() {
        if (event_)
            clReleaseEvent(event_);
    }
    [[nodiscard]] cl_event get() const { return event_; }
    [[nodiscard]] bool is_complete() const;

private:
    cl_event event_ = nullptr;
};

// An event that is complete when everything on `queue` is.
Event record(cl_command_queue queue);
// Commands that are enqueued on `queue` from now on wait for `event`.
void block(cl_command_queue queue, const Event& event);

}  // namespace torch_opencl
