// Storage: the bytes of one root buffer, in whichever memories they are.
//
// A storage belongs to one Domain (one context). Nothing is allocated when it is created, except what
// the application's own memory demands. Sub-buffers are (Storage, ByteRange) and share everything.
// Any thread may call any function; state changes happen under the domain's lock.
#pragma once

#include <base/completion.h>
#include <base/ref.h>

#include <atomic>
#include <memory>
#include <polder/driver.h>
#include <polder/result.h>
#include <polder/types.h>

namespace polder::memory {

class Domain;

struct StorageOptions {
    // CL_MEM_USE_HOST_PTR: the application's memory, `size` bytes. Becomes the replica of host memory
    // when aligned for every OpenCL type, otherwise a replica in application_space.
    std::byte* application_memory = nullptr;
    // The memories of devices that use that memory in place instead of their own (driver::HostRegions::are_for_kernels): for them, the
    // storage is in host memory. The memory is aligned for every OpenCL type.
    SpaceSet in_place;
    // CL_MEM_COPY_HOST_PTR: initial contents, copied by create().
    const std::byte* initial_contents = nullptr;
};

class Storage : public RefCounted {
public:
    // mem_object_allocation_failure when initial contents find no room.
    [[nodiscard]] static Result<Ref<Storage>> create(Domain& domain, ByteCount size, const StorageOptions& options);

    // Whether it has memory for all of its bytes in `space`, in one piece. Read without a lock: may be out of date.
    [[nodiscard]] bool has_all(SpaceId space) const {
        return (whole_spaces_.load(std::memory_order_acquire) >> space.value) & 1;
    }

    [[nodiscard]] virtual ByteCount size() const = 0;
    [[nodiscard]] virtual Domain& domain() const = 0;
    // The address for mapped pointers: application memory if there is some, else the replica in host memory.
    // Only valid after Domain::reserve_map.
    [[nodiscard]] virtual std::byte* map_address() const = 0;
    // While pins exist, the storage's host memory keeps its address (MapPin).
    virtual void pin_map() = 0;
    virtual void unpin_map() = 0;
    // Calls `callback` when the storage is destroyed and all commands on its memory are complete (base/completion.h). For
    // destructor callbacks and to know when application memory is free.
    virtual void on_destroyed(CompletionCallback callback) = 0;
    // Likewise when the work on the bytes of `range` that was submitted before this call is complete. False, and nothing will be
    // called, when the host has no memory for that.
    [[nodiscard]] virtual bool run_when_idle(ByteRange range, CompletionCallback callback) noexcept = 0;
    // No work on the bytes of `range` is in flight.
    [[nodiscard]] virtual bool is_idle(ByteRange range) noexcept = 0;
    // Returns when the work that was submitted before this call is complete.
    virtual void wait_until_idle() = 0;
    // Of a buffer in the application's memory (CL_MEM_USE_HOST_PTR), and for each part of it: the application has a handle. When it has
    // released the last one, it may free the memory as soon as its commands are complete: no transfer that they do not wait for reads or
    // writes there any more when `remove_handle` returns, and none begins later. Waits only for such transfers: those of evictions, and of
    // commands that have failed. Allocates nothing.
    virtual void add_handle() noexcept = 0;
    virtual void remove_handle() noexcept = 0;
    // A number for messages and traces, given to a storage when it is first mentioned in one.
    [[nodiscard]] uint64_t number() const {
        const uint64_t number = number_if_given();
        return number != 0 ? number : give_number();
    }
    // 0: not mentioned yet.
    [[nodiscard]] uint64_t number_if_given() const { return number_.load(std::memory_order_relaxed); }
    // Checks every invariant of the residency; for tests.
    [[nodiscard]] virtual bool validate() const = 0;

protected:
    std::atomic<uint64_t> whole_spaces_{0};  // of has_all, as SpaceSet::bits

private:
    [[nodiscard]] uint64_t give_number() const;
    mutable std::atomic<uint64_t> number_{0};  // 0: not asked for yet
};

}  // namespace polder::memory
