// AddressMap: finds the allocation to which an address belongs. One per context.
//
// Intervals that do not overlap, sorted by their first address: O(log n) to find, insert and remove. Arguments of kernels are looked
// up when they are set, not at each launch. Any thread.
#pragma once

#include <base/function_ref.h>
#include <base/mutex.h>
#include <runtime/allocation.h>

#include <atomic>
#include <map>

namespace polder::runtime {

class AddressMap {
public:
    // False, and nothing changes, when an allocation overlaps this one.
    [[nodiscard]] bool insert(Ref<const Allocation> allocation);
    // The allocation that contains `address`, or null.
    [[nodiscard]] Ref<const Allocation> find(uint64_t address) const;
    [[nodiscard]] Ref<const Allocation> find(const void* pointer) const {
        return find(DeviceAddress::of(pointer).value);
    }
    // An allocation with a byte in [begin, end), or null.
    [[nodiscard]] Ref<const Allocation> find_any(uint64_t begin, uint64_t end) const;
    // Removes and returns the allocation that begins at `address`; null when there is none.
    Ref<const Allocation> remove(uint64_t address);
    // Calls `visit` for each allocation, in ascending order of addresses. `visit` must not use the map.
    void for_each(FunctionRef<void(const Allocation&)> visit) const;
    [[nodiscard]] bool is_empty() const { return count_.load(std::memory_order_relaxed) == 0; }

private:
    // The last allocation that begins at or before `address`; null when there is none.
    [[nodiscard]] const Allocation* before(uint64_t address) const POLDER_REQUIRES(mutex_);

    std::atomic<size_t> count_{0};
    mutable Mutex mutex_;
    std::map<uint64_t, Ref<const Allocation>> by_address_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::runtime
