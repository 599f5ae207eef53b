// Residents: a list of the storages of the process whose memory may be evicted.
//
// A command that finds a memory full searches this list for storages to evict. It claims the storages that it examines: the
// destructor of a claimed storage waits for the end of the claim. A claim lasts while evictions are submitted, and
// never waits for the thread that destroys the storage.
//
// The list is divided into shards. Threads add to different shards in turn, so that threads which create and release storages
// rarely wait for each other. Any thread. Adding and removing need no memory.
#pragma once

#include <cstdint>
#include <vector>

namespace polder::memory {

class StorageImpl;

class Residents {
public:
    // A member of the storage; guarded by the shard's lock.
    struct Link {
        StorageImpl* previous = nullptr;
        StorageImpl* next = nullptr;
        uint32_t shard = 0;
        uint32_t claims = 0;
        bool is_listed = false;  // written by the thread that adds or removes
    };

    static void add(StorageImpl& storage) noexcept;
    // Returns when no claim on the storage is left.
    static void remove(StorageImpl& storage) noexcept;

    // Storages in the order of their creation within each shard, claimed until the object's end.
    class Claimed {
    public:
        // Those that satisfy wanted(const StorageImpl&), which runs under a lock.
        template <class Wanted>
        explicit Claimed(Wanted&& wanted) : Claimed() {
            for (uint32_t shard = 0; shard < shard_count; ++shard)
                claim(
                    shard,
                    [](void* context, const StorageImpl& storage) {
                        return static_cast<bool>((*static_cast<Wanted*>(context))(storage));
                    },
                    &wanted);
        }
        ~Claimed();
        Claimed(const Claimed&) = delete;
        Claimed& operator=(const Claimed&) = delete;

        [[nodiscard]] const std::vector<StorageImpl*>& storages() const { return storages_; }

    private:
        Claimed() = default;
        void claim(uint32_t shard, bool (*wanted)(void* context, const StorageImpl& storage), void* context);
        std::vector<StorageImpl*> storages_;
    };

private:
    static constexpr uint32_t shard_count = 16;
    struct Shard;
    static Shard shards_[];
};

}  // namespace polder::memory
