#include "deferred_destruction.h"

#include <base/mutex.h>
#include <memory/collect.h>

#include <algorithm>
#include <vector>

namespace polder::memory {
namespace {

struct DeferredDestruction {
    DestructionCallback callback;
    std::vector<driver::Timepoint> after;

    // Forgets what is complete.
    [[nodiscard]] bool is_due() {
        std::erase_if(after, [](driver::Timepoint point) { return point.is_complete(); });
        return after.empty();
    }
};

struct DeferredDestructions {
    Mutex mutex;
    std::vector<DeferredDestruction> entries POLDER_GUARDED_BY(mutex);
};

// Never destroyed: storages may be released while the process ends.
DeferredDestructions& deferred_destructions() {
    static auto* const instance = new DeferredDestructions;
    return *instance;
}

} // namespace

void defer_destruction(const DestructionCallback& callback, driver::Waits after) {
    DeferredDestruction entry{callback, {after.begin(), after.end()}};
    if (entry.is_due()) {
        callback.function(callback.data);
        return;
    }
    const Lock lock{deferred_destructions().mutex};
    deferred_destructions().entries.push_back(std::move(entry));
}

void collect() {
    std::vector<DestructionCallback> due;
    {
        const Lock lock{deferred_destructions().mutex};
        std::erase_if(deferred_destructions().entries, [&](DeferredDestruction& entry) {
            if (!entry.is_due())
                return false;
            due.push_back(entry.callback);
            return true;
        });
    }
    for (const DestructionCallback& callback : due)
        callback.function(callback.data);
}

std::optional<driver::Timepoint> next_destruction() {
    const Lock lock{deferred_destructions().mutex};
    for (DeferredDestruction& entry : deferred_destructions().entries)
        return entry.is_due() ? driver::Timepoint{} : entry.after.front();
    return {};
}

} // namespace polder::memory
