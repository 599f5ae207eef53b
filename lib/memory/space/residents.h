// Residents: the storages whose memory in one space may be evicted. Each space has an object.
//
// A command that finds the memory full takes victims from here (domain_evict.cpp). It claims the storages that it examines: the
// destructor of a claimed storage waits for the end of the claim. A claim lasts while evictions are submitted, and
// never waits for the thread that destroys the storage.
//
// A search looks at all storages, so it also puts those that should go next into a list of their own, the plan, in the order in which
// they should go. Later commands take them from its front. A storage that ends or loses its memory leaves the plan as it leaves any list.
//
// The other lists are many. Threads add to different ones, so that threads which create and release storages
// rarely wait for each other. Adding and removing need no memory.
//
// Any thread; the plan, and claims of all storages: the thread that has the turn of the space.
#pragma once

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
        std::atomic<Entry*> another{nullptr};  // of the same storage, in another space

        [[nodiscard]] bool is_listed() const { return list.load(std::memory_order_relaxed) != no_list; }
        [[nodiscard]] bool is_planned() const { return list.load(std::memory_order_relaxed) == plan_number; }
    };

    Residents() = default;
    Residents(const Residents&) = delete;
    Residents& operator=(const Residents&) = delete;

    // With the storage's lock, or at its end. Both do nothing where nothing is to be done.
    void add(Entry& entry) noexcept;
    void remove(Entry& entry) noexcept;
    // At a storage's end, after its entries were removed: false when another thread had claimed it, and may have put it back into lists.
    // Then waits for that thread.
    [[nodiscard]] static bool has_left(const Entry& first) noexcept;

    // --- with the turn of the space ---
    // Appends a claimed storage to the plan, unless it is there or in no list. With the storage's lock.
    void plan(Entry& entry) noexcept;
    // Takes a storage that is claimed out of the plan. With the storage's lock.
    void take_from_plan(Entry& entry) noexcept;
    // Afterwards nothing is planned.
    void forget_plan() noexcept;

    // Claims one storage or many until the object's end.
    class Claimed {
    public:
        enum class Which : uint8_t { first_of_plan, all };
        // All: those of the plan, then the others in the order in which they got memory, as far as that is known.
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
    // Held for a few instructions, or while all storages are claimed.
    struct SpinLock {
        void lock() noexcept {
            while (held.exchange(true, std::memory_order_acquire))
                while (held.load(std::memory_order_relaxed))
                    std::this_thread::yield();
        }
        void unlock() noexcept { held.store(false, std::memory_order_release); }
        std::atomic<bool> held{false};
    };
    struct alignas(128) List : SpinLock {
        void append(Entry& entry, uint8_t number) noexcept;
        void take_out(Entry& entry) noexcept;

        Entry* first = nullptr;
        Entry* last = nullptr;
        size_t size = 0;
    };
    // Takes the entry out of `number`. False when it is elsewhere.
    bool take_out_of(uint8_t number, Entry& entry) noexcept;
    void append_to(uint8_t number, Entry& entry) noexcept;

    List lists_[list_count];

    // Of all spaces: a storage is in lists of several. Taken before the locks of lists, by each thread that claims. Threads that end storages
    // take it only when something was ever claimed.
    static SpinLock claiming_;
    static std::atomic<bool> has_claimed_;
    static std::atomic<uint32_t> unclaimed_;  // counts the ends of claims; to wait for
};

}  // namespace polder::memory
