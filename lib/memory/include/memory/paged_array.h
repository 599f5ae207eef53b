// PagedArray: elements that keep their places in memory while the array grows.
//
// It consists of pages of 256 elements. So an access is two loads, also with millions of elements, and growing copies no element. The first
// pages are allocated one by one; later ones as many at a time as fit into one large page of the system.
// Elements are never removed. Not thread-safe. std::bad_alloc leaves everything as it was.
#pragma once

#include <memory/large_pages.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace polder::memory {

template <class T>
class PagedArray {
public:
    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] T& operator[](size_t index) { return pages_[index >> page_log2][index & (page_elements - 1)]; }
    [[nodiscard]] const T& operator[](size_t index) const {
        return pages_[index >> page_log2][index & (page_elements - 1)];
    }
    // Appends a value-initialized element.
    T& append() {
        if (size_ == pages_.size() * page_elements)
            add_pages();
        return (*this)[size_++];
    }

private:
    static constexpr uint32_t page_log2 = 8;
    static constexpr size_t page_elements = size_t{1} << page_log2;

    static constexpr size_t pages_at_once = std::max<size_t>(1, LargePages<T>::page_bytes / sizeof(T) / page_elements);

    void add_pages() {
        const size_t count = pages_.size() < pages_at_once / 2 ? 1 : pages_at_once;
        pages_.reserve(std::max(pages_.capacity(), std::bit_ceil(pages_.size() + count)));
        T* const elements = arrays_.emplace_back(count * page_elements).data();
        for (size_t page = 0; page < count; ++page)
            pages_.push_back(elements + page * page_elements);
    }

    std::vector<std::vector<T, LargePages<T>>> arrays_;
    std::vector<T*> pages_;  // parts of the arrays
    size_t size_ = 0;
};

}  // namespace polder::memory
