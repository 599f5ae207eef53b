// PendingCommand: a command that waits, because some of its dependencies have no timepoints yet.
//
// It counts the events that are still pending. When none is left, it submits the command, or fails with
// exec_status_error_for_events_in_wait_list when an event of the wait list has failed. Any thread may resolve the events.
#pragma once

#include <base/wait_list.h>
#include <runtime/address_map.h>
#include <runtime/pending_uses.h>
#include <runtime/queue.h>

#include <algorithm>
#include <new>
#include <optional>

namespace polder::runtime {

class Queue::PendingCommand final : public Dependent {
public:
    PendingCommand(Ref<Queue> queue, std::unique_ptr<Command> command, Ref<Event> event)
        : queue_(std::move(queue)), command_(std::move(command)), event_(std::move(event)),
          announcement_(command_->announce(*queue_)) {
        if (!queue_->context().addresses().is_empty())
            uses_.emplace(storages_of(*command_));
    }

    // Explicit dependencies are the wait list: when one fails, the command fails. Implicit ones (queue order) only order.
    enum class Dependency : uint8_t { explicit_, implicit };

    void depend_on(Event& event, Dependency dependency) {
        (dependency == Dependency::explicit_ ? explicit_ : implicit_).push_back(Ref<Event>::share(&event));
        unresolved_.fetch_add(1, std::memory_order_relaxed);
        if (!event.add_dependent(Ref<Dependent>::share(this)))
            unresolved_.fetch_sub(1, std::memory_order_relaxed);
    }
    void wait_for(driver::Timepoint timepoint) { order_waits_.add(timepoint); }

    // Called once by enqueue after the last depend_on.
    void armed(ReadyList& ready) noexcept { count_down(ready); }

    void on_resolved(bool, ReadyList& ready) noexcept override { count_down(ready); }

    // Submits the command. The enqueue call has returned, so a failure becomes the status of the event.
    void run(ReadyList& ready) noexcept override {
        try {
            finish_with(submit(), ready);
        } catch (const std::bad_alloc&) {
            finish_with(fail(Status::out_of_host_memory), ready);
        }
    }

private:
    [[nodiscard]] static std::vector<const memory::Storage*> storages_of(const Command& command) {
        std::vector<const memory::Storage*> storages;
        command.add_storages(storages);
        return storages;
    }

    [[nodiscard]] Result<driver::Timepoint> submit() {
        const bool failed =
            std::any_of(explicit_.begin(), explicit_.end(), [](const Ref<Event>& e) { return e->is_failed(); });
        if (failed)
            return fail(Status::exec_status_error_for_events_in_wait_list);
        WaitList waits;
        for (const Ref<Event>& event : explicit_)
            if (event->is_submitted())
                waits.require(event->timepoint());
        waits.add(order_waits_.view());
        bool has_failed_before = false;
        for (const Ref<Event>& event : implicit_) {
            if (event->is_submitted())
                waits.add(event->timepoint());
            else
                has_failed_before = true;
        }
        // The failed one may be a barrier or a marker that ordered this command after earlier ones. These have all been submitted or have failed.
        if (has_failed_before && queue_->is_out_of_order()) {
            waits.add(queue_->newest_barrier());
            queue_->add_submitted_so_far(waits);
        }
        return queue_->submit_pending(*command_, waits, *event_);
    }

    void count_down(ReadyList& ready) noexcept {
        if (unresolved_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ready.append(Ref<Dependent>::share(this));
    }

    void finish_with(Result<driver::Timepoint> result, ReadyList& ready) noexcept {
        if (!result)
            command_->abandon();
        announcement_.reset();
        if (result)
            event_->resolve(*result, ready);
        else
            event_->fail(static_cast<cl_int>(result.error().status()), ready);
        // After the event: a thread that waits until no command uses a storage must see that this one has been submitted.
        uses_.reset();
        command_.reset();
        explicit_.clear();
        implicit_.clear();
        queue_->note_resolved();
        queue_ = nullptr;
    }

    Ref<Queue> queue_;
    std::unique_ptr<Command> command_;
    Ref<Event> event_;
    std::optional<memory::Announcement> announcement_;  // the uses of the command, for eviction
    std::optional<PendingUses> uses_;  // the storages of the command; none when the context has no allocations
    std::vector<Ref<Event>> explicit_;
    std::vector<Ref<Event>> implicit_;
    WaitList order_waits_;
    std::atomic<uint32_t> unresolved_{1};  // pending dependencies, plus 1 until `armed` is called
};

}  // namespace polder::runtime
