// RangeMap: a state for every byte of [0, size). Neighbouring bytes with equal states form one piece.
//
// Pieces are sorted, in leaves of at most 64: the two lowest levels of a B+ tree (R. Bayer, E. McCreight, "Organization and Maintenance of
// Large Ordered Indexes", Acta Informatica 1, 1972), of which the upper one is a flat array. A split or a merge moves pieces of one leaf only.
// A full leaf is halved; two neighbouring leaves that are together half full become one. The offsets where pieces begin, and those where
// leaves begin, are separate arrays, so that a binary search reads few cache lines. The map remembers the last offset that it searched and
// its place, because a command prepares, applies and merges the same range. Most maps have one piece, which is stored in the map itself:
// then nothing is searched or allocated. Maps with few pieces have one leaf and no upper level.
//
// A change has three steps, so that nothing can fail after a device operation was submitted:
//   prepare  splits the pieces at the ends of the ranges; may throw std::bad_alloc, no byte's state changes
//   apply    changes the states of prepared ranges; noexcept, keeps the pieces apart
//   merge    joins equal neighbours; noexcept
//
// `State` has `bool absorb(State& next)`. It returns true when the two states need not be distinguished; this state then describes both
// pieces. It may remove what no longer matters from both. Not thread-safe: guarded by the storage's lock.
#pragma once

#include <base/rare.h>
#include <base/recycled_arrays.h>

