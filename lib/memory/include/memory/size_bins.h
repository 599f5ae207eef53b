// SizeBins: a set of free blocks of up to 2 MiB, ordered by size, then by address.
//
// Sizes are multiples of 512 bytes, and each size has a bin. Two levels of bit maps show which bins have blocks, so that the smallest
// size that is large enough is found in constant time. A bin has its blocks in sorted leaves of at most 64 entries, the lowest address
// last. So a request gets the last entry of the last leaf, and no operation reads the description of another
// block: with a million blocks, each such access would be a cache miss (decision 132).
//
// Bounds: finding and removing the block with the lowest address is O(1). For the n free blocks of one size, insert and remove search in
// O(log n) and move at most 64 entries, and O(sqrt(n)) where n is above 8,000: leaves then have up to half as many entries as there
// are leaves. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace polder::memory {

class SizeBins {
public:
    static constexpr uint64_t unit = 512;
    static constexpr uint32_t bin_count = 4096;
    struct Entry {
        uint64_t address = 0;
        uint64_t block = 0;  // without padding: an entry is moved by one instruction
    };

    // The blocks of one size. Half a cache line: what an operation on the lowest addresses needs but for their entries.
    class alignas(32) Bin {
    public:
        [[nodiscard]] bool empty() const { return low_count_ == 0; }
        // The block with the lowest address. The bin must not be empty.
        [[nodiscard]] const Entry& lowest() const { return low_[low_count_ - 1]; }
        void prefetch() const { __builtin_prefetch(low_.get() + low_count_, 1); }
        // std::bad_alloc leaves the entries as they were.
        void insert(Entry entry) {
            if (low_count_ == low_capacity_) [[unlikely]]
                make_room();
            if (entry.address >= upper_from_) [[unlikely]]
                return upper_->insert(entry);
            const uint64_t address = entry.address;
            Entry* const first = low_.get();
            Entry* at = first + low_count_++;
            for (; at != first && at[-1].address < address; --at)
                *at = at[-1];
            *at = entry;
        }
        // Removes the block with this address, which must be in the bin.
        void remove(uint64_t address) noexcept {
            if (address >= upper_from_) [[unlikely]]
                return remove_from_upper(address);
            // Moves the entries after it while it searches: a branch for the end of the search alone is mispredicted.
            Entry* at = low_.get() + --low_count_;
            for (Entry moved = *at; moved.address != address;) {
                assert(at != low_.get());
                std::swap(moved, *--at);
            }
            if (upper_ && low_count_ == 0) [[unlikely]]
                refill();
        }
        // Calls f(const Entry&), the lowest address first, until it returns true. False: it never did.
        template <class F>
        bool find(F&& f) const {
            const auto find_in = [&](std::span<const Entry> entries) {
                return std::any_of(entries.rbegin(), entries.rend(), std::ref(f));
            };
            return find_in(low()) || (upper_ && std::any_of(upper_->leaves.rbegin(), upper_->leaves.rend(), find_in));
        }
        // For tests: linear in the blocks of the bin.
        [[nodiscard]] bool has(Entry wanted) const {
            return find(
                [&](const Entry& entry) { return entry.address == wanted.address && entry.block == wanted.block; });
        }
        [[nodiscard]] bool validate() const {
            uint64_t above = UINT64_MAX;
            const auto descends = [&above](std::span<const Entry> entries, uint64_t from) {
                for (const Entry& entry : entries)
                    if (entry.address < from || entry.address >= std::exchange(above, entry.address))
                        return false;
                return from <= above && !entries.empty();
            };
            if (upper_from_ != (upper_ ? upper_->from.back() : UINT64_MAX))
                return false;
            for (size_t number = 0; upper_ && number < upper_->leaves.size(); ++number)
                if (!descends(upper_->leaves[number], upper_->from[number]))
                    return false;
            return descends(low(), 0) || (low_count_ == 0 && !upper_);
        }

    private:
        static constexpr uint32_t leaf_entries = 64;
        // A binary search: how many of `count` elements come before the first for which is_before(index) is false. It has no branches that
        // depend on the data, because half of them would be mispredicted.
        template <class IsBefore>
        [[nodiscard]] static size_t count_while(size_t count, IsBefore&& is_before) {
            size_t first = 0;
            while (count > 1) {
                const size_t half = count / 2;
                first = is_before(first + half - 1) ? first + half : first;
                count -= half;
            }
            return first + (count == 1 && is_before(first) ? 1 : 0);
        }
        template <class T>
        static void reserve_one_more(std::vector<T>& elements) {
            if (elements.size() == elements.capacity())
                elements.reserve(2 * elements.size() + 1);
        }
        // Entries and leaves are in descending order of addresses.
        using Entries = std::vector<Entry>;
        // The leaves, and for each the lowest address that belongs there; lower ones are in later leaves or low_. Every search reads these
        // addresses, so they are beside each other.
        struct Upper {
            std::vector<uint64_t> from;
            std::vector<Entries> leaves;

