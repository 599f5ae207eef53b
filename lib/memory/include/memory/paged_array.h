// PagedArray: elements that keep their places in memory while the array grows.
//
// It consists of pages of 4096 elements. So an access is two loads, and growing copies no element. With a million elements the table of
// pages has 2 KiB, so that it stays in the processor's first cache, and an access costs no cache miss but the element's own. The first
// pages are allocated one by one; later ones as many at a time as fit into one large page of the system. Memory that no element has used is
// not touched.
// Elements are never removed. Not thread-safe. std::bad_alloc leaves everything as it was.
#pragma once

#include <memory/large_pages.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace polder::memory {

template <class T>
class PagedArray {
public:
    PagedArray() = default;
    ~PagedArray() {
        for (size_t index = size_; index-- > 0;)
            std::destroy_at(&(*this)[index]);
        for (const Run& run : runs_)
            LargePages<T>{}.deallocate(run.elements, run.count);
    }
    PagedArray(const PagedArray&) = delete;
    PagedArray& operator=(const PagedArray&) = delete;

    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] T& operator[](size_t index) { return pages_[index >> page_log2][index & (page_elements - 1)]; }
    [[nodiscard]] const T& operator[](size_t index) const {
        return pages_[index >> page_log2][index & (page_elements - 1)];
    }
    // Appends a value-initialized element.
    T& append() {
        if (size_ == pages_.size() * page_elements)
            add_pages();
        T* const made = new (&(*this)[size_]) T();
        ++size_;
        return *made;
    }

private:
    static constexpr uint32_t page_log2 = 12;
    static constexpr size_t page_elements = size_t{1} << page_log2;
    static constexpr size_t pages_at_once = std::max<size_t>(1, LargePages<T>::page_bytes / sizeof(T) / page_elements);
    struct Run {
        T* elements = nullptr;
        size_t count = 0;
    };

    void add_pages() {
        const size_t pages = pages_.size() < pages_at_once / 2 ? 1 : pages_at_once;
        pages_.reserve(std::max(pages_.capacity(), std::bit_ceil(pages_.size() + pages)));
        runs_.reserve(std::max(runs_.capacity(), std::bit_ceil(runs_.size() + 1)));
        T* const elements = LargePages<T>{}.allocate(pages * page_elements);
        runs_.push_back({elements, pages * page_elements});
        for (size_t page = 0; page < pages; ++page)
            pages_.push_back(elements + page * page_elements);
    }

    std::vector<Run> runs_;  // what was allocated
    std::vector<T*> pages_;  // parts of the runs
    size_t size_ = 0;
};

}  // namespace polder::memory
