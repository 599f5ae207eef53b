// ProxyQueue: a driver::Queue on an in-order queue of another OpenCL implementation.
//
// An operation that is "pushed" (foreign/foreign_queue.h) is enqueued there; it waits for events of queues of the same context.
//
// A pushed operation that is not published is a *flight*. A thread that waits for a value waits for its
// event, then publishes everything up to it: times and failures first, then the counter. When no thread waits, the queue's own thread polls
// the events. That thread never waits inside the implementation, because the threads that submit would then have to wait, too. No callback
// of the implementation is used: callbacks run in its threads, under locks that Polder does not know.
//
// An event takes as long as a launch. So only one of 64 launches has an event, and the others end with the next event after them; when
// an event is needed and there is none, a marker is enqueued. After a thread or another queue has waited for a launch without an event,
// the next launches have one each, so that later waits do not include later launches. Launches that end together, wait only for each
// other, and whose times are not requested are a *run*: one flight, which succeeds or fails as a whole (decision 104).
//
// Threads: see driver::Queue. The mutex is not held while the host waits for anything.
#pragma once

#include <deque>
#include <foreign/foreign_queue.h>
#include <optional>
#include <proxy/proxy_operation.h>
#include <vector>

namespace polder::proxy {

class ProxyQueue final : public devices::ForeignQueue<Operation> {
public:
    [[nodiscard]] static Result<std::unique_ptr<driver::Queue>> create(ForeignContext& context, ProxyMemory& memory);
    ~ProxyQueue() override;

    driver::Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override;
    void wait(uint64_t value) override;

private:
    // A pushed operation that has not been published, or a run of launches. The values of all flights are those behind `completed()`,
    // without gaps.
    struct Flight {
        uint64_t first_value;  // of a run; else `value`
        uint64_t value;
        cl_event first;  // of several commands; null: the last one is the only one
        cl_event last;  // null: see `ends`
        enum class Ends : uint8_t { with_its_event, before_the_next_event, with_the_one_before } ends;
        Status status;  // as known so far
        driver::OperationTimes* times;
        uint64_t pushed_ns;  // when `times` are asked for
        SmallVector<driver::Timepoint, 2> after;  // published before it; when one has failed, it has, too
        SmallVector<uint64_t, 4> own_waits;  // likewise
        bool has_failed_wait = false;
        std::vector<std::byte> kept;  // host memory that its commands read, kept until they are complete
        bool is_run = false;
    };
    // The commands of one operation.
    struct Pushed {
        cl_int code = CL_SUCCESS;
        const char* what = "";  // the call that failed
        bool is_enqueued = false;
        cl_event first = nullptr;
        cl_event last = nullptr;
        std::vector<std::byte> kept;
    };

    ProxyQueue(ForeignContext& context, ProxyMemory& memory, cl_command_queue handle)
        : ForeignQueue("polder-proxy"), context_(context), memory_(memory), images_(context, memory, image_bytes_max),
          handle_(handle) {}
    static constexpr uint64_t image_bytes_max = uint64_t{64} << 20;

    [[nodiscard]] bool is_quiet() const override POLDER_NO_THREAD_SAFETY_ANALYSIS {
        return ForeignQueue::is_quiet() && flights_.empty();
    }
    [[nodiscard]] bool is_lost() const override { return context_.is_lost(); }
    void lose_in_child() override { context_.lose_in_child(); }
    [[nodiscard]] bool needs_host(const Operation& operation) const override;
    [[nodiscard]] bool order_after(driver::Timepoint wait, Operation& operation) override;
    void flush_pushed() override POLDER_REQUIRES(mutex_) { flush_commands(); }
    // The implementation publishes nothing by itself.
    [[nodiscard]] bool needs_thread() const override POLDER_REQUIRES(mutex_) { return !flights_.empty(); }
    void forget_pushed(Where where) override POLDER_REQUIRES(mutex_);
    void release_events(Operation& operation) override;

    // For other queues of the context: an event after which the operation has executed, with a reference for the caller;
    // null when it has been published already, nothing when it is pending.
    [[nodiscard]] std::optional<cl_event> event_after(uint64_t value);
    // An event after which everything up to `value` has executed, with a reference for the caller: that of the newest command up to
    // `value`, or the first one behind it. Null when nothing up to `value` is executing, or no event can be made.
    [[nodiscard]] cl_event event_at(uint64_t value) POLDER_REQUIRES(mutex_);
    // Likewise, for the flight number `index`, without a reference.
    [[nodiscard]] cl_event event_behind(size_t index) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool needs_event(const driver::OperationTimes* times) POLDER_REQUIRES(mutex_);
    // The number of the flight that has `value`, which has been pushed and not published.
    [[nodiscard]] size_t index_of(uint64_t value) const POLDER_REQUIRES(mutex_);
    void flush_commands() POLDER_REQUIRES(mutex_);

