#include <runtime/queue.h>

#include <algorithm>
#include <utility>

namespace polder::runtime {
namespace {

// How many driver queues an out-of-order queue spreads its commands over.
constexpr size_t lanes_max = 4;

// What one submission keeps alive at most: the code or the call, and the times of profiling.
constexpr size_t kept_by_a_submission = 2;

// Objects of queues that are gone but whose work is not: kept until their timepoints are complete.
struct Orphans {
    struct Entry {
        driver::Timepoint until;
        Ref<const RefCounted> object;
    };
    Mutex mutex;
    std::vector<Entry> entries POLDER_GUARDED_BY(mutex);

    static Orphans& get() {
        static Orphans* const instance = new Orphans;
        return *instance;
    }

    void collect() {
        std::vector<Entry> finished;  // destroyed unlocked
        Lock lock(mutex);
        const auto first =
            std::partition(entries.begin(), entries.end(), [](const Entry& e) { return !e.until.is_complete(); });
        std::move(first, entries.end(), std::back_inserter(finished));
        entries.erase(first, entries.end());
    }
};

void add_wait(std::vector<driver::Timepoint>& waits, driver::Timepoint timepoint) {
    if (timepoint.is_complete())
        return;
    for (driver::Timepoint& known : waits) {
        if (known.queue == timepoint.queue) {
            known.value = std::max(known.value, timepoint.value);
            return;
        }
    }
    waits.push_back(timepoint);
}

} // namespace

// A command that waits for events that have no timepoint yet.
class Queue::PendingCommand final : public Dependent {
public:
    PendingCommand(Ref<Queue> queue, std::unique_ptr<Command> command, Ref<Event> event)
        : queue_(std::move(queue)), command_(std::move(command)), event_(std::move(event)) {}

    // Failures of explicit dependencies make the command fail; implicit ones (queue order) only order.
    enum class Dependency : uint8_t { explicit_, implicit };

    void depend_on(Event& event, Dependency dependency) {
        (dependency == Dependency::explicit_ ? explicit_ : implicit_).push_back(Ref<Event>::share(&event));
        unresolved_.fetch_add(1, std::memory_order_relaxed);
        if (!event.add_dependent(Ref<Dependent>::share(this)))
            unresolved_.fetch_sub(1, std::memory_order_relaxed);
    }
    void wait_for(driver::Timepoint timepoint) { add_wait(waits_, timepoint); }

    // Called once by enqueue after the last depend_on.
    void armed(std::vector<Ref<Dependent>>& ready) { count_down(ready); }

    void on_resolved(bool, std::vector<Ref<Dependent>>& ready) override { count_down(ready); }

