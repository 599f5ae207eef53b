// Memory that the application asks for by its address: clSVMAlloc and the unified shared memory functions. Any thread.
#pragma once

#include <runtime/address_map.h>
#include <runtime/context.h>

namespace polder::runtime {

// Converts an address of the memory layer in `space` to the address for the application and kernels.
[[nodiscard]] uint64_t address_for_kernels(const Context& context, SpaceId space, DeviceAddress address);

// Memory for `description`, pinned in its space, in the context's address map; the address is filled in. Arguments are valid.
// mem_object_allocation_failure when there is no room.
[[nodiscard]] Result<Ref<const Allocation>> allocate(Context& context, Allocation::Description description);

// Frees the allocation that begins at `pointer` and is of one of `kinds` (as 1 << kind); false when there is none. Its memory
// is used for others when the commands that use it are complete.
constexpr uint32_t kind_bit(Allocation::Kind kind) { return 1u << static_cast<uint32_t>(kind); }
constexpr uint32_t svm_kind = kind_bit(Allocation::Kind::svm);
constexpr uint32_t unified_kinds =
    kind_bit(Allocation::Kind::host) | kind_bit(Allocation::Kind::device) | kind_bit(Allocation::Kind::shared);
bool free_allocation(Context& context, const void* pointer, uint32_t kinds);
// Likewise, after the commands that were enqueued before and use it are complete.
bool free_allocation_when_idle(Context& context, const void* pointer, uint32_t kinds);

// Bytes at an address: within an allocation, or plain memory of the host.
struct PointerRange {
    std::byte* pointer = nullptr;
    uint64_t size = 0;
    Ref<const Allocation> allocation;  // null: plain memory

    // When there is an allocation.
    [[nodiscard]] ByteRange within_allocation() const {
        return ByteRange::at(DeviceAddress::of(pointer).value - allocation->address(), ByteCount{size});
    }
    [[nodiscard]] Ref<MemObject> view(Context& context) const { return allocation->view(context, within_allocation()); }
};
// invalid_value when only a part of the bytes is within an allocation.
[[nodiscard]] Result<PointerRange> find_range(const Context& context, const void* pointer, uint64_t size);

[[nodiscard]] KnownAddress known_address(const Context& context, const void* pointer);
// The whole allocation that contains the address now, for a kernel on a device that computes in `space`. Null when there is none
// or such a kernel cannot use the address.
[[nodiscard]] Ref<MemObject> allocation_at(Context& context, const KnownAddress& address, SpaceId space);

}  // namespace polder::runtime
