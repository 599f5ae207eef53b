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
#include <utility>
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

    // The blocks of one size.
    class Bin {
    public:
        [[nodiscard]] bool empty() const { return low_.empty(); }
        // The block with the lowest address. The bin must not be empty.
        [[nodiscard]] const Entry& lowest() const { return low_.back(); }
        // std::bad_alloc leaves the entries as they were.
        void insert(Entry entry) {
            if (low_.size() >= leaf_entries) [[unlikely]]
                make_upper_leaf();
            if (upper_ && entry.address >= upper_->leaves.back().from) [[unlikely]]
                return upper_->insert(entry);
            low_.push_back(entry);
            Entry* at = &low_.back();
            for (Entry* const first = low_.data(); at != first && at[-1].address < entry.address; --at)
                *at = at[-1];
            *at = entry;
        }
        // Removes the block with this address, which must be in the bin.
        void remove(uint64_t address) noexcept {
            if (upper_ && address >= upper_->leaves.back().from) [[unlikely]]
                return remove_from_upper(address);
            // Each entry after it moves by one place.
            Entry* at = &low_.back();
            for (Entry moved = *at; moved.address != address; std::swap(moved, *at)) {
                assert(at != low_.data());
                --at;
            }
            low_.pop_back();
            if (low_.empty() && upper_) [[unlikely]] {
                low_.swap(upper_->leaves.back().entries);
                remove_last_upper_leaf();
            }
        }
        // Calls f(const Entry&), the lowest address first, until it returns true. False: it never did.
        template <class F>
        bool find(F&& f) const {
            const auto find_in = [&](const Entries& entries) {
                return std::any_of(entries.rbegin(), entries.rend(), std::ref(f));
            };
            return find_in(low_) || (upper_ && std::any_of(upper_->leaves.rbegin(), upper_->leaves.rend(),
                                                           [&](const Leaf& leaf) { return find_in(leaf.entries); }));
        }
        // For tests: linear in the blocks of the bin.
        [[nodiscard]] bool has(Entry wanted) const {
            return find(
                [&](const Entry& entry) { return entry.address == wanted.address && entry.block == wanted.block; });
        }
        [[nodiscard]] bool validate() const {
            uint64_t above = UINT64_MAX;
            const auto descends = [&above](const Entries& entries, uint64_t from) {
                for (const Entry& entry : entries)
                    if (entry.address < from || entry.address >= std::exchange(above, entry.address))
                        return false;
                return from <= above && !entries.empty();
            };
            if (upper_ && upper_->leaves.empty())
                return false;
            for (size_t number = 0; upper_ && number < upper_->leaves.size(); ++number)
                if (!descends(upper_->leaves[number].entries, upper_->leaves[number].from))
                    return false;
            return descends(low_, 0) || (low_.empty() && !upper_);
        }

    private:
        static constexpr size_t leaf_entries = 64;
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
        // Entries and leaves are in descending order of addresses.
        using Entries = std::vector<Entry>;
        struct Leaf {
            uint64_t from = 0;  // the lowest address that belongs here; lower ones are in later leaves or low_
            Entries entries;
        };
        struct Upper {
            std::vector<Leaf> leaves;

            [[nodiscard]] Leaf& leaf_of(uint64_t address) {
                return leaves[count_while(leaves.size(), [&](size_t index) { return leaves[index].from > address; })];
            }
            [[nodiscard]] static Entries::iterator place_of(Entries& entries, uint64_t address) {
                const Entry* const all = entries.data();
                return entries.begin() + static_cast<ptrdiff_t>(count_while(entries.size(), [&](size_t index) {
                           return all[index].address > address;
                       }));
            }
            [[gnu::noinline]] void insert(Entry entry) {
                Leaf* leaf = &leaf_of(entry.address);
                if (leaf->entries.size() >= std::max(leaf_entries, leaves.size() / 2)) [[unlikely]] {
                    split(static_cast<size_t>(leaf - leaves.data()));
                    leaf = &leaf_of(entry.address);
                }
                leaf->entries.insert(place_of(leaf->entries, entry.address), entry);
            }
            // Moves the second half of a leaf to a new leaf after it.
            void split(size_t number) {
                reserve_one_more(leaves);
                Leaf& before = leaves[number];
                const Entries& whole = before.entries;
                const auto middle = static_cast<ptrdiff_t>(whole.size() / 2);
                Leaf behind{before.from, Entries(whole.begin() + middle, whole.end())};
                before.entries.resize(static_cast<size_t>(middle));
                before.from = before.entries.back().address;
                leaves.insert(leaves.begin() + static_cast<ptrdiff_t>(number) + 1, std::move(behind));
            }
        };
        template <class T>
        static void reserve_one_more(std::vector<T>& elements) {
            if (elements.size() == elements.capacity())
                elements.reserve(2 * elements.size() + 1);
        }

        // Moves the first half of low_ to a new leaf at the end of `upper_`.
        [[gnu::noinline]] void make_upper_leaf() {
            const auto middle = static_cast<ptrdiff_t>(low_.size() / 2);
            Leaf made{low_[static_cast<size_t>(middle) - 1].address, Entries(low_.begin(), low_.begin() + middle)};
            auto first = upper_ ? nullptr : std::make_unique<Upper>();
            reserve_one_more((upper_ ? upper_ : first)->leaves);
            if (first)
                upper_ = std::move(first);
            upper_->leaves.push_back(std::move(made));
            low_.erase(low_.begin(), low_.begin() + middle);
        }
        [[gnu::noinline]] void remove_from_upper(uint64_t address) noexcept {
            Leaf& leaf = upper_->leaf_of(address);
            leaf.entries.erase(Upper::place_of(leaf.entries, address));
            if (!leaf.entries.empty())
                return;
            if (&leaf == &upper_->leaves.back())
                return remove_last_upper_leaf();
            // The range of addresses of the empty leaf belongs to the leaf after it now.
            upper_->leaves.erase(upper_->leaves.begin() + (&leaf - upper_->leaves.data()));
        }
        void remove_last_upper_leaf() noexcept {
            upper_->leaves.pop_back();
            if (upper_->leaves.empty())
                upper_.reset();
        }

        Entries low_;  // the leaf with the lowest addresses; empty only when the bin is empty
        std::unique_ptr<Upper> upper_;  // the other leaves of a bin with many blocks; at least one, or null
    };

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

    // The smallest size of a block that is at least `size`; 0 if there is no such block.
    [[nodiscard]] uint64_t smallest_from(uint64_t size) const {
        const uint64_t first = size == 0 ? 0 : (size - 1) / unit;
        if (first >= bin_count)
            return 0;
        uint64_t group = first / 64;
        uint64_t bins = bins_[group] & (~uint64_t{0} << (first % 64));
        const uint64_t above = groups_with_blocks_ & ~((uint64_t{2} << group) - 1);
        const auto next = static_cast<uint64_t>(std::countr_zero(above | uint64_t{1} << 63));
        const uint64_t bins_above = above == 0 ? 0 : bins_[next];
        // Both cases are equally probable, so this should not compile to a branch.
        group = bins == 0 ? next : group;
        bins = bins == 0 ? bins_above : bins;
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
