// Each list is linked and has its own lock. A storage's entry counts its claims; the end of a claim wakes the destructor that waits for
// it.
#include "residents.h"

#include <base/thread_number.h>

namespace polder::memory {

constinit Residents::SpinLock Residents::claiming_;
constinit std::atomic<bool> Residents::has_claimed_{false};
constinit std::atomic<uint32_t> Residents::unclaimed_{0};

void Residents::List::append(Entry& entry, uint8_t number) noexcept {
    entry.previous = last;
    entry.next = nullptr;
    (last ? last->next : first) = &entry;
    last = &entry;
    ++size;
    entry.list.store(number, std::memory_order_release);
}

void Residents::List::take_out(Entry& entry) noexcept {
    (entry.previous ? entry.previous->next : first) = entry.next;
    (entry.next ? entry.next->previous : last) = entry.previous;
    --size;
    entry.list.store(no_list, std::memory_order_release);
}

bool Residents::take_out_of(uint8_t number, Entry& entry) noexcept {
    List& list = lists_[number];
    const BiasedLock lock(list.mutex);
    const bool is_there = entry.list.load(std::memory_order_relaxed) == number;
    if (is_there) [[likely]]
        list.take_out(entry);
    return is_there;
}

void Residents::append_to(uint8_t number, Entry& entry) noexcept {
    List& list = lists_[number];
    const BiasedLock lock(list.mutex);
    list.append(entry, number);
}

void Residents::add(Entry& entry) noexcept {
    if (!entry.is_listed())
        append_to(static_cast<uint8_t>(thread_number() % shard_count), entry);
}

void Residents::remove(Entry& entry) noexcept {
    for (uint8_t number; (number = entry.list.load(std::memory_order_acquire)) != no_list;)
        if (take_out_of(number, entry))
            return;
}

// A search sets has_claimed_ before it locks a list. So when has_claimed_ is not set, no search has found an entry before it was removed.
bool Residents::has_left(const Entry& first) noexcept {
    if (!has_claimed_.load(std::memory_order_acquire)) [[likely]]
        return true;
    const auto any = [&](auto&& is) {
        for (const Entry* entry = &first; entry; entry = entry->another.load(std::memory_order_acquire))
            if (is(*entry))
                return true;
        return false;
    };
    claiming_.lock();
    const uint32_t seen = unclaimed_.load(std::memory_order_acquire);
    const bool is_claimed = any([](const Entry& entry) { return entry.claims.load(std::memory_order_acquire) != 0; });
    const bool is_listed = !is_claimed && any([](const Entry& entry) { return entry.is_listed(); });
    claiming_.unlock();
    if (is_claimed)
        unclaimed_.wait(seen, std::memory_order_acquire);
    return !is_claimed && !is_listed;
}

void Residents::plan(Entry& entry) noexcept {
    const uint8_t number = entry.list.load(std::memory_order_acquire);
    if (number < shard_count && take_out_of(number, entry))
        append_to(plan_number, entry);
}

void Residents::take_from_plan(Entry& entry) noexcept {
    if (take_out_of(plan_number, entry))
        append_to(static_cast<uint8_t>(thread_number() % shard_count), entry);
}

// Moves the planned storages to the front of another list, because they have had their memory for long.
void Residents::forget_plan() noexcept {
    List& plan = lists_[plan_number];
    List& other = lists_[0];
    const BiasedLock plan_lock(plan.mutex);
    const BiasedLock other_lock(other.mutex);
    if (!plan.first)
        return;
    for (Entry* each = plan.first; each; each = each->next)
        each->list.store(0, std::memory_order_release);
    plan.last->next = other.first;
    (other.first ? other.first->previous : other.last) = plan.last;
    other.first = plan.first;
    other.size += plan.size;
    plan.first = plan.last = nullptr;
    plan.size = 0;
}

Residents::Claimed::Claimed(Residents& residents, Which which) : Claimed(residents) {
    has_claimed_.store(true, std::memory_order_release);
    if (which == Which::all) {
        claim_list(plan_number);
        for (uint8_t number = 0; number < shard_count; ++number)
            claim_list(number);
        return;
    }
    entries_.reserve(1);
    List& plan = residents.lists_[plan_number];
    claiming_.lock();
    {
        const BiasedLock lock(plan.mutex);
        if (plan.first) {
            plan.first->claims.fetch_add(1, std::memory_order_relaxed);
            entries_.push_back(plan.first);
        }
    }
    claiming_.unlock();
}

void Residents::Claimed::claim_list(uint8_t number) {
    List& list = residents_.lists_[number];
    bool has_room = false;
    for (size_t room = 0; !has_room; room += room / 8) {
        entries_.reserve(entries_.size() + room);
        claiming_.lock();
        {
            const BiasedLock lock(list.mutex);
            room = list.size;
            has_room = room <= entries_.capacity() - entries_.size();
            for (Entry* each = has_room ? list.first : nullptr; each; each = each->next) {
                each->claims.fetch_add(1, std::memory_order_relaxed);
                entries_.push_back(each);
            }
        }
        claiming_.unlock();
    }
}

Residents::Claimed::~Claimed() {
    if (entries_.empty())
        return;
    // An entry may be destroyed as soon as it has no claim.
    for (Entry* const entry : entries_)
        entry->claims.fetch_sub(1, std::memory_order_release);
    unclaimed_.fetch_add(1, std::memory_order_release);
    unclaimed_.notify_all();
}

}  // namespace polder::memory
