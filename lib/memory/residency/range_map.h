// RangeMap: a state for every byte of [0, size). Neighbouring bytes with equal states form one piece.
//
// Pieces are sorted, in leaves of at most 64: the two lowest levels of a B+ tree (R. Bayer, E. McCreight, "Organization and Maintenance of
// Large Ordered Indexes", Acta Informatica 1, 1972), of which the upper one is a flat array. A split or a merge moves pieces of one leaf only.
// A full leaf is halved; two neighbouring leaves that are together half full become one. The offsets where pieces begin, and those where
// leaves begin, are separate arrays, so that a binary search reads few cache lines. A search tries the piece that was found last
// first, because a command finds its piece several times. Most maps have one piece, which is stored in the map itself: then nothing is
// searched or allocated. Maps with few pieces have one leaf and no upper level.
//
// A change has three steps, so that nothing can fail after a device operation was submitted:
//   prepare  splits the pieces at the ends of the ranges; may throw std::bad_alloc, no byte's state changes
//   apply    changes the states of prepared ranges; noexcept, keeps the pieces apart
//   merge    joins equal neighbours; noexcept
//
// `State` has `bool absorb(State& next)`. It returns true when the two states need not be distinguished; this state then describes both
// pieces. It may remove what no longer matters from both. Not thread-safe: guarded by the storage's lock.
#pragma once

#include <base/recycled_arrays.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <polder/types.h>
#include <span>
#include <utility>
#include <vector>

namespace polder::memory {

template <class State>
class RangeMap {
public:
    explicit RangeMap(ByteCount size) : size_(size.value) { assert(size_ > 0); }
    RangeMap(ByteCount size, State initial) : size_(size.value), only_(std::move(initial)) { assert(size_ > 0); }

    [[nodiscard]] ByteCount size() const { return ByteCount{size_}; }
    [[nodiscard]] size_t pieces() const { return is_split() ? pieces_ : 1; }

    // False when the one piece is stored in the map itself: there is nothing to merge.
    [[nodiscard]] bool is_split() const { return pieces_ != 0; }
    // The state of all bytes when there is one piece; null when there are several.
    [[nodiscard]] const State* only() const { return is_split() ? nullptr : &only_; }
    // The same, mutable; null also when `range` is not the whole map.
    [[nodiscard]] State* only(ByteRange range) { return !is_split() && range.size() == size_ ? &only_ : nullptr; }

    // Calls f(ByteRange, const State&) for every piece that overlaps `range`, clipped to it, in order.
    template <class F>
    void visit(ByteRange range, F&& f) const {
        assert(range.end <= size_);
        if (!is_split()) [[likely]] {
            if (!range.empty())
                f(range, only_);
            return;
        }
        for_each_piece(*this, range, [&](ByteRange piece, const State& state) { f(piece.intersect(range), state); });
    }

    // Splits the pieces so that one begins and one ends where each of `ranges` does. The ranges are sorted and disjoint.
    void prepare(std::span<const ByteRange> ranges) {
        for (const ByteRange& range : ranges)
            prepare(range);
    }
    void prepare(ByteRange range) {
        assert(range.end <= size_);
        if (range.empty() || (!is_split() && range.size() == size_)) [[likely]]
            return;
        if (!is_split()) {
            static_assert(few_pieces >= 3, "the most pieces that one range makes of one");
            first_.begins.reserve(few_pieces);
            first_.states.reserve(few_pieces);
            first_.begins.push_back(0);
            first_.states.push_back(std::move(only_));
            pieces_ = 1;
        }
        split(range.begin);
        if (range.end != size_)
            split(range.end);
    }

    // Calls f(ByteRange, State&) for every piece of the prepared `range`, in order.
    template <class F>
    void apply(ByteRange range, F&& f) {
        if (range.empty())
            return;
        if (!is_split()) [[likely]] {
            assert(range.size() == size_);
            f(range, only_);
            return;
        }
        for_each_piece(*this, range, [&](ByteRange piece, State& state) {
            assert(range.contains(piece));
            f(piece, state);
        });
    }
    template <class F>
    void apply(std::span<const ByteRange> ranges, F&& f) {
        for (const ByteRange& range : ranges)
            apply(range, f);
    }