#include <algorithm>
#include <cassert>
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
        if (!is_split())
            move_only_piece_to_leaf();
        const Place first = split(range.begin);
        if (range.end != size_)
            split_behind(first, range.end);
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
        const uint64_t last_offset = ranges.back().end - (ranges.back().empty() ? 0 : 1);
        const Place last = ranges.size() == 1 ? search_behind(first, last_offset) : search(last_offset);
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
        const uint32_t last = leaf_count() - 1;
        merge({0, 0}, {last, static_cast<uint32_t>(leaf(last).size()) - 1});
    }

    // Checks that pieces begin at 0, are in order, are not empty and end within the size, that leaves are neither empty nor too large, and
    // that the remembered place is right.
    [[nodiscard]] bool validate() const {
        if (!tree_)
            return !is_split();
        const Tree& tree = *tree_;
        if (tree.leaf_begins.size() != tree.leaves.size() || tree.leaves.size() == 1 ||
            (has_leaves() && tree.first.size() != 0))
            return false;
        if (!is_split())
            return tree.leaves.empty() && tree.first.size() == 0;
        size_t count = 0;
        uint64_t end = 0;  // the next piece must not begin before this
        for (uint32_t i = 0; i < leaf_count(); ++i) {
            const Leaf& each = leaf(i);
            if (each.size() == 0 || each.size() > leaf_pieces || each.states.size() != each.size() ||
                (has_leaves() && tree.leaf_begins[i] != each.begins.front()))
                return false;
            for (const uint64_t begin : each.begins) {
                if (count++ == 0 ? begin != 0 : begin < end)
                    return false;
                end = begin + 1;
            }
        }
        return count == pieces_ && end <= size_ &&
               (tree.known_offset == unknown || search(tree.known_offset) == tree.known);
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
        uint32_t leaf = 0;
        uint32_t index = 0;
        friend bool operator==(const Place&, const Place&) = default;
    };
    static constexpr uint64_t unknown = ~uint64_t{0};  // no offset
    // The pieces of a map that has, or has had, several.
    struct Tree final : Recycled<Tree> {
        Leaf first;  // all pieces, unless there are several leaves
        std::vector<Leaf> leaves;
        std::vector<uint64_t> leaf_begins;
        // The last offset that `find` searched, and its place; also the place from which the next search begins.
        uint64_t known_offset = unknown;
        Place known;
    };

    [[nodiscard]] bool has_leaves() const { return !tree_->leaf_begins.empty(); }
    [[nodiscard]] uint32_t leaf_count() const {
        return has_leaves() ? static_cast<uint32_t>(tree_->leaf_begins.size()) : 1;
    }
    [[nodiscard]] const Leaf& leaf(size_t number) const { return has_leaves() ? tree_->leaves[number] : tree_->first; }
    [[nodiscard]] Leaf& leaf(size_t number) { return has_leaves() ? tree_->leaves[number] : tree_->first; }
    [[nodiscard]] uint64_t end_of_leaf(size_t number) const {
        return number + 1 < tree_->leaf_begins.size() ? tree_->leaf_begins[number + 1] : size_;
    }
    [[nodiscard]] Place before(Place at) const {
        if (at.index != 0)
            return {at.leaf, at.index - 1};
        return at.leaf != 0 ? Place{at.leaf - 1, static_cast<uint32_t>(leaf(at.leaf - 1).size()) - 1} : at;
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
    [[nodiscard]] static uint32_t last_not_above(const Array& begins, uint64_t offset) {
        const uint64_t* first = begins.data();
        for (size_t count = begins.size(); count > 1;) {
            const size_t half = count / 2;
            first = first[half] <= offset ? first + half : first;
            count -= half;
        }
        return static_cast<uint32_t>(first - begins.data());
    }

    // For maps with several pieces: finds the piece that contains `offset`, and remembers it.
    [[nodiscard]] Place find(uint64_t offset) const {
        Tree& tree = *tree_;
        if (tree.known_offset != offset) {
            tree.known = search(offset);
            tree.known_offset = offset;
        }
        return tree.known;
    }
    // Must be called when pieces at or before the remembered place are inserted or removed.
    void forget_place() noexcept { tree_->known_offset = unknown; }

    // The same without remembering it.
    [[nodiscard]] Place search(uint64_t offset) const {
        const Tree& tree = *tree_;
        if (!has_leaves()) [[likely]]
            return {0, search_in(tree.first, size_, offset)};
        uint32_t number = tree.known.leaf;
        if (number >= leaf_count() || offset < tree.leaf_begins[number] || offset >= end_of_leaf(number))
            number = last_not_above(tree.leaf_begins, offset);
        return {number, search_in(tree.leaves[number], end_of_leaf(number), offset)};
    }
    // The index of the piece of a leaf that contains `offset`. The pieces of the leaf contain `offset` and end at `end`. Tries the
    // remembered place and the next one first, because programs use the parts of a buffer one after the other.
    [[nodiscard]] uint32_t search_in(const Leaf& pieces, uint64_t end, uint64_t offset) const {
        const Begins& begins = pieces.begins;
        if (begins.size() > few_pieces)
            for (uint32_t near = tree_->known.index; near < begins.size() && near < tree_->known.index + 2; ++near)
                if (begins[near] <= offset && offset < (near + 1 < begins.size() ? begins[near + 1] : end))
                    return near;
        return last_not_above(begins, offset);
    }
    // The piece that contains `offset`, which is not before the piece `at`.
    [[nodiscard]] Place search_behind(Place at, uint64_t offset) const {
        const Begins& begins = leaf(at.leaf).begins;
        uint32_t index = at.index;
        while (index + 1 < begins.size() && begins[index + 1] <= offset)
            ++index;
        const bool is_in_leaf = index + 1 < begins.size() || end_of_leaf(at.leaf) > offset;
        return is_in_leaf ? Place{at.leaf, index} : search(offset);
    }

    void move_only_piece_to_leaf() {
        if (!tree_)
            tree_.reset(new Tree);
        Leaf& first = tree_->first;
        static_assert(few_pieces >= 3, "the most pieces that one range makes of one");
        first.begins.reserve(few_pieces);
        first.states.reserve(few_pieces);
        first.begins.push_back(0);
        first.states.push_back(std::move(only_));
        tree_->known_offset = 0;
        tree_->known = {};
        pieces_ = 1;
    }

    // Makes a piece begin at `offset`, which is less than the size, and remembers its place.
    Place split(uint64_t offset) {
        const Place at = find(offset);
        if (leaf(at.leaf).begins[at.index] != offset) {
            tree_->known = insert(at, offset);
            tree_->known_offset = offset;
        }
        return tree_->known;
    }
    // The same for an offset in the remembered piece `at` or behind it, whose place stays the remembered one.
    void split_behind(Place at, uint64_t offset) {
        at = search_behind(at, offset);
        if (leaf(at.leaf).begins[at.index] != offset)
            insert(at, offset);
    }

    // Splits the piece `at` at `offset`, which it contains and where it does not begin. Returns the place of the new piece.
    Place insert(Place at, uint64_t offset) {
        if (leaf(at.leaf).size() == leaf_pieces) [[unlikely]] {
            halve(at.leaf);
            at = search(offset);
        }
        Leaf& pieces = leaf(at.leaf);
        State right = pieces.states[at.index];
        if (pieces.begins.size() == pieces.begins.capacity())
            pieces.begins.reserve(2 * pieces.begins.size());  // so that the second insertion cannot fail
        const auto next = static_cast<ptrdiff_t>(at.index) + 1;
        pieces.states.insert(pieces.states.begin() + next, std::move(right));
        pieces.begins.insert(pieces.begins.begin() + next, offset);
        ++pieces_;
        return {at.leaf, at.index + 1};
    }

    // Halves a full leaf. In maps with several leaves, each leaf has capacity for the maximal number of pieces.
    void halve(size_t number) {
        constexpr auto half = static_cast<ptrdiff_t>(leaf_pieces / 2);
        Tree& tree = *tree_;
        Leaf upper;
        upper.begins.reserve(leaf_pieces);
        upper.states.reserve(leaf_pieces);
        leaf(number).begins.reserve(leaf_pieces);
        leaf(number).states.reserve(leaf_pieces);
        const size_t needed = leaf_count() + 1;
        if (tree.leaves.capacity() < needed)
            tree.leaves.reserve(2 * needed);
        if (tree.leaf_begins.capacity() < needed)
            tree.leaf_begins.reserve(2 * needed);
        // From here on nothing fails.
        forget_place();
        if (tree.leaves.empty()) {
            tree.leaves.push_back(std::exchange(tree.first, Leaf{}));
            tree.leaf_begins.push_back(0);
        }
        Leaf& lower = tree.leaves[number];
        upper.begins.assign(lower.begins.begin() + half, lower.begins.end());
        upper.states.assign(std::move_iterator{lower.states.begin() + half}, std::move_iterator{lower.states.end()});
        lower.begins.erase(lower.begins.begin() + half, lower.begins.end());
        lower.states.erase(lower.states.begin() + half, lower.states.end());
        const auto behind = static_cast<ptrdiff_t>(number) + 1;
        tree.leaf_begins.insert(tree.leaf_begins.begin() + behind, upper.begins.front());
        tree.leaves.insert(tree.leaves.begin() + behind, std::move(upper));
    }

    // Merges equal neighbours among the pieces from `first` to `last`.
    void merge(Place first, Place last) noexcept {
        State* kept = &leaf(first.leaf).states[first.index];
        if (!has_leaves()) [[likely]] {
            merge_in(tree_->first, first.index + 1, last.index + 1, kept);
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
        forget_place();
        const auto from = static_cast<ptrdiff_t>(next);
        const auto to = static_cast<ptrdiff_t>(end);
        pieces.begins.erase(pieces.begins.begin() + from, pieces.begins.begin() + to);
        pieces.states.erase(pieces.states.begin() + from, pieces.states.begin() + to);
        pieces_ -= end - next;
        return true;
    }

    // Called after pieces of the leaves `first` to `last` were removed: removes empty leaves, and joins neighbours with few pieces.
    void mend_leaves(size_t first, size_t last) noexcept {
        std::vector<Leaf>& leaves = tree_->leaves;
        std::vector<uint64_t>& leaf_begins = tree_->leaf_begins;
        size_t kept = first > 0 ? first - 1 : 0;  // the leaf that the next one may be joined to
        const size_t past = std::min(last + 2, leaves.size());
        for (size_t number = kept + 1; number < past; ++number) {
            Leaf& next = leaves[number];
            if (leaves[kept].size() + next.size() <= leaf_pieces / 2) {
                append(leaves[kept], next);
            } else if (next.size() != 0 && ++kept != number) {
                leaves[kept] = std::move(next);
            }
        }
        const auto from = static_cast<ptrdiff_t>(kept) + 1;
        leaves.erase(leaves.begin() + from, leaves.begin() + static_cast<ptrdiff_t>(past));
        leaf_begins.erase(leaf_begins.begin() + from, leaf_begins.begin() + static_cast<ptrdiff_t>(past));
        for (size_t number = first > 0 ? first - 1 : 0; number <= kept; ++number)
            leaf_begins[number] = leaves[number].begins.front();
        if (leaves.size() != 1)
            return;
        tree_->first = std::move(leaves.front());
        leaves.clear();
        leaf_begins.clear();
    }

    // Moves all pieces of `from` to the end of `to`, which has the capacity for them.
    static void append(Leaf& to, Leaf& from) noexcept {
        to.begins.insert(to.begins.end(), from.begins.begin(), from.begins.end());
        to.states.insert(to.states.end(), std::move_iterator{from.states.begin()},
                         std::move_iterator{from.states.end()});
    }

    // When one piece is left, stores it in the map itself. The tree keeps its memory, because the map is likely to be split again.
    void keep_only_piece_inside() noexcept {
        if (pieces_ != 1)
            return;
        Leaf& first = tree_->first;
        only_ = std::move(first.states.front());
        first.begins.clear();
        first.states.clear();
        pieces_ = 0;
    }

    uint64_t size_;
    State only_;  // the state of the only piece; valid while pieces_ is 0
    // The number of pieces in the tree. 0: the map has one piece, whose state is only_.
    size_t pieces_ = 0;
    Rare<Tree> tree_;  // null until the map first has several pieces
};

}  // namespace polder::memory
