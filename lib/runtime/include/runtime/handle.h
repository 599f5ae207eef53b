// Handles: the values that an application has as cl_context, cl_mem, ..., and how they are checked.
//
// A handle is a cell of a heap that is reserved once and never unmapped. So any pointer can be checked
// without a crash: a pointer outside of the heap is not a handle of Polder; inside, the cell's tag is the kind of the object, and a
// released cell has no tag. The first word of a cell is the ICD dispatch table, as the loader requires.
//
// An object has at most one cell, as long as it lives. The API's reference count is in the
// cell; while it is above zero it holds one internal reference to the object. The two counts are
// independent: clRelease* decrements only the API's.
//
// Any thread may call any function. Releasing a handle while another thread uses it is the
// application's error, as the specification says.
#pragma once

#include <base/ref.h>

#include <atomic>
#include <cstdint>
#include <polder/result.h>

namespace polder::runtime {

enum class Kind : uint32_t {
    none = 0,
    platform = 0x504c4401,
    device,
    context,
    queue,
    mem_object,
    sampler,
    program,
    kernel,
    event,
    command_buffer,
    mutable_command,
    semaphore,
    device_queue,
};

class Object;

// One cache line each, because different threads count references in neighbouring cells.
struct alignas(64) HandleCell {
    const void* dispatch;
    std::atomic<Kind> kind;
    std::atomic<uint32_t> api_references;
    Object* object;
    std::atomic<uint32_t> next_free;  // index + 1 while the cell is free
};

// Set by lib/api before the first handle is made; every cell starts with it.
extern const void* icd_dispatch;

class HandleHeap {
public:
    // Null when all cells (2^25, or fewer when the address space is limited) are in use, or memory is exhausted.
    static HandleCell* allocate(Kind kind, Object* object);
    static void free(HandleCell* cell);
    // Null for null, foreign and released handles and those of another kind.
    static HandleCell* check(const void* handle, Kind kind) {
        // One unsigned comparison covers null, foreign pointers below and above, and a heap without cells.
        const uint64_t used_bytes = used_.load(std::memory_order_acquire) * sizeof(HandleCell);
        const uintptr_t offset =
            reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(cells_.load(std::memory_order_relaxed));
        if (offset >= used_bytes || offset % sizeof(HandleCell) != 0) [[unlikely]]
            return nullptr;
        HandleCell* const cell = cells_.load(std::memory_order_relaxed) + offset / sizeof(HandleCell);
        return cell->kind.load(std::memory_order_acquire) == kind ? cell : nullptr;
    }
    // How many handles of a kind there are. May be called by a signal handler. O(handles).
    static uint64_t count(Kind kind);

private:
    struct FreeCells;
    // --- cells that have never been used ---
    static bool reserve();
    static HandleCell* take_fresh();
    // --- free cells, as a stack of indices that all threads share ---
    static HandleCell* allocate_shared();
    static HandleCell* pop();
    static void push(HandleCell& cell);

    static uint64_t index_of(const HandleCell& cell) {
        return static_cast<uint64_t>(&cell - cells_.load(std::memory_order_relaxed));
    }

    // Null until the first cell is used; then never changed.
    static constinit std::atomic<HandleCell*> cells_;
    static constinit uint64_t reserved_;  // the number of cells for which address space is reserved; set before cells_
    static constinit std::atomic<uint64_t> used_;  // cells that were ever used
    // (counter << 32) | (index + 1). On a cache line of its own: threads write it, while all check handles against the others.
    alignas(64) static constinit std::atomic<uint64_t> free_head_;
};

// The base class of all objects that have handles.
class Object : public RefCounted {
public:
    ~Object() override;

    // Gives this object a cell with an API count of one, which takes over the caller's
    // reference. Null, and the reference stays the caller's, when there is no memory. `handle` is null before.
    [[nodiscard]] void* expose(Kind kind);
    [[nodiscard]] void* handle() const { return cell_; }
    [[nodiscard]] uint32_t api_references() const;

    // clRetain / clRelease. `release_api` returns false when the API's count is zero already.
    void retain_api();
    [[nodiscard]] bool release_api();

private:
    // Take and release the internal reference that the API's count holds while it is above zero. The first is called when the count
    // rises from zero again, the second when it has dropped to zero.
    virtual void retain_for_handle() { retain(); }
    virtual void release_for_handle() { release(); }
    // Called when the API's count has taken over the caller's reference.
    virtual void on_exposed() {}

    HandleCell* cell_ = nullptr;
};

// The checked conversion, used by lib/api alone. `T::kind` is the Kind, `T::invalid` the Status for a
// bad handle. A handle whose API count is zero stays valid while other objects keep the object, as the
// specification requires: buffers keep their context, sub-buffers their parent, a callback its event.
template <class T>
[[nodiscard]] Result<T*> from_handle(const void* handle) {
    HandleCell* cell = HandleHeap::check(handle, T::kind);
    if (!cell) [[unlikely]]
        return fail(T::invalid);
    return static_cast<T*>(cell->object);
}

}  // namespace polder::runtime
