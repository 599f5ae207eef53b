// SizeBins: a set of free blocks of up to 2 MiB, ordered by size, then by address.
//
// Sizes are multiples of 512 bytes, and each size has a bin. Two levels of bit maps show which bins have blocks, so that the smallest
// size that is large enough is found in constant time. A bin consists of leaves, each for a range of addresses. The lowest address of a leaf is its
// last entry, and the others are in no order. So a request gets the last entry of the last leaf, an entry is added at the end, and no
// operation reads the description of another block: with a million blocks, each such access would be a cache miss (decision 132).
//
// An entry has 8 bytes: its address is a key of 32 bits, the distance from the first block in units of 512 bytes. Keys lie side by side, so that a key is
// found, and the lowest one, by comparing four at a time without branches that depend on the data, and so that the bins of a million blocks mostly stay in
// the processor's second cache (decision 210). Blocks farther than 1 TiB from the first one, or not a multiple of 512 bytes from it, are refused.
//
// Bounds: finding the block with the lowest address is O(1). For the n free blocks of one size, insert and remove find the leaf in O(log n) and
// read at most 128 keys, and O(sqrt(n)) where n is above 32,000: leaves then have up to half as many entries as there are leaves.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace polder::memory {

class SizeBins {
public:
    static constexpr uint32_t unit_log2 = 9;
    static constexpr uint64_t unit = uint64_t{1} << unit_log2;
    static constexpr uint32_t bin_count = 4096;
    struct Entry {
        uint64_t address = 0;
        uint32_t block = 0;
    };

    [[nodiscard]] static bool holds(uint64_t size) { return size % unit == 0 && size - 1 < bin_count * unit; }
    [[nodiscard]] uint64_t size() const { return count_; }

