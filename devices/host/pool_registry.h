// PoolRegistry: the worker pools of this process, so that workers of one can serve another that has none.
//
// A fixed number of slots without a lock, since a pool may be asked while any thread holds any pool's lock. `remove`
// returns when no thread uses the pool any more. A pool that finds no free slot works, but neither helps nor is helped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace polder::devices {

class WorkerPool;

class PoolRegistry {
public:
    static void add(WorkerPool& pool);
    static void remove(WorkerPool& pool);

    // Calls use(pool) for each pool until it returns true; returns whether one did.
    template <class Use>
    static bool find(Use&& use) {
        for (Slot& slot : slots) {
            if (!slot.pool.load(std::memory_order_relaxed))
                continue;
            slot.users.fetch_add(1);
            WorkerPool* const pool = slot.pool.load();
            const bool found = pool && use(*pool);
            slot.users.fetch_sub(1);
            if (found)
                return true;
        }
        return false;
    }

private:
    struct Slot {
        std::atomic<WorkerPool*> pool;
        std::atomic<uint32_t> users;
    };
    static inline constinit std::array<Slot, 64> slots;
};

}  // namespace polder::devices
