// SvmHeap: the shared virtual memory allocations of one context. They live in host memory and are used in
// place by every device that computes there (coarse, fine and system sharing alike). Any thread.
#pragma once

#include <base/mutex.h>
#include <memory/space.h>

#include <map>
#include <optional>

namespace polder::runtime {

class SvmHeap {
public:
    explicit SvmHeap(memory::Space& host_space) : space_(host_space) {}
    ~SvmHeap();

    [[nodiscard]] Result<void*> allocate(ByteCount size, Alignment alignment);
    // Ignores pointers that are not the start of an allocation.
    void free(void* pointer);

    // The allocation that contains `pointer`, as [offset of pointer, size of the allocation).
    [[nodiscard]] std::optional<ByteRange> find(const void* pointer) const;

private:
    struct Allocation {
        memory::Block block;
        ByteCount size;
    };
    memory::Space& space_;
    mutable Mutex mutex_;
    std::map<uintptr_t, Allocation> blocks_ POLDER_GUARDED_BY(mutex_);  // by address
};

} // namespace polder::runtime
