// Memory of a kernel's argument: aligned to the largest vector type, as the memory of an OpenCL buffer is.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace polder {

template <class T>
struct BufferAllocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{128};

    BufferAllocator() = default;
    template <class U>
    explicit(false) BufferAllocator(const BufferAllocator<U>&) {}

    T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), alignment)); }
    void deallocate(T* memory, size_t) { ::operator delete(memory, alignment); }
    friend bool operator==(const BufferAllocator&, const BufferAllocator&) { return true; }
};

template <class T>
using Buffer = std::vector<T, BufferAllocator<T>>;

} // namespace polder
