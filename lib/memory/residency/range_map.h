// RangeMap: a state for every byte of [0, size), kept as few pieces as there are different states.
//
// A sorted array of pieces: finding one is a binary search, splitting and merging move what follows. Most maps
// have one piece, which is stored in the map itself: then nothing is searched or allocated. Many ranges (the rows of a
// rectangle) are prepared in one pass over the pieces.
//
// A change has three steps, so that nothing can fail after a device operation was submitted:
//   prepare  splits the pieces at the ends of the ranges; may throw std::bad_alloc, no byte's state changes
//   apply    changes the states of prepared ranges; noexcept, keeps the pieces apart
//   merge    joins equal neighbours; noexcept
//
// `State` offers `bool absorb(const State& next)`: true when the two are equal for every purpose; this state then
// describes both pieces. Not thread-safe; the owner of the storage's lock calls it.
#pragma once

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
    RangeMap(ByteCount size, State initial) : size_(size.value), only_{0, std::move(initial)} { assert(size_ > 0); }

    [[nodiscard]] ByteCount size() const { return ByteCount{size_}; }
    [[nodiscard]] size_t pieces() const { return many_.empty() ? 1 : many_.size(); }

    // False when the one piece is stored in the map itself: there is nothing to merge.
    [[nodiscard]] bool is_split() const { return !many_.empty(); }
    // The one state of all bytes; null when there are several pieces.
    [[nodiscard]] const State* only() const { return many_.empty() ? &only_.state : nullptr; }
    // Likewise, to be changed, if `range` is all there is.
    [[nodiscard]] State* only(ByteRange range) {
        return many_.empty() && range.size() == size_ ? &only_.state : nullptr;
    }

    // Calls f(ByteRange, const State&) for every piece that overlaps `range`, clipped to it, in order.
    template <class F>
    void visit(ByteRange range, F&& f) const {
        assert(range.end <= size_);
        if (many_.empty()) [[likely]] {
            if (!range.empty())
                f(range, only_.state);
            return;
        }
        for (size_t i = find(range.begin); i < many_.size() && many_[i].begin < range.end; ++i)
            f(range_of(i).intersect(range), many_[i].state);
    }

    // Splits the pieces so that one begins and one ends where each of `ranges` does. The ranges are sorted and disjoint.
    void prepare(std::span<const ByteRange> ranges) {
        if (ranges.size() > few_ranges) {
            split_all(ranges);
            return;
        }
        for (const ByteRange& range : ranges)
            prepare(range);
    }
    void prepare(ByteRange range) {
        assert(range.end <= size_);
        if (range.empty() || (many_.empty() && range.size() == size_)) [[likely]]
            return;
        if (many_.empty()) {
            many_.reserve(3);  // the most pieces that one range makes of one
            many_.push_back(std::move(only_));
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
        if (many_.empty()) [[likely]] {
            assert(range.size() == size_);
            f(range, only_.state);
            return;
        }
        size_t i = find(range.begin);
        assert(many_[i].begin == range.begin);
        for (; i < many_.size() && many_[i].begin < range.end; ++i) {
            assert(end_of(i) <= range.end);
            f(range_of(i), many_[i].state);
        }
    }
    template <class F>
    void apply(std::span<const ByteRange> ranges, F&& f) {
        for (const ByteRange& range : ranges)
            apply(range, f);
    }

    // Merges equal neighbours from the one before the first range to the one after the last.
    void merge(std::span<const ByteRange> ranges) noexcept {
        if (many_.empty() || ranges.empty()) [[likely]]
            return;
        const size_t first = find(ranges.front().begin);
        const size_t last = find(ranges.back().end - (ranges.back().empty() ? 0 : 1));
        merge(first > 0 ? first - 1 : 0, std::min(last + 2, many_.size()));
    }

    // All three steps.
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

    // Calls f(ByteRange, State&) for every piece and merges what became equal.
    template <class F>
    void sweep(F&& f) {
        if (many_.empty()) {
            f(ByteRange{0, size_}, only_.state);
            return;
        }
        for (size_t i = 0; i < many_.size(); ++i)
            f(range_of(i), many_[i].state);
        merge(0, many_.size());
    }

    // Pieces begin at 0, are in order, not empty, and end within the size.
    [[nodiscard]] bool validate() const {
        if (many_.empty())
            return only_.begin == 0;
        if (many_.front().begin != 0)
            return false;
        for (size_t i = 1; i < many_.size(); ++i)
            if (many_[i - 1].begin >= many_[i].begin)
                return false;
        return many_.back().begin < size_;
    }

private:
    static constexpr size_t few_ranges = 4;
    struct Piece {
        uint64_t begin;
        State state;
    };

    [[nodiscard]] uint64_t end_of(size_t index) const {
        return index + 1 < many_.size() ? many_[index + 1].begin : size_;
    }
    [[nodiscard]] ByteRange range_of(size_t index) const { return {many_[index].begin, end_of(index)}; }

    // The piece that contains `offset`; of several.
    [[nodiscard]] size_t find(uint64_t offset) const {
        const auto after = std::upper_bound(many_.begin(), many_.end(), offset,
                                            [](uint64_t at, const Piece& piece) { return at < piece.begin; });
        return static_cast<size_t>(after - many_.begin()) - 1;
    }

    // Makes a piece begin at `offset`, which is less than the size.
    void split(uint64_t offset) {
        const size_t index = find(offset);
        if (many_[index].begin == offset)
            return;
        Piece right{offset, many_[index].state};
        many_.insert(many_.begin() + static_cast<ptrdiff_t>(index) + 1, std::move(right));
    }

    // Merges equal neighbours among the pieces [first, past).
    void merge(size_t first, size_t past) noexcept {
        size_t kept = first;
        for (size_t i = first + 1; i < past; ++i) {
            if (many_[kept].state.absorb(many_[i].state))
                continue;
            if (++kept != i)
                many_[kept] = std::move(many_[i]);
        }
        if (kept + 1 < past)
            many_.erase(many_.begin() + static_cast<ptrdiff_t>(kept) + 1, many_.begin() + static_cast<ptrdiff_t>(past));
        keep_only_piece_inside();
    }

    // The array keeps its memory: a map that was split once is likely to be split again.
    void keep_only_piece_inside() noexcept {
        if (many_.size() != 1)
            return;
        only_ = std::move(many_.front());
        many_.clear();
    }

    // Splits at the ends of many ranges in one pass.
    void split_all(std::span<const ByteRange> ranges) {
        const size_t pieces = many_.empty() ? 1 : many_.size();
        std::vector<Piece> result;
        result.reserve(pieces + 2 * ranges.size());
        size_t next = 0;  // the first range that does not end before the piece
        for (size_t i = 0; i < pieces; ++i) {
            const Piece& piece = many_.empty() ? only_ : many_[i];
            const uint64_t end = many_.empty() ? size_ : end_of(i);
            result.push_back(piece);
            const auto cut = [&](uint64_t at) {
                if (at > result.back().begin && at < end)
                    result.push_back({at, piece.state});
            };
            for (; next < ranges.size() && ranges[next].begin < end; ++next) {
                cut(ranges[next].begin);
                cut(ranges[next].end);
                if (ranges[next].end > end)
                    break;  // also ends a later piece
            }
        }
        many_ = std::move(result);
    }

    uint64_t size_;
    Piece only_;  // valid while many_ is empty
    std::vector<Piece> many_;  // several pieces; one while it is being split
};

}  // namespace polder::memory