    // Pushing.
    void push(Operation& operation) override POLDER_REQUIRES(mutex_);
    // Pushes the next value as a part of a run; false, and nothing is pushed, when it must be a flight of its own.
    [[nodiscard]] bool push_in_run(const LaunchWork& launch, driver::Waits waits) POLDER_REQUIRES(mutex_);
    // The run that another launch with these waits may be added to; null when it would begin one. Nothing when it may do neither.
    [[nodiscard]] std::optional<Flight*> run_for(driver::Waits waits) POLDER_REQUIRES(mutex_);
    void start_profiling() POLDER_REQUIRES(mutex_);
    void push_work(Operation& operation, Pushed& pushed) POLDER_REQUIRES(mutex_);
    void push_launch(const LaunchWork& launch, const driver::OperationTimes* times, const EventList& waits,
                     Pushed& pushed) POLDER_REQUIRES(mutex_);
    void push_fill(devices::FillWork& fill, const EventList& waits, Pushed& pushed) POLDER_REQUIRES(mutex_);
    void add_event(Pushed& pushed, cl_event event);
    void push_copy(const driver::CopyOperation& copy, const EventList& waits, Pushed& pushed) POLDER_REQUIRES(mutex_);
    [[nodiscard]] cl_int push_row(const driver::CopyOperation& copy, uint64_t from_offset, uint64_t to_offset,
                                  const EventList& waits, cl_event* event) POLDER_REQUIRES(mutex_);
    [[nodiscard]] cl_int push_slice(const driver::CopyOperation& copy, uint64_t from_offset, uint64_t to_offset,
                                    const EventList& waits, cl_event* event) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool goes_row_by_row(const driver::CopyOperation& copy) const;

    // Publishing. No lock is held by the caller.
    void publish_up_to(uint64_t value);
    [[nodiscard]] std::optional<driver::Timepoint> publish_next(uint64_t value);
    // CL_COMPLETE, an error, or the state of the oldest flight, which goes on.
    [[nodiscard]] cl_int state_of_oldest() POLDER_REQUIRES(mutex_);
    // CL_COMPLETE, an error, or the state of the command.
    [[nodiscard]] cl_int state_of(cl_event event) const;
    void retire(const Flight& flight, cl_int code) POLDER_REQUIRES(mutex_);
    void read_times(const Flight& flight) POLDER_REQUIRES(mutex_);
    // What to wait for until everything up to a value has executed: an event, with a reference; or the whole queue, after which
    // everything up to `pushed` has executed; or nothing.
    struct Ending {
        cl_event event = nullptr;
        cl_command_queue queue = nullptr;
        uint64_t pushed = 0;
    };
    // What is pushed is flushed.
    [[nodiscard]] Ending ending_of(uint64_t value) POLDER_REQUIRES(mutex_);
    void wait_for(const Ending& ending);
    void wait_for(cl_event event);
    // Without waiting. False when the oldest flight goes on.
    [[nodiscard]] bool publish_oldest() POLDER_REQUIRES(mutex_);

    // With the host's help.
    void execute_on_host(Operation& operation) override;
    void work() override;

    // Failures.
    // What a code of the implementation means; reported unless it is success.
    [[nodiscard]] Status report(cl_int code, const char* what);
    [[nodiscard]] bool has_failed(uint64_t value) const override POLDER_REQUIRES(mutex_);
    void release(cl_event event);

    ForeignContext& context_;
    ProxyMemory& memory_;
    ProxyImages images_ POLDER_GUARDED_BY(mutex_);

    cl_command_queue handle_ POLDER_GUARDED_BY(mutex_);
    // What `handle_` was until the first operation with times; it may still execute.
    cl_command_queue unprofiled_ POLDER_GUARDED_BY(mutex_) = nullptr;
    bool is_profiled_ POLDER_GUARDED_BY(mutex_) = false;
    bool is_flushed_ POLDER_GUARDED_BY(mutex_) = true;  // clFlush was called for everything pushed
    uint64_t finished_ POLDER_GUARDED_BY(mutex_) = 0;  // everything up to here has executed
    uint32_t launches_without_event_ POLDER_GUARDED_BY(mutex_) = 0;  // since the last one with an event
    uint32_t launches_with_event_ POLDER_GUARDED_BY(mutex_) = 0;  // so many to come have one each
    std::deque<Flight> flights_ POLDER_GUARDED_BY(mutex_);
    uint64_t last_end_ns_ POLDER_GUARDED_BY(mutex_) = 0;
    ForkMembership fork_membership_{*this};
};

}  // namespace polder::proxy
