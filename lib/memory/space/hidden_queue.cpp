#include "hidden_queue.h"

namespace polder::memory {

Result<HiddenQueues::Lease> HiddenQueues::lease(driver::Waits waits, const driver::Queue* preferred) {
    if (!device_)
        return fail(Status::out_of_resources, "no device can copy between these memories");
    const Lock lock{mutex_};
    for (;;) {
        POLDER_ASSIGN(entry, choose(waits, preferred));
        if (entry) {
            entry->pending.prune();
            entry->pending.add(waits);
            entry->leased = true;
            return Lease{*this, *entry};
        }
        ++waiting_;
        given_back_.wait(mutex_);
        --waiting_;
    }
}

void HiddenQueues::give_back(Entry& entry) noexcept {
    entry.queue->flush();
    const Lock lock{mutex_};
    entry.leased = false;
    if (waiting_ > 0)
        given_back_.notify_one();
}

Result<HiddenQueues::Entry*> HiddenQueues::choose(driver::Waits waits, const driver::Queue* preferred) {
    if (preferred)
        for (const auto& entry : entries_)
            if (entry->queue.get() == preferred && !entry->leased)
                return entry.get();
    if (Entry* const entry = idle())
        return entry;
    if (entries_.size() < parallel_queues)
        return add();
    if (Entry* const entry = in_turn(&waits))
        return entry;
    if (entries_.size() < max_queues)
        return add();
    return in_turn(nullptr);
}

HiddenQueues::Entry* HiddenQueues::idle() {
    for (const auto& entry : entries_)
        if (!entry->leased && entry->last.is_complete())
            return entry.get();
    return nullptr;
}

// The next queue (in turn) whose operations wait for nothing except `waits`; when `waits` is null, the next queue.
HiddenQueues::Entry* HiddenQueues::in_turn(const driver::Waits* waits) {
    for (size_t i = 0; i < entries_.size(); ++i) {
        next_ = (next_ + 1) % entries_.size();
        Entry& entry = *entries_[next_];
        if (!entry.leased && (!waits || entry.pending.is_implied_by(*waits)))
            return &entry;
    }
    return nullptr;
}

// When the device cannot create another queue, its existing queues are used.
Result<HiddenQueues::Entry*> HiddenQueues::add() {
    auto entry = std::make_unique<Entry>();
    entries_.reserve(entries_.size() + 1);
    Result<std::unique_ptr<driver::Queue>> queue = device_->create_queue(role_);
    if (!queue) {
        if (entries_.empty())
            return fail(std::move(queue).error());
        return in_turn(nullptr);
    }
    entry->queue = std::move(*queue);
    entries_.push_back(std::move(entry));
    return entries_.back().get();
}

} // namespace polder::memory
