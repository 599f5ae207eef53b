// SizeBins: free blocks of up to 2 MiB, in the order of their sizes, then of their addresses.
//
// Sizes are multiples of 512 bytes, and each size has a bin. Two levels of bit maps name the bins that have blocks, so that the smallest
// size that is large enough is found in constant time. A bin is a heap of its blocks by address; the four children of a place
// are neighbours in memory.
//
// The owner of a block stores the block's place in its bin, which `placed(block, place)` reports whenever it changes. So removing needs no
// search. Bounds: finding is O(1); insert and remove are O(log n) for the n free blocks of one size. Not thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

namespace polder::memory {

class SizeBins {
public:
    static constexpr uint64_t unit = 512;
    static constexpr uint32_t bin_count = 4096;
    struct Entry {
        uint64_t address = 0;
        uint32_t block = 0;
    };
    using Heap = std::vector<Entry>;

    [[nodiscard]] static bool holds(uint64_t size) { return size % unit == 0 && size != 0 && size <= bin_count * unit; }
    [[nodiscard]] uint64_t size() const { return count_; }

    // std::bad_alloc leaves everything as it was.
    template <class Placed>
    void insert(uint64_t size, Entry entry, Placed&& placed) {
        Heap& heap = heap_of(size);
        heap.push_back(entry);
        rise(heap, static_cast<uint32_t>(heap.size() - 1), entry, placed);
        const uint64_t bin = bin_of(size);
        bins_[bin / 64] |= uint64_t{1} << (bin % 64);
        groups_with_blocks_ |= uint64_t{1} << (bin / 64);
        ++count_;
    }
    template <class Placed>
    void remove(uint64_t size, uint32_t place, Placed&& placed) {
        const uint64_t bin = bin_of(size);
        Heap& heap = (*groups_[bin / 64])[bin % 64];
        assert(place < heap.size());
        const Entry last = heap.back();
        heap.pop_back();
        --count_;
        if (heap.empty()) {
            bins_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
            if (bins_[bin / 64] == 0)
                groups_with_blocks_ &= ~(uint64_t{1} << (bin / 64));
        } else if (place < heap.size()) {
            if (place > 0 && last.address < heap[parent_of(place)].address)
                rise(heap, place, last, placed);
            else
                sink(heap, place, last, placed);
        }
    }

    // The smallest size with a block that is at least `size`; 0 if there is none.
    [[nodiscard]] uint64_t smallest_from(uint64_t size) const {
        const uint64_t first = size == 0 ? 0 : (size - 1) / unit;
        if (first >= bin_count)
            return 0;
        const uint64_t group = first / 64;
        if (const uint64_t here = bins_[group] & (~uint64_t{0} << (first % 64)); here != 0)
            return (group * 64 + static_cast<uint64_t>(std::countr_zero(here)) + 1) * unit;
        const uint64_t above = groups_with_blocks_ & ~((uint64_t{2} << group) - 1);
        if (above == 0)
            return 0;
        const auto next = static_cast<uint64_t>(std::countr_zero(above));
        return (next * 64 + static_cast<uint64_t>(std::countr_zero(bins_[next])) + 1) * unit;
    }
    // 0 when there is none.
    [[nodiscard]] uint64_t largest() const {
        if (groups_with_blocks_ == 0)
            return 0;
        const auto group = static_cast<uint64_t>(std::bit_width(groups_with_blocks_)) - 1;
        return (group * 64 + static_cast<uint64_t>(std::bit_width(bins_[group]))) * unit;
    }
    // The blocks of a size that has some; the first has the lowest address.
    [[nodiscard]] const Heap& blocks_of(uint64_t size) const {
        return (*groups_[bin_of(size) / 64])[bin_of(size) % 64];
    }
    // For tests: the block is where its owner says.
    [[nodiscard]] bool has(uint64_t size, uint32_t place, Entry entry) const {
        if (!holds(size) || !groups_[bin_of(size) / 64] || place >= blocks_of(size).size())
            return false;
        const Heap& heap = blocks_of(size);
        return heap[place].block == entry.block && heap[place].address == entry.address &&
               (place == 0 || heap[parent_of(place)].address < entry.address);
    }

private:
    using Group = std::array<Heap, 64>;

    [[nodiscard]] static uint64_t bin_of(uint64_t size) { return size / unit - 1; }

    [[nodiscard]] static uint32_t parent_of(uint32_t place) { return (place - 1) / 4; }
    [[nodiscard]] Heap& heap_of(uint64_t size) {
        std::unique_ptr<Group>& group = groups_[bin_of(size) / 64];
        if (!group)
            group = std::make_unique<Group>();
        return (*group)[bin_of(size) % 64];
    }
    // Puts `entry` at `place` or above.
    template <class Placed>
    static void rise(Heap& heap, uint32_t place, Entry entry, Placed&& placed) {
        while (place > 0 && entry.address < heap[parent_of(place)].address) {
            heap[place] = heap[parent_of(place)];
            placed(heap[place].block, place);
            place = parent_of(place);
        }
        heap[place] = entry;
        placed(entry.block, place);
    }
    // Puts `entry` at `place` or below.
    template <class Placed>
    static void sink(Heap& heap, uint32_t place, Entry entry, Placed&& placed) {
        for (;;) {
            const size_t first = size_t{4} * place + 1;
            if (first >= heap.size())
                break;
            size_t lowest = first;
            for (size_t child = first + 1; child < first + 4 && child < heap.size(); ++child)
                if (heap[child].address < heap[lowest].address)
                    lowest = child;
            if (entry.address < heap[lowest].address)
                break;
            heap[place] = heap[lowest];
            placed(heap[place].block, place);
            place = static_cast<uint32_t>(lowest);
        }
        heap[place] = entry;
        placed(entry.block, place);
    }

    uint64_t groups_with_blocks_ = 0;
    std::array<uint64_t, bin_count / 64> bins_{};
    uint64_t count_ = 0;
    std::array<std::unique_ptr<Group>, bin_count / 64> groups_;
};

}  // namespace polder::memory
