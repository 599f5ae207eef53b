// LastMaps: host memory that a device with unified memory owned when its storage was released, and the map that makes the host its owner again.
//
// Other storages can get the memory at once and wait for the map. When the map fails, the device still owns the memory. So the next storage in this
// memory searches here (StorageImpl::inherit_maps). Belongs to the space of host memory. Any thread; a driver is called under this object's lock.
#pragma once

#include <base/mutex.h>
#include <base/wait_list.h>

#include <algorithm>
#include <atomic>
#include <polder/driver.h>
#include <polder/result.h>
#include <vector>

namespace polder::memory {

class SpaceImpl;

class LastMaps {
public:
    struct Entry {
        driver::Memory memory;
        SpaceImpl* device = nullptr;
        driver::Timepoint done;  // the map; without a queue when it could not be submitted
    };

    [[nodiscard]] bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
    // Does nothing when an equal entry exists. std::bad_alloc leaves everything as it was.
    void add(const Entry& entry) {
        const Lock lock(mutex_);
        if (entries_.size() == entries_.capacity())
            std::erase_if(entries_, [](const Entry& known) { return has_succeeded(known); });
        const auto is_same = [&](const Entry& known) {
            return known.memory.address == entry.memory.address && known.memory.size == entry.memory.size &&
                   known.done == entry.done;
        };
        if (std::ranges::none_of(entries_, is_same))
            entries_.push_back(entry);
        note();
    }
    // Calls visitor(const Entry&) for each entry that overlaps `memory` and whose map has not succeeded. A map that has failed is first made
    // again by again(const Entry&), which returns a Result<driver::Timepoint>.
    template <class Again, class Visitor>
    [[nodiscard]] Result<void> visit(driver::Memory memory, Again&& again, Visitor&& visitor) {
        const Lock lock(mutex_);
        std::erase_if(entries_, [](const Entry& known) { return has_succeeded(known); });
        note();
        for (Entry& entry : entries_) {
            if (entry.memory.address.value >= memory.address.value + memory.size ||
                memory.address.value >= entry.memory.address.value + entry.memory.size)
                continue;
            if (entry.done.is_complete()) {
                POLDER_ASSIGN(done, again(static_cast<const Entry&>(entry)));
                entry.done = done;
            }
            visitor(static_cast<const Entry&>(entry));
        }
        return {};
    }

private:
    static bool has_succeeded(const Entry& entry) {
        return entry.done.queue && entry.done.is_complete() && !has_failed(entry.done);
    }
    void note() POLDER_REQUIRES(mutex_) {
        count_.store(static_cast<uint32_t>(entries_.size()), std::memory_order_release);
    }

    Mutex mutex_;
    std::vector<Entry> entries_ POLDER_GUARDED_BY(mutex_);
    std::atomic<uint32_t> count_{0};
};

}  // namespace polder::memory