    void run(std::vector<Ref<Dependent>>& ready) override {
        const bool failed =
            std::any_of(explicit_.begin(), explicit_.end(), [](const Ref<Event>& e) { return e->is_failed(); });
        if (failed) {
            finish_with(fail(Status::exec_status_error_for_events_in_wait_list), ready);
            return;
        }
        for (const auto* list : {&explicit_, &implicit_})
            for (const Ref<Event>& event : *list)
                if (event->is_submitted())
                    add_wait(waits_, event->timepoint());
        finish_with(queue_->submit_pending(*command_, waits_, *event_), ready);
    }

private:
    void count_down(std::vector<Ref<Dependent>>& ready) {
        if (unresolved_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ready.push_back(Ref<Dependent>::share(this));
    }

    void finish_with(Result<driver::Timepoint> result, std::vector<Ref<Dependent>>& ready) {
        if (!result)
            command_->abandon();
        command_.reset();
        explicit_.clear();
        implicit_.clear();
        if (result)
            event_->resolve(*result, ready);
        else
            event_->fail(static_cast<cl_int>(result.error().status()), ready);
        queue_->note_resolved();
        queue_ = nullptr;
    }

    Ref<Queue> queue_;
    std::unique_ptr<Command> command_;
    Ref<Event> event_;
    std::vector<Ref<Event>> explicit_;
    std::vector<Ref<Event>> implicit_;
    std::vector<driver::Timepoint> waits_;
    std::atomic<uint32_t> unresolved_{1};  // one for enqueue itself
};

Queue::Queue(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
             std::vector<cl_queue_properties> property_list)
    : context_(std::move(context)), device_(std::move(device)), properties_(properties),
      property_list_(std::move(property_list)) {}

Result<Ref<Queue>> Queue::create(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
                                 std::vector<cl_queue_properties> property_list) {
    Orphans::get().collect();
    auto queue =
        Ref<Queue>::adopt(new Queue(std::move(context), std::move(device), properties, std::move(property_list)));
    const size_t lane_count = queue->is_out_of_order() ? lanes_max : 1;
    Lock lock(queue->mutex_);
    for (size_t i = 0; i < lane_count; ++i) {
        POLDER_ASSIGN(driver_queue, queue->device_->take_queue());
        queue->lanes_.push_back({driver_queue, {}});
    }
    return queue;
}

Queue::~Queue() {
    Orphans& orphans = Orphans::get();
    {
        Lock lock(orphans.mutex);
        for (Kept& kept : kept_)
            orphans.entries.push_back({kept.until, std::move(kept.object)});
    }
    for (const Lane& lane : lanes_) {
        lane.queue->flush();
        device_->give_queue(lane.queue);
    }
    orphans.collect();
}

bool Queue::has_pending_locked() {
    if (pending_.empty())
        return false;
    if (!is_out_of_order()) {
        // Each one waits for the one before it, so the last tells for all.
        if (!pending_.back()->is_pending())
            pending_.clear();
        return !pending_.empty();
    }
    std::erase_if(pending_, [](const Ref<Event>& event) { return !event->is_pending(); });
    return !pending_.empty();
}

void Queue::add_pending_locked(const Ref<Event>& event) {
    // Of an in-order queue only the last is ever asked for.
    if (!is_out_of_order())
        pending_.clear();
    pending_.push_back(event);
}

// Swept each time half of them may be resolved, so the last one to be resolved is let go of too.
void Queue::note_resolved() {
    Lock lock(mutex_);
    pass_barrier_locked();
    if (2 * ++resolved_since_sweep_ < pending_.size())
        return;
    resolved_since_sweep_ = 0;
    static_cast<void>(has_pending_locked());
}

void Queue::pass_barrier_locked() {
    if (!pending_barrier_ || pending_barrier_->is_pending())
        return;
    if (pending_barrier_->is_submitted())
        barrier_ = pending_barrier_->timepoint();
    pending_barrier_ = nullptr;
}

Result<Ref<Event>> Queue::enqueue_command(const EnqueueRequest& request, Command& command, MoveToHeap move) {
    POLDER_TRY(context_->reported(command.reserve(*this)));
    bool must_wait = false;
    bool failed = false;
    for (const Event* event : request.wait_list) {
        must_wait |= event->is_pending();
        failed |= event->is_failed();
    }
    const bool joins_all = request.ordering != EnqueueRequest::Ordering::command && request.wait_list.empty();

    Ref<Event> event;
    if (request.want_event == EnqueueRequest::WantEvent::yes)
        event = make_event(request.type);

    std::vector<Ref<Dependent>> ready;
    {
        Lock lock(mutex_);
        pass_barrier_locked();
        if (is_out_of_order())
            must_wait |= pending_barrier_ || (joins_all && has_pending_locked());
        else
            must_wait |= has_pending_locked();
        if (!must_wait && !failed) {
            waits_.clear();
            for (const Event* dependency : request.wait_list)
                add_wait(waits_, dependency->timepoint());
            add_order_waits_locked(joins_all, waits_);
            POLDER_ASSIGN(timepoint, submit_locked(command, waits_, event.get()));
            if (request.ordering == EnqueueRequest::Ordering::barrier)
                barrier_ = timepoint;
            if (event)
                event->resolve(timepoint, ready);
            return event;
        }
        if (!event)
            event = make_event(request.type);
        hold_back_locked(request, joins_all, move(command), event, ready);
    }
    run_ready(ready);
    return event;
}

Ref<Event> Queue::make_event(cl_command_type type) {
    return make_ref<Event>(context_, Ref<Queue>::share(this), type,
                           has_profiling() ? Event::Profiling::on : Event::Profiling::off);
}

// What queue order alone demands of a command submitted now.
void Queue::add_order_waits_locked(bool joins_all, std::vector<driver::Timepoint>& waits) {
    if (!is_out_of_order())
        return;  // one lane, in order
    add_wait(waits, barrier_);
    if (joins_all)
        for (const Lane& lane : lanes_)
            add_wait(waits, lane.last);
}

void Queue::hold_back_locked(const EnqueueRequest& request, bool joins_all, std::unique_ptr<Command> command,
                             const Ref<Event>& event, std::vector<Ref<Dependent>>& ready) {
    using Dependency = PendingCommand::Dependency;
    auto pending = make_ref<PendingCommand>(Ref<Queue>::share(this), std::move(command), event);
    for (Event* dependency : request.wait_list)
        pending->depend_on(*dependency, Dependency::explicit_);
    if (is_out_of_order()) {
        if (pending_barrier_)
            pending->depend_on(*pending_barrier_, Dependency::implicit);
        pending->wait_for(barrier_);
        if (joins_all) {
            for (const Ref<Event>& earlier : pending_)
                pending->depend_on(*earlier, Dependency::implicit);
            for (const Lane& lane : lanes_)
                pending->wait_for(lane.last);
        }
    } else if (!pending_.empty()) {
        pending->depend_on(*pending_.back(), Dependency::implicit);
    }
    add_pending_locked(event);
    if (request.ordering == EnqueueRequest::Ordering::barrier && is_out_of_order())
        pending_barrier_ = event;
    pending->armed(ready);
}

Result<driver::Timepoint> Queue::submit_pending(const Command& command, std::vector<driver::Timepoint>& waits,
                                                Event& event) {
    Lock lock(mutex_);
    POLDER_ASSIGN(timepoint, submit_locked(command, waits, &event));
    if (is_flushed_ahead_ && timepoint.queue)
        timepoint.queue->flush();
    return timepoint;
}

Result<driver::Timepoint> Queue::submit_locked(const Command& command, std::vector<driver::Timepoint>& waits,
                                               Event* event) {
    Lane& lane = choose_lane(waits);
    // Order within a driver queue is implied.
    std::erase_if(waits, [&](driver::Timepoint t) { return t.queue == lane.queue; });
    Event::Times* times = event ? event->times() : nullptr;
    if (times)
        times->submit_ns = device_->driver().now_ns();
    const memory::Execution execution{*lane.queue, space(), waits, times ? &times->operation : nullptr};
    reserve_kept_locked();
    const Result<driver::Timepoint> submitted = command.submit(*this, execution);
    // A command that fails may have submitted some of its operations.
    const driver::Timepoint end = submitted ? *submitted : lane.queue->marker({});
    if (end.queue == lane.queue)
        lane.last = end;
    if (times)  // the driver writes them
        keep_alive(*times, end);
    return submitted;
}

// Makes room for what one submission keeps alive, so that nothing can fail once the driver has it. Amortised: complete
// entries are dropped each time the list has doubled since the last time.
void Queue::reserve_kept_locked() {
    if (kept_.size() >= sweep_at_) {
        std::erase_if(kept_, [](const Kept& kept) { return kept.until.is_complete(); });
        sweep_at_ = std::max<size_t>(16, 2 * kept_.size());
    }
    if (kept_.capacity() - kept_.size() < kept_by_a_submission) [[unlikely]]
        kept_.reserve(std::max(2 * kept_.size(), kept_.size() + kept_by_a_submission));
}

Queue::Lane& Queue::choose_lane(std::span<const driver::Timepoint> waits) {
    if (lanes_.size() == 1)
        return lanes_.front();
    for (Lane& lane : lanes_)
        for (const driver::Timepoint& wait : waits)
            if (wait == lane.last)
                return lane;
    next_lane_ = (next_lane_ + 1) % lanes_.size();
    return lanes_[next_lane_];
}

void Queue::keep_alive(const RefCounted& object, driver::Timepoint until) {
    if (!kept_.empty() && kept_.back().object.get() == &object && kept_.back().until.queue == until.queue) {
        kept_.back().until = until;
        return;
    }
    kept_.push_back({until, Ref<const RefCounted>::share(&object)});
}

void Queue::flush() {
    Lock lock(mutex_);
    is_flushed_ahead_ = has_pending_locked();
    for (const Lane& lane : lanes_)
        lane.queue->flush();
}

void Queue::finish() {
    std::vector<Ref<Event>> pending;
    driver::Timepoint last[lanes_max];
    size_t lane_count = 0;
    {
        Lock lock(mutex_);
        pending = pending_;
        for (const Lane& lane : lanes_)
            last[lane_count++] = lane.last;
    }
    for (const Ref<Event>& event : pending)
        event->wait();
    for (size_t i = 0; i < lane_count; ++i)
        if (last[i].queue)
            last[i].queue->wait(last[i].value);
    Kept one;  // destroyed unlocked, as the others
    std::vector<Kept> finished;
    Lock lock(mutex_);
    if (kept_.size() == 1 && kept_.front().until.is_complete()) [[likely]] {  // the code of one kernel
        one = std::move(kept_.front());
        kept_.clear();
        return;
    }
    const auto first =
        std::partition(kept_.begin(), kept_.end(), [](const Kept& kept) { return !kept.until.is_complete(); });
    std::move(first, kept_.end(), std::back_inserter(finished));
    kept_.erase(first, kept_.end());
}

} // namespace polder::runtime
