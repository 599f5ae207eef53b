#include <host/pool_registry.h>
#include <thread>

namespace polder::devices {

void PoolRegistry::add(WorkerPool& pool) {
    for (Slot& slot : slots) {
        WorkerPool* empty = nullptr;
        if (slot.pool.compare_exchange_strong(empty, &pool))
            return;
    }
}

void PoolRegistry::remove(WorkerPool& pool) {
    for (Slot& slot : slots)
        if (slot.pool.load() == &pool) {
            slot.pool.store(nullptr);
            while (slot.users.load() != 0)
                std::this_thread::yield();
        }
}

} // namespace polder::devices
