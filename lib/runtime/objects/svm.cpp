// An allocation is a storage that is pinned in one memory: in host memory, in the context's in-place heap when devices use host memory in place,
// or in a device's memory. Kernel arguments find the allocation by the context's address map.
#include <base/completion.h>
#include <runtime/pending_uses.h>
#include <runtime/svm.h>

#include <algorithm>

namespace polder::runtime {
namespace {

using Contents = memory::Domain::Contents;

Ref<const Allocation> remove(Context& context, const void* pointer, uint32_t kinds) {
    const uint64_t address = DeviceAddress::of(pointer).value;
    const Ref<const Allocation> found = context.addresses().find(address);
    if (!found || found->address() != address || !(kind_bit(found->kind()) & kinds))
        return nullptr;
    return context.addresses().remove(address);
}

// Memory of the context's heap for devices that use it in place. It is freed when the storage and all commands that use it have ended.
struct HeapBlock {
    std::shared_ptr<memory::InPlaceHeap> heap;
    std::byte* bytes;

    ~HeapBlock() { heap->free(bytes); }
    static void release(void* data) { delete static_cast<HeapBlock*>(data); }
};

Result<Ref<memory::Storage>> make_storage(Context& context, const Allocation::Description& description) {
    const ByteCount size{description.size};
    if (description.in_place.empty())
        return memory::Storage::create(context.domain(), size, {});
    POLDER_TRY(start_callback_thread());
    POLDER_ASSIGN(bytes, context.in_place_heap()->allocate(size));
    std::unique_ptr<HeapBlock> block;
    try {
        block.reset(new HeapBlock{context.in_place_heap(), bytes});
    } catch (...) {
        context.in_place_heap()->free(bytes);
        throw;
    }
    POLDER_ASSIGN(storage, memory::Storage::create(context.domain(), size,
                                                   {.application_memory = bytes, .in_place = description.in_place}));
    storage->on_destroyed({HeapBlock::release, block.release()});
    return storage;
}

}  // namespace

uint64_t address_for_kernels(const Context& context, SpaceId space, DeviceAddress address) {
    if (!space.is_host())
        for (const Ref<Device>& device : context.devices())
            if (device->space_id() == space)
                if (const driver::KernelAddresses* const kernels_see = device->driver().kernel_addresses())
                    return kernels_see->kernel_address(address).value;
    return address.value;
}

Result<Ref<const Allocation>> allocate(Context& context, Allocation::Description description) {
    if (description.kind != Allocation::Kind::device)
        description.in_place = context.in_place_spaces();
    POLDER_ASSIGN(storage, make_storage(context, description));
    // The application may write host memory without a command, so its bytes count as present.
    const Contents contents = description.space.is_host() ? Contents::present : Contents::unwritten;
    POLDER_ASSIGN(base, context.domain().pin(*storage, description.space, contents));
    description.address = address_for_kernels(context, description.space, base);
    auto allocation = Ref<const Allocation>::adopt(new Allocation(description, std::move(storage)));
    // This only fails when the application's own memory, as a buffer with a device address, overlaps this address.
    if (!context.addresses().insert(allocation))
        return fail(Status::mem_object_allocation_failure, "another allocation has this address");
    return allocation;
}

bool free_allocation(Context& context, const void* pointer, uint32_t kinds) {
    const Ref<const Allocation> removed = remove(context, pointer, kinds);
    if (!removed)
        return false;
    static_cast<void>(removed->take_storage());
    return true;
}

// Waits by the residency for submitted commands, and by PendingUses for commands that wait for events.
bool free_allocation_when_idle(Context& context, const void* pointer, uint32_t kinds) {
    const Ref<const Allocation> removed = remove(context, pointer, kinds);
    if (!removed)
        return false;
    const Ref<memory::Storage> storage = removed->take_storage();
    if (!storage)  // another thread frees it
        return true;
    PendingUses::wait_until_none(*storage);
    storage->wait_until_idle();
    return true;
}

KnownAddress known_address(const Context& context, const void* pointer) {
    return {pointer, context.addresses().find(pointer)};
}

Ref<MemObject> allocation_at(Context& context, const KnownAddress& address, SpaceId space) {
    if (address.allocation)
        if (Ref<MemObject> view = address.allocation->view(context))
            return address.allocation->is_for_kernels_in(space) ? std::move(view) : nullptr;
    const Ref<const Allocation> now = context.addresses().find(address.pointer);
    return now && now->is_for_kernels_in(space) ? now->view(context) : nullptr;
}

Result<PointerRange> find_range(const Context& context, const void* pointer, uint64_t size) {
    PointerRange range{static_cast<std::byte*>(const_cast<void*>(pointer)), size, nullptr};
    const uint64_t begin = DeviceAddress::of(pointer).value;
    range.allocation = context.addresses().find_any(begin, begin + std::max<uint64_t>(size, 1));
    if (range.allocation && (!range.allocation->contains(begin) || size > range.allocation->end() - begin))
        return fail(Status::invalid_value, "the bytes reach behind the end of an allocation");
    return range;
}

}  // namespace polder::runtime
