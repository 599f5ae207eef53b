// Queue: a command-queue. Orders commands and hands each to the memory layer and the driver when every event
// it waits for has a timepoint ("submitted"), not when they are complete.
//
// An in-order queue has one driver queue. An out-of-order queue has several lanes, each a driver queue: a
// command goes to the lane of its last dependency, or to the next one.
// Any thread may call any function. Lock order: Queue -> memory::Domain -> driver.
#pragma once

#include <base/mutex.h>
#include <runtime/command.h>
#include <runtime/context.h>
#include <runtime/event.h>

#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

namespace polder::runtime {

// What the application passed to clEnqueue*.
struct EnqueueRequest {
    cl_command_type type = 0;
    std::span<Event* const> wait_list;
    enum class WantEvent : uint8_t { no, yes } want_event = WantEvent::no;
    // Markers and barriers wait for everything before them when their wait list is empty; a barrier also holds
    // back everything after it.
    enum class Ordering : uint8_t { command, marker, barrier } ordering = Ordering::command;
};

class Queue final : public Object {
public:
    static constexpr Kind kind = Kind::queue;
    static constexpr Status invalid = Status::invalid_command_queue;

    static Result<Ref<Queue>> create(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
                                     std::vector<cl_queue_properties> property_list);
    ~Queue() override;

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] Device& device() const { return *device_; }
    [[nodiscard]] SpaceId space() const { return device_->space_id(); }
    // The one driver queue that executes all commands; null for an out-of-order queue. It never changes.
    [[nodiscard]] const driver::Queue* only_lane() const POLDER_NO_THREAD_SAFETY_ANALYSIS {
        return lanes_.size() == 1 ? lanes_.front().queue : nullptr;
    }
    [[nodiscard]] bool is_out_of_order() const { return properties_ & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE; }
    [[nodiscard]] bool has_profiling() const { return properties_ & CL_QUEUE_PROFILING_ENABLE; }
    [[nodiscard]] cl_command_queue_properties properties() const { return properties_; }
    [[nodiscard]] const std::vector<cl_queue_properties>& property_list() const { return property_list_; }

    // Enqueues a command: reserves its memory, and submits it now or when everything that it waits for is submitted. The
    // event is null unless asked for (or the command has to wait). Errors are those of reserving and of an immediate
    // submission.
    template <std::derived_from<Command> T>
    [[nodiscard]] Result<Ref<Event>> enqueue(const EnqueueRequest& request, T&& command) {
        return enqueue_command(request, command, [](Command& c) -> std::unique_ptr<Command> {
            auto moved = std::make_unique<std::remove_cvref_t<T>>(std::move(static_cast<std::remove_cvref_t<T>&>(c)));
            moved->keep();
            return moved;
        });
    }

    void flush();
    // Waits for everything enqueued so far.
    void finish();

    // Keeps `object` alive until everything submitted to this queue so far is complete. Called by
    // Command::submit (lock held), after the operation was submitted; cheap when the object is the same as before.
    // The analysis cannot see that Command::submit runs under the lock.
    void keep_alive(const RefCounted& object, driver::Timepoint until) POLDER_NO_THREAD_SAFETY_ANALYSIS;

private:
    using MoveToHeap = std::unique_ptr<Command> (*)(Command& command);
    struct Lane {
        driver::Queue* queue;
        driver::Timepoint last;
    };
    struct Kept {
        driver::Timepoint until;
        Ref<const RefCounted> object;
    };
    class PendingCommand;

    Queue(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
          std::vector<cl_queue_properties> property_list);

    Result<Ref<Event>> enqueue_command(const EnqueueRequest& request, Command& command, MoveToHeap move)
        POLDER_EXCLUDES(mutex_);
    Result<Ref<Event>> submit_or_hold_back(const EnqueueRequest& request, Command& command, MoveToHeap move)
        POLDER_EXCLUDES(mutex_);
    Ref<Event> make_event(cl_command_type type);
    void add_order_waits_locked(bool joins_all, std::vector<driver::Timepoint>& waits) POLDER_REQUIRES(mutex_);
    void hold_back_locked(const EnqueueRequest& request, bool joins_all, std::unique_ptr<Command> command,
                          const Ref<Event>& event, ReadyList& ready) POLDER_REQUIRES(mutex_);
    // The first `event_count` of `waits` are the events of the wait list.
    Result<driver::Timepoint> submit_pending(const Command& command, std::vector<driver::Timepoint>& waits,
                                             size_t event_count, Event& event) POLDER_EXCLUDES(mutex_);
    Result<driver::Timepoint> submit_locked(const Command& command, std::vector<driver::Timepoint>& waits,
                                            size_t event_count, Event* event) POLDER_REQUIRES(mutex_);
    void reserve_kept_locked() POLDER_REQUIRES(mutex_);
    Lane& choose_lane(std::span<const driver::Timepoint> waits) POLDER_REQUIRES(mutex_);
    // Whether something was enqueued that is not submitted.
    bool has_pending_locked() POLDER_REQUIRES(mutex_);
    void add_pending_locked(const Ref<Event>& event) POLDER_REQUIRES(mutex_);
    // Something that was enqueued has been submitted, or has failed: its event, which keeps the queue, is released.
    void note_resolved() POLDER_EXCLUDES(mutex_);
    void pass_barrier_locked() POLDER_REQUIRES(mutex_);

    Ref<Context> context_;
    Ref<Device> device_;
    const cl_command_queue_properties properties_;
    const std::vector<cl_queue_properties> property_list_;

    Mutex mutex_;
    std::vector<Lane> lanes_ POLDER_GUARDED_BY(mutex_);
    uint32_t next_lane_ POLDER_GUARDED_BY(mutex_) = 0;
    std::vector<driver::Timepoint> waits_ POLDER_GUARDED_BY(mutex_);
    // Enqueued, not submitted (and some that are since), in order of enqueueing; the last one of an in-order queue.
    std::vector<Ref<Event>> pending_ POLDER_GUARDED_BY(mutex_);
    size_t resolved_since_sweep_ POLDER_GUARDED_BY(mutex_) = 0;
    // The last flush was also for commands that were not submitted then, so they need no flush of their own.
    bool is_flushed_ahead_ POLDER_GUARDED_BY(mutex_) = false;
    // Of an out-of-order queue: everything enqueued later comes after it.
    Ref<Event> pending_barrier_ POLDER_GUARDED_BY(mutex_);
    driver::Timepoint barrier_ POLDER_GUARDED_BY(mutex_);
    std::vector<Kept> kept_ POLDER_GUARDED_BY(mutex_);
    size_t sweep_at_ POLDER_GUARDED_BY(mutex_) = 16;
};

}  // namespace polder::runtime
