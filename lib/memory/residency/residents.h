// Residents: the storages of the process that have memory which may be taken away from them.
//
// A command that finds a memory full looks here for storages to evict. It claims the ones that it looks at: a claimed
// storage cannot be destroyed, its destructor waits for the claims to end. A claim lasts while evictions are submitted, and
// never waits for the destructor's thread.
//
// The list is cut into shards that threads add to by turns, so that threads which create and release storages seldom
// meet. Any thread. Adding and removing need no memory.
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
    // Returns when nobody claims the storage.
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