    // Merges equal neighbours from the one before the first range to the one after the last.
    void merge(std::span<const ByteRange> ranges) noexcept {
        if (!is_split() || ranges.empty()) [[likely]]
            return;
        const Place first = find(ranges.front().begin);
        const Place last = find(ranges.back().end - (ranges.back().empty() ? 0 : 1));
        merge(before(first), behind(last));
    }

    // Does all three steps.
    template <class F>
    void update(std::span<const ByteRange> ranges, F&& f) {
        prepare(ranges);
        apply(ranges, f);
        merge(ranges);
    }
    template <class F>
    void update(ByteRange range, F&& f) {
        update(std::span<const ByteRange>{&range, 1}, f);
    }

    // Calls f(ByteRange, State&) for every piece and merges neighbours that became equal.
    template <class F>
    void sweep(F&& f) {
        if (!is_split()) {
            f(ByteRange{0, size_}, only_);
            return;
        }
        for_each_piece(*this, {0, size_}, f);
        merge({0, 0}, {leaf_count() - 1, leaf(leaf_count() - 1).size() - 1});
    }

    // Checks that pieces begin at 0, are in order, are not empty and end within the size, and that leaves are neither empty nor too large.
    [[nodiscard]] bool validate() const {
        if (leaf_begins_.size() != leaves_.size() || leaves_.size() == 1 || (!leaves_.empty() && first_.size() != 0))
            return false;
        if (!is_split())
            return leaves_.empty() && first_.size() == 0;
        size_t count = 0;
        uint64_t end = 0;  // the next piece must not begin before this
        for (size_t i = 0; i < leaf_count(); ++i) {
            const Leaf& each = leaf(i);
            if (each.size() == 0 || each.size() > leaf_pieces || each.states.size() != each.size() ||
                (!leaves_.empty() && leaf_begins_[i] != each.begins.front()))
                return false;
            for (const uint64_t begin : each.begins) {
                if (count++ == 0 ? begin != 0 : begin < end)
                    return false;
                end = begin + 1;
            }
        }
        return count == pieces_ && end <= size_;
    }

private:
    // Most maps with several pieces have few, and only for a short time: their arrays use recycled memory (RecycledArrays).
    static constexpr size_t few_pieces = 4;
    static constexpr size_t leaf_pieces = 64;
    using Begins = std::vector<uint64_t, RecycledArrays<uint64_t, few_pieces>>;
    using States = std::vector<State, RecycledArrays<State, few_pieces>>;

    struct Leaf {
        [[nodiscard]] size_t size() const { return begins.size(); }
        Begins begins;
        States states;
    };
    // The place of a piece.
    struct Place {
        size_t leaf = 0;
        size_t index = 0;
    };

    [[nodiscard]] bool has_leaves() const { return !leaf_begins_.empty(); }
    [[nodiscard]] size_t leaf_count() const { return has_leaves() ? leaf_begins_.size() : 1; }
    [[nodiscard]] const Leaf& leaf(size_t number) const { return has_leaves() ? leaves_[number] : first_; }
    [[nodiscard]] Leaf& leaf(size_t number) { return has_leaves() ? leaves_[number] : first_; }
    [[nodiscard]] uint64_t end_of_leaf(size_t number) const {
        return number + 1 < leaf_begins_.size() ? leaf_begins_[number + 1] : size_;
    }
    [[nodiscard]] Place before(Place at) const {
        if (at.index != 0)
            return {at.leaf, at.index - 1};
        return at.leaf != 0 ? Place{at.leaf - 1, leaf(at.leaf - 1).size() - 1} : at;
    }
    [[nodiscard]] Place behind(Place at) const {
        if (at.index + 1 < leaf(at.leaf).size())
            return {at.leaf, at.index + 1};
        return at.leaf + 1 < leaf_count() ? Place{at.leaf + 1, 0} : at;
    }

    // For maps with several pieces: calls f(ByteRange, state) for every piece that overlaps `range`, not clipped to it.
    template <class Map, class F>
    static void for_each_piece(Map& map, ByteRange range, F&& f) {
        const Place first = map.find(range.begin);
        size_t index = first.index;
        for (size_t number = first.leaf;; ++number, index = 0) {
            auto& pieces = map.leaf(number);
            const uint64_t leaf_end = map.end_of_leaf(number);
            for (const size_t count = pieces.size(); index < count; ++index) {
                const uint64_t begin = pieces.begins[index];
                if (begin >= range.end)
                    return;
                f(ByteRange{begin, index + 1 < count ? pieces.begins[index + 1] : leaf_end}, pieces.states[index]);
            }
            if (leaf_end >= range.end)
                return;
        }
    }

