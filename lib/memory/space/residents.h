// Residents: the storages that have memory in one space and from which eviction chooses. Each space has one such object.
//
// A command that finds the memory full searches for victims here (domain_evict.cpp). It claims the storages that it examines: the
// destructor of a claimed storage waits for the end of the claim. A claim lasts while evictions are submitted, and
// its owner never waits for the thread that destroys the storage.
//
// A search examines all storages. It also moves those that should be evicted next to a separate list, the plan, in the order of
// eviction. Later commands evict from the front of the plan. A storage that is destroyed or loses its memory is removed from its list.
//
// There are many other lists. Different threads add to different lists, so that threads which create and release storages
// rarely wait for each other, and need no atomic instructions for it until some memory is full (base/biased_mutex.h). Adding and
// removing need no memory.
//
// Any thread; only the thread that has the turn of the space may use the plan and claim all storages.
#pragma once

#include <base/biased_mutex.h>

#include <atomic>
#include <cstdint>
#include <polder/types.h>
#include <thread>
#include <vector>

namespace polder::memory {

class StorageImpl;

class Residents {
    static constexpr uint8_t shard_count = 16;
    static constexpr uint8_t plan_number = shard_count;
    static constexpr uint8_t list_count = shard_count + 1;
    static constexpr uint8_t no_list = list_count;

public:
    // A storage's place in the lists of one space.
    struct Entry {
        StorageImpl* storage = nullptr;
        SpaceId space;
        // Guarded by the lock of the list that the entry is in.
        Entry* previous = nullptr;
        Entry* next = nullptr;
        // Changes under the lock of the list.
        std::atomic<uint8_t> list{no_list};
        std::atomic<uint32_t> claims{0};
        std::atomic<Entry*> another{nullptr};  // the next entry of the same storage, for another space

        [[nodiscard]] bool is_listed() const { return list.load(std::memory_order_relaxed) != no_list; }
        [[nodiscard]] bool is_planned() const { return list.load(std::memory_order_relaxed) == plan_number; }
    };

    Residents() = default;
    Residents(const Residents&) = delete;
    Residents& operator=(const Residents&) = delete;

    // Called with the storage's lock, or by its destructor. Adding a listed entry and removing an unlisted one do nothing.
    void add(Entry& entry) noexcept;
    void remove(Entry& entry) noexcept;
    // Called by a storage's destructor after it has removed the entries. False when another thread had claimed the storage and may have
    // put it back into lists; the function then waits for the end of the claim, and the caller must remove the entries again.
    [[nodiscard]] static bool has_left(const Entry& first) noexcept;

    // --- called with the turn of the space ---
    // Moves a claimed storage to the end of the plan, unless it is planned or in no list. Called with the storage's lock.
    void plan(Entry& entry) noexcept;
    // Moves a claimed storage from the plan to another list. Called with the storage's lock.
    void take_from_plan(Entry& entry) noexcept;
    // Empties the plan; its storages go to another list.
    void forget_plan() noexcept;

    // Claims one storage or all storages until this object is destroyed.
    class Claimed {
    public:
        enum class Which : uint8_t { first_of_plan, all };
        // Which::all: claims the storages of the plan, then the others, as far as known in the order in which they got memory.
        Claimed(Residents& residents, Which which);
        ~Claimed();
        Claimed(const Claimed&) = delete;
        Claimed& operator=(const Claimed&) = delete;

        [[nodiscard]] const std::vector<Entry*>& entries() const { return entries_; }

    private:
        explicit Claimed(Residents& residents) : residents_(residents) {}
        void claim_list(uint8_t number);
        Residents& residents_;
        std::vector<Entry*> entries_;
    };

private:
    // Each lock is held for a few instructions, or while all storages of a list are claimed.
    struct SpinLock {
        void lock() noexcept {
            while (held.exchange(true, std::memory_order_acquire))
                while (held.load(std::memory_order_relaxed))
                    std::this_thread::yield();
        }
        void unlock() noexcept { held.store(false, std::memory_order_release); }
        std::atomic<bool> held{false};
    };
    struct alignas(128) List {
        void append(Entry& entry, uint8_t number) noexcept;
        void take_out(Entry& entry) noexcept;

        BiasedMutex mutex;
        Entry* first = nullptr;
        Entry* last = nullptr;
        size_t size = 0;
    };
    // Removes the entry from list `number`. False when the entry is not in that list.
    bool take_out_of(uint8_t number, Entry& entry) noexcept;
    void append_to(uint8_t number, Entry& entry) noexcept;

    List lists_[list_count];

    // One lock for all spaces, because a storage may be in lists of several spaces. Each thread that claims takes it before the locks of
    // lists. Destructors of storages take it only when some storage was ever claimed.
    static SpinLock claiming_;
    static std::atomic<bool> has_claimed_;
    static std::atomic<uint32_t> unclaimed_;  // counts the ends of claims; destructors wait on it
};

}  // namespace polder::memory
