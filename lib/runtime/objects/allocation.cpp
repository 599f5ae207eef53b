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
    maps_.add(std::move(map));
}

void Allocation::cancel_map(AllocationMap& map) const {
    const Lock lock(mutex_);
    map.has_failed_.store(true, std::memory_order_release);
    maps_.remove(map);
}

void Allocation::return_map(Ref<AllocationMap> map) const {
    const Lock lock(mutex_);
    maps_.put_back(std::move(map));
}

Ref<AllocationMap> Allocation::take_map(const void* pointer) const {
    const Lock lock(mutex_);
    return maps_.take(pointer);
}

}  // namespace polder::runtime