            [[nodiscard]] size_t leaf_of(uint64_t address) const {
                return count_while(from.size(), [&](size_t index) { return from[index] > address; });
            }
            [[nodiscard]] static Entries::iterator place_of(Entries& entries, uint64_t address) {
                const Entry* const all = entries.data();
                return entries.begin() + static_cast<ptrdiff_t>(count_while(entries.size(), [&](size_t index) {
                           return all[index].address > address;
                       }));
            }
            [[gnu::noinline]] void insert(Entry entry) {
                size_t leaf = leaf_of(entry.address);
                if (leaves[leaf].size() >= std::max<size_t>(leaf_entries, leaves.size() / 2)) [[unlikely]] {
                    split(leaf);
                    leaf = leaf_of(entry.address);
                }
                leaves[leaf].insert(place_of(leaves[leaf], entry.address), entry);
            }
            void reserve_leaf() {
                reserve_one_more(from);
                reserve_one_more(leaves);
            }
            // Moves the second half of a leaf to a new leaf after it.
            void split(size_t number) {
                reserve_leaf();
                Entries& before = leaves[number];
                const auto middle = static_cast<ptrdiff_t>(before.size() / 2);
                Entries behind(before.begin() + middle, before.end());
                before.resize(static_cast<size_t>(middle));
                from.insert(from.begin() + static_cast<ptrdiff_t>(number), before.back().address);
                leaves.insert(leaves.begin() + static_cast<ptrdiff_t>(number) + 1, std::move(behind));
            }
        };

        [[nodiscard]] std::span<const Entry> low() const { return {low_.get(), low_count_}; }
        [[gnu::noinline]] void make_room() {
            if (low_count_ == leaf_entries)
                return make_upper_leaf();
            const uint32_t capacity = std::max(4U, 2 * low_capacity_);
            auto larger = std::make_unique_for_overwrite<Entry[]>(capacity);
            std::ranges::copy(low(), larger.get());
            low_ = std::move(larger);
            low_capacity_ = capacity;
        }
        // Moves the first half of low_ to a new leaf at the end of `upper_`.
        void make_upper_leaf() {
            const uint32_t middle = low_count_ / 2;
            Entries made(low_.get(), low_.get() + middle);
            auto first = upper_ ? nullptr : std::make_unique<Upper>();
            (upper_ ? upper_ : first)->reserve_leaf();
            if (first)
                upper_ = std::move(first);
            upper_from_ = made.back().address;
            upper_->from.push_back(upper_from_);
            upper_->leaves.push_back(std::move(made));
            low_count_ =
                static_cast<uint32_t>(std::copy(low_.get() + middle, low_.get() + low_count_, low_.get()) - low_.get());
        }
        // The last leaf, or the end of one that is longer, becomes low_.
        [[gnu::noinline]] void refill() noexcept {
            Entries& last = upper_->leaves.back();
            const size_t count = std::min<size_t>(last.size(), low_capacity_ / 2 + 1);
            std::copy(last.end() - static_cast<ptrdiff_t>(count), last.end(), low_.get());
            low_count_ = static_cast<uint32_t>(count);
            last.resize(last.size() - count);
            if (last.empty())
                return remove_last_upper_leaf();
            upper_->from.back() = upper_from_ = last.back().address;
        }
        [[gnu::noinline]] void remove_from_upper(uint64_t address) noexcept {
            const size_t number = upper_->leaf_of(address);
            Entries& leaf = upper_->leaves[number];
            leaf.erase(Upper::place_of(leaf, address));
            if (!leaf.empty())
                return;
            if (number + 1 == upper_->leaves.size())
                return remove_last_upper_leaf();
            // The range of addresses of the empty leaf belongs to the leaf after it now.
            upper_->from.erase(upper_->from.begin() + static_cast<ptrdiff_t>(number));
            upper_->leaves.erase(upper_->leaves.begin() + static_cast<ptrdiff_t>(number));
        }
        void remove_last_upper_leaf() noexcept {
            upper_->from.pop_back();
            upper_->leaves.pop_back();
            if (upper_->leaves.empty())
                upper_.reset();
            upper_from_ = upper_ ? upper_->from.back() : UINT64_MAX;
        }

