// Storage: the bytes of one root buffer, and the memories in which they are.
//
// A storage belongs to one Domain (one context). Its creation allocates memory only for initial contents.
// A sub-buffer is a Storage and a ByteRange, and shares the storage with its parent.
// Any thread may call any function; the state is guarded by the storage's lock (storage_guard.h).
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
    // The memories of devices that use the application's memory in place (driver::HostRegions::are_for_kernels): for these devices, the
    // storage is in host memory. The application's memory must then be aligned for every OpenCL type.
    SpaceSet in_place;
    // CL_MEM_COPY_HOST_PTR: initial contents, copied by create().
    const std::byte* initial_contents = nullptr;
};

class Storage : public RefCounted {
public:
    // mem_object_allocation_failure when there is no room for the initial contents.
    [[nodiscard]] static Result<Ref<Storage>> create(Domain& domain, ByteCount size, const StorageOptions& options);

    // Whether the storage has memory for all of its bytes in `space`, in one piece. Takes no lock, so the result may be out of date.
    [[nodiscard]] bool has_all(SpaceId space) const {
        return (whole_spaces_.load(std::memory_order_acquire) >> space.value) & 1;
    }

    [[nodiscard]] virtual ByteCount size() const = 0;
    [[nodiscard]] virtual Domain& domain() const = 0;
    // The address that maps return: that of the application's memory if there is any, otherwise that of the replica in host memory.
    // Only valid after Domain::reserve_map.
    [[nodiscard]] virtual std::byte* map_address() const = 0;
    // While pins exist, the storage's host memory keeps its address (MapPin).
    virtual void pin_map() = 0;
    virtual void unpin_map() = 0;
    // Calls `callback` when the storage is destroyed and all commands on its memory are complete (base/completion.h). For
    // destructor callbacks, after which the application may free its memory.
    virtual void on_destroyed(CompletionCallback callback) = 0;
    // Calls `callback` when all work on the bytes of `range` that was submitted before this call is complete. False, and will call
    // nothing, when the host has no memory for the callback.
    [[nodiscard]] virtual bool run_when_idle(ByteRange range, CompletionCallback callback) noexcept = 0;
    // True when no work on the bytes of `range` is in flight.
    [[nodiscard]] virtual bool is_idle(ByteRange range) noexcept = 0;
    // Returns when the work that was submitted before this call is complete.
    virtual void wait_until_idle() = 0;
    // Count the application's handles of a buffer in its own memory (CL_MEM_USE_HOST_PTR) and of its sub-buffers. After releasing the last
    // handle, the application may free the memory as soon as its commands are complete. Some transfers are waited for by no command: those of
    // evictions, and of failed commands. remove_handle waits for such transfers to or from the application's memory, and none begins
    // later. Allocates nothing.
    virtual void add_handle() noexcept = 0;
    virtual void remove_handle() noexcept = 0;
    // A number for messages and traces. A storage gets it when a message or trace first mentions the storage.
    [[nodiscard]] uint64_t number() const {
        const uint64_t number = number_if_given();
        return number != 0 ? number : give_number();
    }
    // 0 when the storage has no number yet.
    [[nodiscard]] uint64_t number_if_given() const { return number_.load(std::memory_order_relaxed); }
    // Checks every invariant of the residency; for tests.
    [[nodiscard]] virtual bool validate() const = 0;

protected:
    std::atomic<uint64_t> whole_spaces_{0};  // the spaces for which has_all is true, as SpaceSet::bits

private:
    [[nodiscard]] uint64_t give_number() const;
    mutable std::atomic<uint64_t> number_{0};  // 0 until number() is called
};

}  // namespace polder::memory
