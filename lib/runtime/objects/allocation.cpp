#include <runtime/allocation.h>

#include <utility>

namespace polder::runtime {

Ref<memory::Storage> Allocation::storage() const {
    const Lock lock(mutex_);
    return storage_;
}

Ref<MemObject> Allocation::view(Context& context, ByteRange range) const {
    Ref<memory::Storage> storage = this->storage();
    if (!storage)
        return nullptr;
    void* const pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(address() + range.begin));
    return MemObject::create_view(Ref<Context>::share(&context), std::move(storage), CL_MEM_READ_WRITE, range, pointer,
                                  {});
}

Ref<memory::Storage> Allocation::take_storage() const {
    const Lock lock(mutex_);
    maps_.clear();
    return std::exchange(storage_, nullptr);
}

void Allocation::add_map(Ref<AllocationMap> map) const {
    const Lock lock(mutex_);
    maps_.push_back(std::move(map));
}

void Allocation::cancel_map(AllocationMap& map) const {
    const Lock lock(mutex_);
    map.has_failed_.store(true, std::memory_order_release);
    std::erase_if(maps_, [&](const auto& known) { return known.get() == &map; });
}

void Allocation::return_map(Ref<AllocationMap> map) const {
    const Lock lock(mutex_);
    if (!map->has_failed())
        maps_.push_back(std::move(map));
}

Ref<AllocationMap> Allocation::take_map(const void* pointer) const {
    const Lock lock(mutex_);
    auto found = maps_.end();
    for (auto map = maps_.begin(); map != maps_.end(); ++map)
        if ((*map)->pointer == pointer && (found == maps_.end() || (*map)->writes() || !(*found)->writes()))
            found = map;
    if (found == maps_.end())
        return nullptr;
    Ref<AllocationMap> taken = std::move(*found);
    maps_.erase(found);
    return taken;
}

}  // namespace polder::runtime
