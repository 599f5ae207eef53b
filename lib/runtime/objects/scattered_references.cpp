#include <base/mutex.h>
#include <runtime/scattered_references.h>

#include <utility>

namespace polder::runtime {
namespace {

// Guards the objects of all counters, and the list of unused counters. Never destroyed, because a static destructor may release
// the last context.
struct Shared {
    Mutex mutex;
    ScatteredReferences* unused POLDER_GUARDED_BY(mutex) = nullptr;
};
Shared& shared() {
    static auto* const instance = new Shared;
    return *instance;
}

}  // namespace

ScatteredReferences& ScatteredReferences::create(void* object, Destroy destroy) {
    Shared& all = shared();
    const Lock lock(all.mutex);
    ScatteredReferences* references = all.unused;
    if (references)
        all.unused = references->next_;
    else
        references = new ScatteredReferences;
    for (Shard& shard : references->shards_) {
        shard.taken.store(0, std::memory_order_relaxed);
        shard.given_up.store(0, std::memory_order_relaxed);
    }
    references->take();
    references->mode_.store(Mode::summed, std::memory_order_relaxed);
    references->object_ = object;
    references->destroy_ = destroy;
    return *references;
}

void ScatteredReferences::recycle() {
    Shared& all = shared();
    const Lock lock(all.mutex);
    object_ = nullptr;
    next_ = std::exchange(all.unused, this);
}

bool ScatteredReferences::is_unreferenced() const {
    uint64_t given_up = 0, taken = 0;
    for (const Shard& shard : shards_)
        given_up += shard.given_up.load(std::memory_order_seq_cst);
    for (const Shard& shard : shards_)
        taken += shard.taken.load(std::memory_order_seq_cst);
    return taken == given_up;
}

void ScatteredReferences::destroy_if_unreferenced() {
    void* object = nullptr;
    {
        const Lock lock(shared().mutex);
        // Checks the mode again under the lock, because these counters may belong to another object by now.
        if (mode_.load(std::memory_order_relaxed) == Mode::summed && object_ && is_unreferenced())
            object = std::exchange(object_, nullptr);
    }
    if (object)
        destroy_(object);
}

}  // namespace polder::runtime