    // The index of the last of `begins` that is not above `offset`. Has no branches that depend on the offset.
    template <class Array>
    [[nodiscard]] static size_t last_not_above(const Array& begins, uint64_t offset) {
        const uint64_t* first = begins.data();
        for (size_t count = begins.size(); count > 1;) {
            const size_t half = count / 2;
            first = first[half] <= offset ? first + half : first;
            count -= half;
        }
        return static_cast<size_t>(first - begins.data());
    }

    // For maps with several pieces: finds the piece that contains `offset`.
    [[nodiscard]] Place find(uint64_t offset) const {
        if (!has_leaves()) [[likely]]
            return {0, find_in(first_, size_, offset, last_found_.index)};
        if (last_found_.leaf >= leaf_count() || offset < leaf_begins_[last_found_.leaf] ||
            offset >= end_of_leaf(last_found_.leaf))
            last_found_.leaf = last_not_above(leaf_begins_, offset);
        const size_t number = last_found_.leaf;
        return {number, find_in(leaves_[number], end_of_leaf(number), offset, last_found_.index)};
    }
    // The index of the piece of a leaf that contains `offset`. The pieces of the leaf contain `offset` and end at `end`.
    [[nodiscard]] static size_t find_in(const Leaf& pieces, uint64_t end, uint64_t offset, size_t& last_found) {
        const Begins& begins = pieces.begins;
        for (size_t near = last_found; near < begins.size() && near < last_found + 2; ++near)
            if (begins[near] <= offset && offset < (near + 1 < begins.size() ? begins[near + 1] : end))
                return near;
        return last_found = last_not_above(begins, offset);
    }

    // Makes a piece begin at `offset`, which is less than the size.
    void split(uint64_t offset) {
        Place at = find(offset);
        if (leaf(at.leaf).begins[at.index] == offset)
            return;
        if (leaf(at.leaf).size() == leaf_pieces) [[unlikely]] {
            halve(at.leaf);
            at = find(offset);
        }
        Leaf& pieces = leaf(at.leaf);
        State right = pieces.states[at.index];
        if (pieces.begins.size() == pieces.begins.capacity())
            pieces.begins.reserve(2 * pieces.begins.size());  // so that the second insertion cannot fail
        pieces.states.insert(pieces.states.begin() + static_cast<ptrdiff_t>(at.index) + 1, std::move(right));
        pieces.begins.insert(pieces.begins.begin() + static_cast<ptrdiff_t>(at.index) + 1, offset);
        ++pieces_;
    }

    // Halves a full leaf. In maps with several leaves, each leaf has capacity for the maximal number of pieces.
    void halve(size_t number) {
        constexpr auto half = static_cast<ptrdiff_t>(leaf_pieces / 2);
        Leaf upper;
        upper.begins.reserve(leaf_pieces);
        upper.states.reserve(leaf_pieces);
        leaf(number).begins.reserve(leaf_pieces);
        leaf(number).states.reserve(leaf_pieces);
        const size_t needed = leaf_count() + 1;
        if (leaves_.capacity() < needed)
            leaves_.reserve(2 * needed);
        if (leaf_begins_.capacity() < needed)
            leaf_begins_.reserve(2 * needed);
        // From here on nothing fails.
        if (leaves_.empty()) {
            leaves_.push_back(std::exchange(first_, Leaf{}));
            leaf_begins_.push_back(0);
        }
        Leaf& lower = leaves_[number];
        upper.begins.assign(lower.begins.begin() + half, lower.begins.end());
        upper.states.assign(std::move_iterator{lower.states.begin() + half}, std::move_iterator{lower.states.end()});
        lower.begins.erase(lower.begins.begin() + half, lower.begins.end());
        lower.states.erase(lower.states.begin() + half, lower.states.end());
        const auto behind = static_cast<ptrdiff_t>(number) + 1;
        leaf_begins_.insert(leaf_begins_.begin() + behind, upper.begins.front());
        leaves_.insert(leaves_.begin() + behind, std::move(upper));
    }