        std::unique_ptr<Entry[]> low_;  // the leaf with the lowest addresses; empty only when the bin is empty
        uint32_t low_count_ = 0;
        uint32_t low_capacity_ = 0;
        uint64_t upper_from_ = UINT64_MAX;  // entries with lower addresses are in low_
        std::unique_ptr<Upper> upper_;  // the other leaves of a bin with many blocks; at least one, or null
    };
    static_assert(sizeof(Bin) == 32);

    [[nodiscard]] static bool holds(uint64_t size) { return size % unit == 0 && size != 0 && size <= bin_count * unit; }
    [[nodiscard]] uint64_t size() const { return count_; }

    // std::bad_alloc leaves everything as it was.
    void insert(uint64_t size, Entry entry) {
        const uint64_t bin = bin_of(size);
        std::unique_ptr<Group>& group = groups_[bin / 64];
        if (!group) [[unlikely]]
            group = std::make_unique<Group>();
        (*group)[bin % 64].insert(entry);
        bins_[bin / 64] |= uint64_t{1} << (bin % 64);
        groups_with_blocks_ |= uint64_t{1} << (bin / 64);
        ++count_;
    }
    // Removes the block of this size and address. Changes the bit maps without branches that depend on the data.
    void remove(uint64_t size, uint64_t address) noexcept {
        const uint64_t bin = bin_of(size);
        Bin& blocks = (*groups_[bin / 64])[bin % 64];
        blocks.remove(address);
        --count_;
        bins_[bin / 64] &= ~(uint64_t{blocks.empty()} << (bin % 64));
        groups_with_blocks_ &= ~(uint64_t{bins_[bin / 64] == 0} << (bin / 64));
    }

    // Fetches what insert, remove and lowest of this size will read first. With many blocks it is not in the processor's caches.
    void prefetch(uint64_t size) const {
        if (holds(size))
            if (const Group* const group = groups_[bin_of(size) / 64].get())
                (*group)[bin_of(size) % 64].prefetch();
    }

    // The smallest size of a block that is at least `size`; 0 if there is no such block.
    [[nodiscard]] uint64_t smallest_from(uint64_t size) const {
        const uint64_t first = size == 0 ? 0 : (size - 1) / unit;
        if (first >= bin_count)
            return 0;
        uint64_t group = first / 64;
        uint64_t bins = bins_[group] & (~uint64_t{0} << (first % 64));
        const uint64_t above = groups_with_blocks_ & ~((uint64_t{2} << group) - 1);
        const auto next = static_cast<uint64_t>(std::countr_zero(above | uint64_t{1} << 63));
        // Both cases are equally probable, so this has no branch, which would often be mispredicted.
        const uint64_t is_above = 0 - uint64_t{bins == 0};  // all bits, or none
        group ^= (group ^ next) & is_above;
        bins |= bins_[next] & (0 - uint64_t{above != 0}) & is_above;
        return bins == 0 ? 0 : (group * 64 + static_cast<uint64_t>(std::countr_zero(bins)) + 1) * unit;
    }
    // The size of the largest block; 0 when there is no block.
    [[nodiscard]] uint64_t largest() const {
        if (groups_with_blocks_ == 0)
            return 0;
        const auto group = static_cast<uint64_t>(std::bit_width(groups_with_blocks_)) - 1;
        return (group * 64 + static_cast<uint64_t>(std::bit_width(bins_[group]))) * unit;
    }
    // The blocks of a size. There must be at least one.
    [[nodiscard]] const Bin& blocks_of(uint64_t size) const { return (*groups_[bin_of(size) / 64])[bin_of(size) % 64]; }
    // For tests: linear in the blocks of the size.
    [[nodiscard]] bool has(uint64_t size, Entry entry) const {
        return holds(size) && groups_[bin_of(size) / 64] && (*groups_[bin_of(size) / 64])[bin_of(size) % 64].has(entry);
    }

private:
    using Group = std::array<Bin, 64>;

    [[nodiscard]] static uint64_t bin_of(uint64_t size) { return size / unit - 1; }

    uint64_t groups_with_blocks_ = 0;
    std::array<uint64_t, bin_count / 64> bins_{};
    uint64_t count_ = 0;
    std::array<std::unique_ptr<Group>, bin_count / 64> groups_;
};

}  // namespace polder::memory
