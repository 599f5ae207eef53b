#include <base/mutex.h>
#include <runtime/pending_uses.h>

#include <span>
#include <unordered_map>
#include <utility>

namespace polder::runtime {
namespace {

struct Counts {
    Mutex mutex;
    ConditionVariable changed;
    std::unordered_map<const memory::Storage*, size_t> commands POLDER_GUARDED_BY(mutex);  // only counts above 0

    void withdraw(std::span<const memory::Storage* const> storages) POLDER_REQUIRES(mutex) {
        for (const memory::Storage* const storage : storages)
            if (const auto found = commands.find(storage); --found->second == 0)
                commands.erase(found);
    }
    // Never destroyed, because other threads may submit commands during exit.
    static Counts& get() {
        static Counts& counts = *new Counts;
        return counts;
    }
};

}  // namespace

// When this throws std::bad_alloc, it has counted nothing.
PendingUses::PendingUses(std::vector<const memory::Storage*> storages) : storages_(std::move(storages)) {
    if (storages_.empty())
        return;
    Counts& counts = Counts::get();
    const Lock lock(counts.mutex);
    size_t counted = 0;
    try {
        for (; counted < storages_.size(); ++counted)
            ++counts.commands[storages_[counted]];
    } catch (...) {
        counts.withdraw(std::span(storages_).first(counted));
        throw;
    }
}

PendingUses::~PendingUses() {
    if (storages_.empty())
        return;
    Counts& counts = Counts::get();
    {
        const Lock lock(counts.mutex);
        counts.withdraw(storages_);
    }
    counts.changed.notify_all();
}

void PendingUses::wait_until_none(const memory::Storage& storage) {
    Counts& counts = Counts::get();
    const Lock lock(counts.mutex);
    while (counts.commands.contains(&storage))
        counts.changed.wait(counts.mutex);
}

}  // namespace polder::runtime
