// Semaphore: a binary one (cl_khr_semaphore). Signals and waits are markers in queues; a semaphore connects each signal's event
// with the wait that comes after it, so that nothing blocks and waits may be enqueued before their signal.
//
// Any thread may call any function.
#pragma once

#include <runtime/context.h>
#include <runtime/event.h>

#include <CL/cl_ext.h>
#include <optional>
#include <vector>

namespace polder::runtime {

class Semaphore final : public Object {
public:
    static constexpr Kind kind = Kind::semaphore;
    static constexpr Status invalid{-1142};  // CL_INVALID_SEMAPHORE_KHR

    // `properties` with the terminating zero. `device` is null for a semaphore of all devices of the context.
    static Ref<Semaphore> create(Ref<Context> context, Ref<Device> device,
                                 std::vector<cl_semaphore_properties_khr> properties);

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] const Device* device() const { return device_.get(); }
    [[nodiscard]] const std::vector<cl_semaphore_properties_khr>& properties() const { return properties_; }

    // 1 if the last signal is complete and no wait after it is.
    [[nodiscard]] cl_semaphore_payload_khr payload() const POLDER_EXCLUDES(mutex_);

    // A wait is about to be enqueued: the event that it has to wait for. That of the last signal, which is used up, or of the next
    // one, if there is none.
    [[nodiscard]] Ref<Event> take_signal() POLDER_EXCLUDES(mutex_);
    // The wait for `signal` was enqueued; `wait` is null if that failed, and the signal is there again.
    void finish_wait(const Ref<Event>& signal, Ref<Event> wait) POLDER_EXCLUDES(mutex_);
    // A signal was enqueued.
    void add_signal(Ref<Event> signal) POLDER_EXCLUDES(mutex_);

private:
    Semaphore(Ref<Context> context, Ref<Device> device, std::vector<cl_semaphore_properties_khr> properties)
        : context_(std::move(context)), device_(std::move(device)), properties_(std::move(properties)) {}

    const Ref<Context> context_;
    const Ref<Device> device_;
    const std::vector<cl_semaphore_properties_khr> properties_;
    mutable Mutex mutex_;
    Ref<Event> signal_ POLDER_GUARDED_BY(mutex_);  // no wait was enqueued for it yet
    Ref<Event> used_ POLDER_GUARDED_BY(mutex_);  // the signal of the last wait
    Ref<Event> wait_ POLDER_GUARDED_BY(mutex_);  // the last wait
    Ref<Event> expected_ POLDER_GUARDED_BY(mutex_);  // a wait was enqueued for the next signal
};

}  // namespace polder::runtime
