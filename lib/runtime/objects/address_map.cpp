#include <runtime/address_map.h>

#include <iterator>

namespace polder::runtime {

const Allocation* AddressMap::before(uint64_t address) const {
    const auto after = by_address_.upper_bound(address);
    return after == by_address_.begin() ? nullptr : std::prev(after)->second.get();
}

bool AddressMap::insert(Ref<const Allocation> allocation) {
    const Lock lock(mutex_);
    const Allocation* const neighbour = before(allocation->end() - 1);
    if (neighbour && neighbour->end() > allocation->address())
        return false;
    const uint64_t address = allocation->address();
    by_address_.emplace(address, std::move(allocation));
    count_.store(by_address_.size(), std::memory_order_relaxed);
    return true;
}

Ref<const Allocation> AddressMap::find(uint64_t address) const {
    if (is_empty())
        return nullptr;
    const Lock lock(mutex_);
    const Allocation* const found = before(address);
    return Ref<const Allocation>::share(found && found->contains(address) ? found : nullptr);
}

Ref<const Allocation> AddressMap::find_any(uint64_t begin, uint64_t end) const {
    if (is_empty() || begin >= end)
        return nullptr;
    const Lock lock(mutex_);
    const Allocation* const found = before(end - 1);
    return Ref<const Allocation>::share(found && found->end() > begin ? found : nullptr);
}

Ref<const Allocation> AddressMap::remove(uint64_t address) {
    const Lock lock(mutex_);
    const auto found = by_address_.find(address);
    if (found == by_address_.end())
        return nullptr;
    Ref<const Allocation> removed = std::move(found->second);
    by_address_.erase(found);
    count_.store(by_address_.size(), std::memory_order_relaxed);
    return removed;
}

void AddressMap::for_each(FunctionRef<void(const Allocation&)> visit) const {
    const Lock lock(mutex_);
    for (const auto& [address, allocation] : by_address_)
        visit(*allocation);
}

}  // namespace polder::runtime
