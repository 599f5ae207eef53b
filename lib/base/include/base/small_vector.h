// SmallVector: a vector of trivially copyable elements, the first `inline_count` of which need no allocation.
// Not thread-safe; like std::vector, growing invalidates pointers.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace polder {

template <class T, uint32_t inline_count>
    requires std::is_trivially_copyable_v<T>
class SmallVector {
public:
    // Not defaulted, because value-initialization would then set the inline elements to zero.
    SmallVector() noexcept : size_(0) {}
    SmallVector(const SmallVector& other) { append(other.view()); }
    SmallVector(SmallVector&& other) noexcept { take(other); }
    SmallVector& operator=(const SmallVector& other) {
        if (this != &other) {
            size_ = 0;
            append(other.view());
        }
        return *this;
    }
    SmallVector& operator=(SmallVector&& other) noexcept {
        if (this != &other)
            take(other);
        return *this;
    }
    ~SmallVector() = default;

    [[gnu::always_inline]] void push_back(const T& element) {
        if (size_ == capacity_) [[unlikely]]
            push_back_growing(element);
        else
            data()[size_++] = element;
    }
    void append(std::span<const T> elements) {
        if (size_ + elements.size() > capacity_)
            grow(size_ + static_cast<uint32_t>(elements.size()));
        std::copy(elements.begin(), elements.end(), data() + size_);
        size_ += static_cast<uint32_t>(elements.size());
    }
    // Increases the capacity to at least `size`.
    void reserve(size_t size) {
        if (size > capacity_) [[unlikely]]
            grow(static_cast<uint32_t>(size));
    }
    [[nodiscard]] uint32_t capacity() const { return capacity_; }
    // Removes an element in O(1); the last element gets its place.
    void erase_unordered(uint32_t index) {
        assert(index < size_);
        data()[index] = data()[size_ - 1];
        --size_;
    }
    void resize_down(uint32_t size) {
        assert(size <= size_);
        size_ = size;
    }
    void clear() { size_ = 0; }

    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] uint32_t size() const { return size_; }
    [[nodiscard]] T* data() { return heap_ ? heap_.get() : few(); }
    [[nodiscard]] const T* data() const { return heap_ ? heap_.get() : few(); }
    [[nodiscard]] T& operator[](size_t index) {
        assert(index < size_);
        return data()[index];
    }
    [[nodiscard]] const T& operator[](size_t index) const {
        assert(index < size_);
        return data()[index];
    }
    [[nodiscard]] T& back() { return (*this)[size_ - 1]; }
    [[nodiscard]] T* begin() { return data(); }
    [[nodiscard]] T* end() { return data() + size_; }
    [[nodiscard]] const T* begin() const { return data(); }
    [[nodiscard]] const T* end() const { return data() + size_; }
    [[nodiscard]] std::span<const T> view() const { return {data(), size_}; }

private:
    [[nodiscard]] T* few() { return reinterpret_cast<T*>(inline_); }
    [[nodiscard]] const T* few() const { return reinterpret_cast<const T*>(inline_); }
    // The element may be in this vector, whose memory is about to move.
    [[gnu::noinline]] void push_back_growing(T element) {
        grow(size_ + 1);
        data()[size_++] = element;
    }
    [[gnu::noinline]] void grow(uint32_t at_least) {
        const uint32_t capacity = std::max(at_least, capacity_ * 2);
        auto heap = std::make_unique_for_overwrite<T[]>(capacity);
        std::copy(begin(), end(), heap.get());
        heap_ = std::move(heap);
        capacity_ = capacity;
    }
    void take(SmallVector& other) noexcept {
        size_ = std::exchange(other.size_, 0);
        if (other.heap_) {
            heap_ = std::move(other.heap_);
            capacity_ = std::exchange(other.capacity_, inline_count);
        } else {
            heap_.reset();
            capacity_ = inline_count;
            std::copy_n(other.few(), size_, few());
        }
    }

    std::unique_ptr<T[]> heap_;
    uint32_t size_ = 0;
    uint32_t capacity_ = inline_count;
    // Not initialized, because elements from size_ on are never read.
    alignas(T) std::byte inline_[inline_count * sizeof(T)];
};

} // namespace polder
