// PagedArray: elements that keep their places in memory while the array grows.
//
// Pages of 256 elements, so that an access is two loads also when there are millions of elements, and growing copies none of them.
// Elements are never removed. Not thread-safe. std::bad_alloc leaves everything as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
    // A new element behind the others, value-initialized.
    T& append() {
        if (size_ == pages_.size() * page_elements)
            pages_.push_back(std::make_unique<T[]>(page_elements));
        return (*this)[size_++];
    }

private:
    static constexpr uint32_t page_log2 = 8;
    static constexpr size_t page_elements = size_t{1} << page_log2;

    std::vector<std::unique_ptr<T[]>> pages_;
    size_t size_ = 0;
};

}  // namespace polder::memory