    // False when the entry is refused because of its address. That and std::bad_alloc leave everything as it was.
    [[nodiscard]] bool insert(uint64_t size, Entry entry) {
        if (count_ == 0) [[unlikely]]
            base_ = entry.address;
        if (!is_near(entry.address)) [[unlikely]]
            return false;
        const uint64_t bin = bin_of(size);
        std::unique_ptr<Group>& group = groups_[bin / 64];
        if (!group) [[unlikely]]
            group = std::make_unique<Group>();
        (*group)[bin % 64].insert(key_of(entry.address), entry.block);
        bins_[bin / 64] |= uint64_t{1} << (bin % 64);
        groups_with_blocks_ |= uint64_t{1} << (bin / 64);
        ++count_;
        return true;
    }
    // Removes the block of this size and address.
    void remove(uint64_t size, uint64_t address) noexcept {
        Bin& bin = bin_at(size);
        bin.remove(key_of(address));
        note_removal(size, bin);
    }
    // There must be a block of this size.
    void remove_lowest(uint64_t size) noexcept {
        Bin& bin = bin_at(size);
        bin.remove_lowest();
        note_removal(size, bin);
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

    // The block with the lowest address among those of this size. There must be one.
    [[nodiscard]] Entry lowest(uint64_t size) const { return entry_of(bin_at(size).lowest()); }
    // The one with the lowest address among those for which fits(const Entry&) is true. Linear in the blocks of the size.
    template <class Fits>
    [[nodiscard]] std::optional<Entry> lowest_of(uint64_t size, Fits&& fits) const {
        const Place found = bin_at(size).lowest_of([&](const Place& place) { return fits(entry_of(place)); });
        return found.key == above_all ? std::nullopt : std::optional{entry_of(found)};
    }
    // For tests: linear in the blocks of the size.
    [[nodiscard]] bool has(uint64_t size, Entry wanted) const {
        return holds(size) && groups_[bin_of(size) / 64] && lowest_of(size, [&](const Entry& entry) {
                   return entry.address == wanted.address && entry.block == wanted.block;
               });
    }
    [[nodiscard]] bool validate() const {
        uint64_t count = 0;
        for (uint64_t size = unit; size <= bin_count * unit; size += unit) {
            const uint64_t bin = bin_of(size);
            const Group* const group = groups_[bin / 64].get();
            const uint64_t blocks = group ? (*group)[bin % 64].size() : 0;
            count += blocks;
            if ((blocks != 0) != ((bins_[bin / 64] >> (bin % 64) & 1) != 0) ||
                (bins_[bin / 64] != 0) != ((groups_with_blocks_ >> (bin / 64) & 1) != 0) ||
                (group && !(*group)[bin % 64].validate()))
                return false;
        }
        return count == count_;
    }

private:
    // An address, as its distance from base_ in units.
    using Key = int32_t;
    static constexpr Key lowest_key = std::numeric_limits<Key>::min();
    // No entry's key. The places after a leaf's last entry have it.
    static constexpr Key above_all = std::numeric_limits<Key>::max();
    struct Place {
        Key key = 0;
        uint32_t block = 0;
    };

    // All keys lie side by side, then all blocks, from the beginning of a cache line. The last entry has the lowest key.
    class Leaf {
    public:
        static constexpr uint32_t lanes = 8;  // capacities are multiples of it

        [[nodiscard]] uint32_t size() const { return count_; }
        [[nodiscard]] bool empty() const { return count_ == 0; }
        [[nodiscard]] bool is_full() const { return count_ == capacity_; }
        [[nodiscard]] uint32_t capacity() const { return capacity_; }
        [[nodiscard]] Place operator[](uint32_t index) const { return {keys()[index], blocks()[index]}; }
        [[nodiscard]] Place lowest() const { return (*this)[count_ - 1]; }

        // Fetches what insert and lowest access.
        void prefetch() const {
            const auto* const begin = reinterpret_cast<const std::byte*>(lines_.get());
            __builtin_prefetch(begin + count_ * sizeof(Key), 1);
            __builtin_prefetch(begin + (capacity_ + count_) * sizeof(Key), 1);
        }
        void reserve(uint32_t capacity) {
            auto larger = std::make_unique_for_overwrite<Line[]>((2 * capacity + Line::words - 1) / Line::words);
            auto* const to = reinterpret_cast<Key*>(larger.get());
            std::copy(keys(), keys() + count_, to);
            std::fill(to + count_, to + capacity, above_all);
            std::copy(blocks(), blocks() + count_, reinterpret_cast<uint32_t*>(to) + capacity);
            lines_ = std::move(larger);
            capacity_ = capacity;
        }
        // There must be room. Has no branches: when the leaf is empty, `last` is the first place, which has the key above_all.
        void insert(Place place) noexcept {
            assert(!is_full());
            const uint32_t last = last_place();
            const Place before = (*this)[last];
            const uint32_t is_lowest = 0 - uint32_t{place.key < before.key};  // all bits, or none
            const uint32_t key = static_cast<uint32_t>(place.key ^ before.key) & is_lowest;
            const uint32_t block = (place.block ^ before.block) & is_lowest;
            set(last, {static_cast<Key>(static_cast<uint32_t>(place.key) ^ key), place.block ^ block});
            set(count_++, {static_cast<Key>(static_cast<uint32_t>(before.key) ^ key), before.block ^ block});
        }
        // The key must be in the leaf.
        void remove(Key key) noexcept {
            if (keys()[count_ - 1] == key)
                return remove_lowest();
            // The entry before the lowest takes the place, and the lowest its place.
            const uint32_t at = index_of(key);
            --count_;
            set(at, (*this)[count_ - 1]);
            set(count_ - 1, (*this)[count_]);
            keys()[count_] = above_all;
        }
        void remove_lowest() noexcept {
            keys()[--count_] = above_all;
            if (count_ > 1)  // else the processor would wait until it can load this key together with its neighbours
                move_lowest_to_end();
        }
        // Moves the `count` entries with the lowest keys to an empty leaf with enough room.
        void move_lowest_to(Leaf& other, uint32_t count) noexcept {
            select(count_ - count);
            for (uint32_t from = count_ - count; from < count_; ++from)
                other.insert((*this)[from]);
            std::fill(keys() + count_ - count, keys() + count_, above_all);
            count_ -= count;
            if (count_ > 1)
                move_lowest_to_end();
        }
        // The entry with the lowest key for which fits(const Place&); the key is above_all when there is none.
        template <class Fits>
        [[nodiscard]] Place lowest_of(Fits&& fits) const {
            Place found{above_all, 0};
            for (uint32_t index = count_; index-- > 0;)
                if (const Place place = (*this)[index]; place.key < found.key && fits(place))
                    found = place;
            return found;
        }
        // Whether all keys are below `above` and not below `from`.
        [[nodiscard]] bool validate(Key from, Key above) const {
            for (uint32_t index = 0; index < capacity_; ++index) {
                const Key key = keys()[index];
                if (index >= count_ ? key != above_all : key < from || key >= above || key < lowest().key)
                    return false;
            }
            return count_ <= capacity_;
        }

    private:
        struct alignas(64) Line {
            static constexpr uint32_t words = 16;
            uint32_t all[words];
        };
        using Four [[gnu::vector_size(16), gnu::may_alias]] = Key;

        [[nodiscard]] Key* keys() { return reinterpret_cast<Key*>(lines_.get()); }
        [[nodiscard]] const Key* keys() const { return reinterpret_cast<const Key*>(lines_.get()); }
        [[nodiscard]] uint32_t* blocks() { return reinterpret_cast<uint32_t*>(lines_.get()) + capacity_; }
        [[nodiscard]] const uint32_t* blocks() const {
            return reinterpret_cast<const uint32_t*>(lines_.get()) + capacity_;
        }
        void set(uint32_t index, Place place) {
            keys()[index] = place.key;
            blocks()[index] = place.block;
        }
        // The first place when the leaf is empty.
        [[nodiscard]] uint32_t last_place() const { return count_ - (count_ != 0 ? 1 : 0); }
        void move_lowest_to_end() { swap(index_of(lowest_of_all()), count_ - 1); }
        void swap(uint32_t one, uint32_t other) {
            const Place place = (*this)[one];
            set(one, (*this)[other]);
            set(other, place);
        }
        [[nodiscard]] Key lowest_of_all() const {
            const auto* const fours = reinterpret_cast<const Four*>(lines_.get());
            Four low = fours[0], high = fours[1];
            for (uint32_t four = 2; four * 4 < count_; four += 2) {
                low = fours[four] < low ? fours[four] : low;
                high = fours[four + 1] < high ? fours[four + 1] : high;
            }
            low = high < low ? high : low;
            return std::min(std::min(low[0], low[1]), std::min(low[2], low[3]));
        }
        // The key must be in the leaf.
        [[nodiscard]] uint32_t index_of(Key key) const {
            const auto* const fours = reinterpret_cast<const Four*>(lines_.get());
            Four numbers{0, 1, 2, 3}, low{}, high{};
            for (uint32_t four = 0; four * 4 < count_; four += 2) {
                low |= (fours[four] == key) & numbers;
                high |= (fours[four + 1] == key) & (numbers + 4);
                numbers += 8;
            }
            low |= high;
            return static_cast<uint32_t>((low[0] | low[1]) | (low[2] | low[3]));
        }
        // Hoare's selection: afterwards no key from place `first` on is higher than one before it.
        void select(uint32_t first) noexcept {
            for (uint32_t begin = 0, end = count_; end - begin > 1;) {
                const Key pivot = keys()[begin + (end - begin) / 2];
                uint32_t left = begin, right = end - 1;
                for (;; ++left, --right) {
                    while (keys()[left] > pivot)
                        ++left;
                    while (keys()[right] < pivot)
                        --right;
                    if (left >= right)
                        break;
                    swap(left, right);
                }
                // Keys before `left` are not lower than the pivot, keys from `right + 1` on not higher.
                if (first > right)
                    begin = right + 1;
                else
                    end = right + 1 == end ? right : right + 1;
            }
        }

        std::unique_ptr<Line[]> lines_;
        uint32_t count_ = 0;
        uint32_t capacity_ = 0;
    };

    // The blocks of one size. Half a cache line: what an operation on the lowest addresses needs but for their entries.
    class alignas(32) Bin {
    public:
        [[nodiscard]] bool empty() const { return low_.empty(); }
        [[nodiscard]] Place lowest() const { return low_.lowest(); }
        void prefetch() const { low_.prefetch(); }
        void insert(Key key, uint32_t block) {
            if (low_.is_full()) [[unlikely]]
                make_room();
            if (key >= upper_from_) [[unlikely]]
                return upper_->insert({key, block});
            low_.insert({key, block});
        }
        void remove(Key key) noexcept {
            if (key >= upper_from_) [[unlikely]]
                return remove_from_upper(key);
            low_.remove(key);
            refill_when_empty();
        }
        void remove_lowest() noexcept {
            low_.remove_lowest();
            refill_when_empty();
        }
        template <class Fits>
        [[nodiscard]] Place lowest_of(Fits&& fits) const {
            Place found = low_.lowest_of(fits);
            for (size_t number = upper_ ? upper_->leaves.size() : 0; found.key == above_all && number-- > 0;)
                found = upper_->leaves[number].lowest_of(fits);
            return found;
        }
        [[nodiscard]] uint64_t size() const {
            uint64_t sum = low_.size();
            for (size_t number = 0; upper_ && number < upper_->leaves.size(); ++number)
                sum += upper_->leaves[number].size();
            return sum;
        }
        [[nodiscard]] bool validate() const {
            Key above = above_all;
            if (upper_from_ != (upper_ ? upper_->from.back() : above_all) || (upper_ && low_.empty()))
                return false;
            for (size_t number = 0; upper_ && number < upper_->leaves.size(); ++number) {
                if (upper_->leaves[number].empty() || !upper_->leaves[number].validate(upper_->from[number], above))
                    return false;
                above = upper_->from[number];
            }
            return low_.validate(lowest_key, above);
        }

    private:
        static constexpr uint32_t leaf_entries = 128;
        // The leaves are in descending order of keys. For each there is the lowest key that belongs there; lower ones are in later leaves or in
        // low_. Every search reads these keys, so they are beside each other.
        struct Upper {
            std::vector<Key> from;
            std::vector<Leaf> leaves;

            // A binary search without branches that depend on the data, because half of them would be mispredicted.
            [[nodiscard]] size_t leaf_of(Key key) const {
                size_t first = 0;
                for (size_t count = from.size(); count > 1;) {
                    const size_t half = count / 2;
                    first = from[first + half - 1] > key ? first + half : first;
                    count -= half;
                }
                return first;
            }
            [[gnu::noinline]] void insert(Place place) {
                size_t leaf = leaf_of(place.key);
                if (leaves[leaf].size() >= std::max<size_t>(leaf_entries, leaves.size() / 2)) [[unlikely]] {
                    split(leaf);
                    leaf = leaf_of(place.key);
                }
                if (leaves[leaf].is_full())
                    leaves[leaf].reserve(2 * leaves[leaf].capacity());
                leaves[leaf].insert(place);
            }
            void reserve_leaf() {
                const auto reserve_one_more = [](auto& elements) {
                    if (elements.size() == elements.capacity())
                        elements.reserve(2 * elements.size() + 1);
                };
                reserve_one_more(from);
                reserve_one_more(leaves);
            }
            // Moves the lower half of a leaf to a new leaf after it.
            void split(size_t number) {
                reserve_leaf();
                Leaf& before = leaves[number];
                Leaf behind;
                behind.reserve(before.capacity());
                before.move_lowest_to(behind, before.size() / 2);
                from.insert(from.begin() + static_cast<ptrdiff_t>(number), before.lowest().key);
                leaves.insert(leaves.begin() + static_cast<ptrdiff_t>(number) + 1, std::move(behind));
            }
        };

        [[gnu::noinline]] void make_room() {
            if (low_.size() >= leaf_entries)
                return make_upper_leaf();
            low_.reserve(std::max(Leaf::lanes, 2 * low_.capacity()));
        }
        // Moves the higher half of low_ to a new leaf at the end of `upper_`.
        void make_upper_leaf() {
            Leaf lower;
            lower.reserve(low_.capacity());
            auto first = upper_ ? nullptr : std::make_unique<Upper>();
            (upper_ ? upper_ : first)->reserve_leaf();
            if (first)
                upper_ = std::move(first);
            low_.move_lowest_to(lower, low_.size() / 2);
            upper_from_ = low_.lowest().key;
            upper_->from.push_back(upper_from_);
            upper_->leaves.push_back(std::move(low_));
            low_ = std::move(lower);
        }
        void refill_when_empty() noexcept {
            if (low_.empty() && upper_) [[unlikely]]
                refill();
        }
        // The last leaf, or the lowest part of one that is longer, becomes low_.
        [[gnu::noinline]] void refill() noexcept {
            Leaf& last = upper_->leaves.back();
            if (last.size() <= leaf_entries) {
                low_ = std::move(last);
                return remove_last_upper_leaf();
            }
            last.move_lowest_to(low_, std::min(low_.capacity(), leaf_entries / 2));
            upper_->from.back() = upper_from_ = last.lowest().key;
        }
        [[gnu::noinline]] void remove_from_upper(Key key) noexcept {
            const size_t number = upper_->leaf_of(key);
            Leaf& leaf = upper_->leaves[number];
            leaf.remove(key);
            if (!leaf.empty())
                return;
            if (number + 1 == upper_->leaves.size())
                return remove_last_upper_leaf();
            // The range of keys of the empty leaf belongs to the leaf after it now.
            upper_->from.erase(upper_->from.begin() + static_cast<ptrdiff_t>(number));
            upper_->leaves.erase(upper_->leaves.begin() + static_cast<ptrdiff_t>(number));
        }
        void remove_last_upper_leaf() noexcept {
            upper_->from.pop_back();
            upper_->leaves.pop_back();
            if (upper_->leaves.empty())
                upper_.reset();
            upper_from_ = upper_ ? upper_->from.back() : above_all;
        }

        Leaf low_;  // the leaf with the lowest keys; empty only when the bin is empty
        std::unique_ptr<Upper> upper_;  // the other leaves of a bin with many blocks; at least one, or null
        Key upper_from_ = above_all;  // lower keys are in low_
    };
    static_assert(sizeof(Bin) == 32);
    using Group = std::array<Bin, 64>;

    [[nodiscard]] static uint64_t bin_of(uint64_t size) { return size / unit - 1; }
    [[nodiscard]] Bin& bin_at(uint64_t size) const { return (*groups_[bin_of(size) / 64])[bin_of(size) % 64]; }
    [[nodiscard]] bool is_near(uint64_t address) const {
        constexpr uint64_t half = uint64_t{1} << 31;
        const uint64_t distance = address - base_ + (half - 1) * unit;  // 0 for the lowest key
        return distance % unit == 0 && distance < (2 * half - 2) * unit;
    }
    [[nodiscard]] Key key_of(uint64_t address) const {
        return static_cast<Key>(static_cast<int64_t>(address - base_) >> unit_log2);
    }
    [[nodiscard]] Entry entry_of(const Place& place) const {
        return {base_ + static_cast<uint64_t>(int64_t{place.key}) * unit, place.block};
    }
    // Changes the bit maps without branches that depend on the data.
    void note_removal(uint64_t size, const Bin& blocks) noexcept {
        const uint64_t bin = bin_of(size);
        --count_;
        bins_[bin / 64] &= ~(uint64_t{blocks.empty()} << (bin % 64));
        groups_with_blocks_ &= ~(uint64_t{bins_[bin / 64] == 0} << (bin / 64));
    }

    uint64_t groups_with_blocks_ = 0;
    uint64_t base_ = 0;  // the address of key 0
    uint64_t count_ = 0;
    std::array<uint64_t, bin_count / 64> bins_{};
    std::array<std::unique_ptr<Group>, bin_count / 64> groups_;
};

}  // namespace polder::memory
