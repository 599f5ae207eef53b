#include <runtime/queue.h>
#include <runtime/semaphore.h>

#include <new>
#include <utility>

namespace polder::runtime {
namespace {

// Gives one event the result of another event when that is resolved.
class Relay final : public Dependent {
public:
    Relay(Ref<Event> from, Ref<Event> to) : from_(std::move(from)), to_(std::move(to)) {}

    void on_resolved(bool /*failed*/, ReadyList& ready) noexcept override { ready.append(Ref<Dependent>::share(this)); }
    void run(ReadyList& ready) noexcept override {
        if (from_->is_failed())
            to_->fail(from_->status(), ready);
        else
            to_->resolve(from_->timepoint(), ready);
    }

private:
    const Ref<Event> from_;
    const Ref<Event> to_;
};

void connect(const Ref<Event>& from, const Ref<Event>& to) {
    Ref<Dependent> relay = make_ref<Relay>(from, to);
    if (from->add_dependent(relay))
        return;
    ReadyList ready;
    ready.append(std::move(relay));
    ready.run();
}

bool is_complete(const Ref<Event>& event) { return event && event->status() == CL_COMPLETE; }

} // namespace

Ref<Semaphore> Semaphore::create(Ref<Context> context, Ref<Device> device,
                                 std::vector<cl_semaphore_properties_khr> properties) {
    return Ref<Semaphore>::adopt(new Semaphore(std::move(context), std::move(device), std::move(properties)));
}

cl_semaphore_payload_khr Semaphore::payload() const {
    Lock lock(mutex_);
    if (signal_)
        return is_complete(signal_) ? 1 : 0;
    return is_complete(used_) && wait_ && wait_->status() > CL_COMPLETE ? 1 : 0;
}

Ref<Event> Semaphore::take_signal() {
    Lock lock(mutex_);
    if (signal_)
        return std::exchange(signal_, nullptr);
    // The event of the next signal has no queue, like a user event.
    if (!expected_)
        expected_ = make_ref<Event>(Ref<Context>::share(context_.get()));
    return expected_;
}

void Semaphore::finish_wait(const Ref<Event>& signal, Ref<Event> wait) {
    Lock lock(mutex_);
    if (wait) {
        used_ = signal;
        wait_ = std::move(wait);
    } else if (signal.get() != expected_.get() && !signal_) {
        signal_ = signal;
    }
}

void Semaphore::add_signal(Ref<Event> signal) {
    Ref<Event> expected;
    {
        Lock lock(mutex_);
        expected = std::exchange(expected_, nullptr);
        if (!expected)
            signal_ = signal;
    }
    if (!expected)
        return;
    try {
        connect(signal, expected);
    } catch (const std::bad_alloc&) {
        // The signal could not be added, so the wait waits for the next signal.
        Lock lock(mutex_);
        expected_ = std::move(expected);
        throw;
    }
}

} // namespace polder::runtime
