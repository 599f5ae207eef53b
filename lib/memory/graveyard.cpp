#include "graveyard.h"

#include <base/mutex.h>
#include <memory/collect.h>

#include <algorithm>
#include <vector>

namespace polder::memory {
namespace {

struct Grave {
    Funeral funeral;
    std::vector<driver::Timepoint> after;

    // Forgets what is complete.
    [[nodiscard]] bool is_due() {
        std::erase_if(after, [](driver::Timepoint point) { return point.is_complete(); });
        return after.empty();
    }
};

struct Graveyard {
    Mutex mutex;
    std::vector<Grave> graves POLDER_GUARDED_BY(mutex);
};

// Never destroyed: storages may be released while the process ends.
Graveyard& graveyard() {
    static auto* const instance = new Graveyard;
    return *instance;
}

} // namespace

void bury(const Funeral& funeral, driver::Waits after) {
    Grave grave{funeral, {after.begin(), after.end()}};
    if (grave.is_due()) {
        funeral.function(funeral.data);
        return;
    }
    const Lock lock{graveyard().mutex};
    graveyard().graves.push_back(std::move(grave));
}

void collect() {
    std::vector<Funeral> due;
    {
        const Lock lock{graveyard().mutex};
        std::erase_if(graveyard().graves, [&](Grave& grave) {
            if (!grave.is_due())
                return false;
            due.push_back(grave.funeral);
            return true;
        });
    }
    for (const Funeral& funeral : due)
        funeral.function(funeral.data);
}

std::optional<driver::Timepoint> next_destruction() {
    const Lock lock{graveyard().mutex};
    for (Grave& grave : graveyard().graves)
        return grave.is_due() ? driver::Timepoint{} : grave.after.front();
    return {};
}

} // namespace polder::memory
