// Each shard is a linked list with its own lock. A claim is counted in the storage's link; the end of a claim wakes a destructor that
// waits for it.
#include "residents.h"

#include "storage_impl.h"

#include <base/thread_number.h>

#include <atomic>
#include <thread>

namespace polder::memory {

// Held for a few instructions, or while one shard is listed.
struct alignas(128) Residents::Shard {
    void lock() noexcept {
        while (held.exchange(true, std::memory_order_acquire))
            while (held.load(std::memory_order_relaxed))
                std::this_thread::yield();
    }
    void unlock() noexcept { held.store(false, std::memory_order_release); }

    std::atomic<bool> held{false};
    std::atomic<uint32_t> unclaimed{0};  // counts the ends of claims; to wait for
    StorageImpl* first = nullptr;
    StorageImpl* last = nullptr;
};

constinit Residents::Shard Residents::shards_[shard_count];

void Residents::add(StorageImpl& storage) noexcept {
    Link& link = storage.resident_link();
    link.shard = thread_number() % shard_count;
    Shard& shard = shards_[link.shard];
    shard.lock();
    link.previous = shard.last;
    link.next = nullptr;
    (shard.last ? shard.last->resident_link().next : shard.first) = &storage;
    shard.last = &storage;
    link.is_listed = true;
    shard.unlock();
}

void Residents::remove(StorageImpl& storage) noexcept {
    Link& link = storage.resident_link();
    Shard& shard = shards_[link.shard];
    for (;;) {
        shard.lock();
        if (link.claims == 0) [[likely]]
            break;
        const uint32_t seen = shard.unclaimed.load(std::memory_order_relaxed);
        shard.unlock();
        shard.unclaimed.wait(seen, std::memory_order_relaxed);
    }
    (link.previous ? link.previous->resident_link().next : shard.first) = link.next;
    (link.next ? link.next->resident_link().previous : shard.last) = link.previous;
    link.is_listed = false;
    shard.unlock();
}

void Residents::Claimed::claim(uint32_t number, bool (*wanted)(void* context, const StorageImpl& storage),
                               void* context) {
    Shard& shard = shards_[number];
    size_t room = 0;
    for (;;) {
        storages_.reserve(storages_.size() + room);
        shard.lock();
        size_t found = 0;
        for (StorageImpl* each = shard.first; each; each = each->resident_link().next)
            found += wanted(context, *each);
        if (found <= storages_.capacity() - storages_.size())
            break;
        shard.unlock();
        room = 2 * found;
    }
    // What is wanted may change meanwhile: no more than there is room for.
    for (StorageImpl* each = shard.first; each && storages_.size() < storages_.capacity();
         each = each->resident_link().next) {
        if (!wanted(context, *each))
            continue;
        ++each->resident_link().claims;
        storages_.push_back(each);
    }
    shard.unlock();
}

Residents::Claimed::~Claimed() {
    for (StorageImpl* storage : storages_) {
        Shard& shard = shards_[storage->resident_link().shard];
        shard.lock();
        --storage->resident_link().claims;
        shard.unclaimed.fetch_add(1, std::memory_order_relaxed);
        shard.unlock();
        shard.unclaimed.notify_all();
    }
}

}  // namespace polder::memory