    // Merges equal neighbours among the pieces from `first` to `last`.
    void merge(Place first, Place last) noexcept {
        State* kept = &leaf(first.leaf).states[first.index];
        if (!has_leaves()) [[likely]] {
            merge_in(first_, first.index + 1, last.index + 1, kept);
            keep_only_piece_inside();
            return;
        }
        bool changes_leaves = false;
        for (size_t number = first.leaf; number <= last.leaf; ++number) {
            Leaf& pieces = leaf(number);
            const size_t begin = number == first.leaf ? first.index + 1 : 0;
            const size_t end = number == last.leaf ? last.index + 1 : pieces.size();
            changes_leaves |= merge_in(pieces, begin, end, kept);
        }
        if (changes_leaves)
            mend_leaves(first.leaf, last.leaf);
        keep_only_piece_inside();
    }

    // Merges pieces [begin, end) of a leaf. `kept`: the piece before them, then the last one that stays. Returns whether any was removed.
    bool merge_in(Leaf& pieces, size_t begin, size_t end, State*& kept) noexcept {
        size_t next = begin;
        for (size_t i = begin; i < end; ++i) {
            if (kept->absorb(pieces.states[i]))
                continue;
            if (next != i) {
                pieces.begins[next] = pieces.begins[i];
                pieces.states[next] = std::move(pieces.states[i]);
            }
            kept = &pieces.states[next++];
        }
        if (next == end)
            return false;
        const auto from = static_cast<ptrdiff_t>(next);
        const auto to = static_cast<ptrdiff_t>(end);
        pieces.begins.erase(pieces.begins.begin() + from, pieces.begins.begin() + to);
        pieces.states.erase(pieces.states.begin() + from, pieces.states.begin() + to);
        pieces_ -= end - next;
        return true;
    }

    // Called after pieces of the leaves `first` to `last` were removed: removes empty leaves, and joins neighbours with few pieces.
    void mend_leaves(size_t first, size_t last) noexcept {
        size_t kept = first > 0 ? first - 1 : 0;  // the leaf that the next one may be joined to
        const size_t past = std::min(last + 2, leaves_.size());
        for (size_t number = kept + 1; number < past; ++number) {
            Leaf& next = leaves_[number];
            if (leaves_[kept].size() + next.size() <= leaf_pieces / 2) {
                append(leaves_[kept], next);
            } else if (next.size() != 0 && ++kept != number) {
                leaves_[kept] = std::move(next);
            }
        }
        const auto from = static_cast<ptrdiff_t>(kept) + 1;
        leaves_.erase(leaves_.begin() + from, leaves_.begin() + static_cast<ptrdiff_t>(past));
        leaf_begins_.erase(leaf_begins_.begin() + from, leaf_begins_.begin() + static_cast<ptrdiff_t>(past));
        for (size_t number = first > 0 ? first - 1 : 0; number <= kept; ++number)
            leaf_begins_[number] = leaves_[number].begins.front();
        if (leaves_.size() != 1)
            return;
        first_ = std::move(leaves_.front());
        leaves_.clear();
        leaf_begins_.clear();
    }

    // Moves all pieces of `from` to the end of `to`, which has the capacity for them.
    static void append(Leaf& to, Leaf& from) noexcept {
        to.begins.insert(to.begins.end(), from.begins.begin(), from.begins.end());
        to.states.insert(to.states.end(), std::move_iterator{from.states.begin()},
                         std::move_iterator{from.states.end()});
    }

    // When one piece is left, stores it in the map itself. The arrays keep their memory, because the map is likely to be split again.
    void keep_only_piece_inside() noexcept {
        if (pieces_ != 1)
            return;
        only_ = std::move(first_.states.front());
        first_.begins.clear();
        first_.states.clear();
        pieces_ = 0;
    }

    uint64_t size_;
    mutable Place last_found_;
    State only_;  // the state of the only piece; valid while pieces_ is 0
    // The number of pieces in leaves. 0: the map has one piece, whose state is only_.
    size_t pieces_ = 0;
    Leaf first_;  // all pieces, unless there are several leaves
    std::vector<Leaf> leaves_;
    std::vector<uint64_t> leaf_begins_;
};

}  // namespace polder::memory
