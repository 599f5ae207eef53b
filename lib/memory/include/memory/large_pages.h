// LargePages: an allocator for standard containers whose large arrays lie in large pages, where the system has some.
//
// The descriptions of a million blocks take tens of MiB and are accessed at random. With pages of 4 KiB, nearly each access would also miss
// the TLB, which costs as much as the access itself. Arrays below 2 MiB are allocated as by std::allocator. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <sys/mman.h>

namespace polder::memory {

template <class T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <class U>
    explicit(false) LargePages(const LargePages<U>&) noexcept {}

    [[nodiscard]] T* allocate(size_t count) {
        if (count * sizeof(T) < page_bytes)
            return std::allocator<T>{}.allocate(count);
        void* const memory = ::operator new(count * sizeof(T), std::align_val_t{page_bytes});
        madvise(memory, count * sizeof(T) & ~(page_bytes - 1), MADV_HUGEPAGE);  // the system may ignore this
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, size_t count) noexcept {
        if (count * sizeof(T) < page_bytes)
            return std::allocator<T>{}.deallocate(memory, count);
        ::operator delete(memory, std::align_val_t{page_bytes});
    }
    friend bool operator==(const LargePages&, const LargePages&) = default;

    static constexpr size_t page_bytes = size_t{2} << 20;
};

}  // namespace polder::memory
