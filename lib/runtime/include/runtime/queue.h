// Queue: a command-queue. It orders commands, and hands each to the memory layer and the driver as soon as every event that
// the command waits for is submitted (has a timepoint), not when these events are complete.
//
// An in-order queue has one driver queue. An out-of-order queue has several for each thread that uses it (queue_shard.h): a
// command goes to the driver queue of its last dependency, or to one that has nothing to do, or to the next one.
// Any thread may call any function. Lock order: barrier turn -> shard -> Queue -> memory::Domain -> driver.
#pragma once

#include <base/function_ref.h>
#include <base/mutex.h>
#include <base/wait_list.h>
#include <runtime/command.h>
#include <runtime/context.h>
#include <runtime/event.h>
#include <runtime/queue_shard.h>

#include <array>
#include <atomic>
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

class Queue final : public ScatteredObject<Queue> {
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
    [[nodiscard]] const driver::Queue* only_driver_queue() const { return only_driver_queue_; }
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
    // Releases what the queue keeps for commands that are complete.
    void drop_complete();

    // Keeps `object` alive until all operations submitted to this queue so far are complete. Called by
    // Command::submit (with the lock), after the operation was submitted; cheap when the object is the same as before.
    // The analysis cannot see that Command::submit runs under the lock of the calling thread's shard.
    void keep_alive(const RefCounted& object, driver::Timepoint until) POLDER_NO_THREAD_SAFETY_ANALYSIS;

private:
    using MoveToHeap = std::unique_ptr<Command> (*)(Command& command);
    class PendingCommand;
    // Everything enqueued before a marker or a barrier.
    struct Earlier {
        std::vector<Ref<Event>> pending;
        WaitList submitted;
    };
    // What an enqueue call does when it has released its locks: both may call the application.
    struct Afterwards {
        ReadyList ready;
        std::vector<QueueShard::Kept> dropped;
    };

    Queue(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
          std::vector<cl_queue_properties> property_list);

    // The calling thread's shard: the first one in an in-order queue, and where there are no more driver queues.
    [[nodiscard]] QueueShard& shard_here();
    [[nodiscard]] QueueShard& new_shard(std::atomic<QueueShard*>& place);
    [[nodiscard]] Result<void> make_first_shard();
    [[nodiscard]] Result<std::unique_ptr<QueueShard>> make_shard(size_t stream_count);
    void give_back_streams(const QueueShard& shard) POLDER_REQUIRES(shard.mutex);
    // Calls `function` for each shard, once.
    void for_each_shard(FunctionRef<void(QueueShard&)> function);

    void wait_for_pending();
    // Waits for the only stream of an in-order queue.
    static void finish_stream(QueueShard& shard);
    // Waits for all streams of an out-of-order queue.
    void finish_shards();
    static void drop_kept(QueueShard& shard);

    Result<Ref<Event>> enqueue_command(const EnqueueRequest& request, Command& command, MoveToHeap move);
    // Reserves, and takes the turn of barriers.
    Result<Ref<Event>> reserve_and_submit(const EnqueueRequest& request, Command& command, MoveToHeap move);
    Result<Ref<Event>> submit_marker(const EnqueueRequest& request, Command& command, MoveToHeap move,
                                     Afterwards& afterwards);
    // `earlier`: what a marker or a barrier of an out-of-order queue waits for when it has no wait list, else null.
    Result<Ref<Event>> submit_or_hold_back(const EnqueueRequest& request, const Earlier* earlier, Command& command,
                                           MoveToHeap move, Afterwards& afterwards);
    Ref<Event> make_event(cl_command_type type);
    // Reads what is pending first: a command that is submitted meanwhile is in one list or the other, or in both.
    Earlier everything_so_far() POLDER_EXCLUDES(mutex_);
    void add_submitted_so_far(WaitList& waits);
    // A marker or a barrier replaces them from now on; otherwise each of a row of markers would wait for all before it.
    void forget_pending_locked(const std::vector<Ref<Event>>& events) POLDER_REQUIRES(mutex_);
    void hold_back(QueueShard& shard, const EnqueueRequest& request, const Earlier* earlier,
                   std::unique_ptr<Command> command, const Ref<Event>& event, ReadyList& ready)
        POLDER_REQUIRES(shard.mutex) POLDER_EXCLUDES(mutex_);
    // `waits` requires the events of the wait list.
    Result<driver::Timepoint> submit_pending(const Command& command, WaitList& waits, Event& event);
    Result<driver::Timepoint> submit(QueueShard& shard, const Command& command, WaitList& waits, Event* event,
                                     std::vector<QueueShard::Kept>& dropped) POLDER_REQUIRES(shard.mutex);
    // Whether a barrier that is not submitted holds back what the shard enqueues now. If not, shard.barrier is the barrier to
    // wait for.
    [[nodiscard]] bool is_behind_pending_barrier(QueueShard& shard) POLDER_REQUIRES(shard.mutex)
        POLDER_EXCLUDES(mutex_);
    void set_barrier(driver::Timepoint barrier) POLDER_EXCLUDES(mutex_);
    // The newest barrier that was submitted.
    [[nodiscard]] driver::Timepoint newest_barrier() POLDER_EXCLUDES(mutex_);
    // Whether something was enqueued that is not submitted.
    bool has_pending() POLDER_EXCLUDES(mutex_);
    bool has_pending_locked() POLDER_REQUIRES(mutex_);
    void add_pending_locked(const Ref<Event>& event) POLDER_REQUIRES(mutex_);
    // Something that was enqueued has been submitted, or has failed: its event, which keeps the queue, is released.
    void note_resolved() POLDER_EXCLUDES(mutex_);
    void pass_barriers_locked() POLDER_REQUIRES(mutex_);

    Ref<Context> context_;
    Ref<Device> device_;
    const cl_command_queue_properties properties_;
    const std::vector<cl_queue_properties> property_list_;

    // Out-of-order queues: threads whose numbers are equal modulo this share a shard.
    static constexpr uint32_t shards_max = 32;
    QueueShard* first_shard_ = nullptr;
    // Each is null until its first use, then never changed: a shard of its own, or the first one.
    std::array<std::atomic<QueueShard*>, shards_max> shards_{};
    const driver::Queue* only_driver_queue_ = nullptr;

    // One barrier at a time joins what is before it and is published, so that the newest one comes after all others.
    Mutex barrier_turn_;

    Mutex mutex_;
    // Commands that were not submitted at enqueue, in order; some are submitted by now. Only the last one for an in-order queue.
    std::vector<Ref<Event>> pending_ POLDER_GUARDED_BY(mutex_);
    std::atomic<bool> may_have_pending_{false};  // false: `pending_` is empty. Written under the mutex.
    size_t resolved_since_sweep_ POLDER_GUARDED_BY(mutex_) = 0;
    // The last flush was also for commands that were not submitted then, so they need no flush of their own.
    std::atomic<bool> is_flushed_ahead_{false};
    // Of an out-of-order queue: everything enqueued later comes after the newest barrier that was submitted, and after those that are
    // not yet, in order. All of them are known, because one that fails leaves the order to those before it.
    driver::Timepoint barrier_ POLDER_GUARDED_BY(mutex_);
    std::vector<Ref<Event>> pending_barriers_ POLDER_GUARDED_BY(mutex_);
    std::atomic<uint32_t> barrier_changes_{0};  // how often the two above have changed. Written under the mutex.
};

}  // namespace polder::runtime
