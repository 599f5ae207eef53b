// RangeMap: a state for every byte of [0, size), kept as few pieces as there are different states.
//
// Pieces are sorted. Where they begin is an array of its own, so that a binary search in thousands of pieces reads few cache lines;
// splitting and merging move what follows. The piece that was found last is tried first: a command finds its piece several times.
// Most maps have one piece, which is stored in the map itself: then nothing is searched or allocated. Many ranges (the rows of
// a rectangle) are prepared in one pass over the pieces.
//
// A change has three steps, so that nothing can fail after a device operation was submitted:
//   prepare  splits the pieces at the ends of the ranges; may throw std::bad_alloc, no byte's state changes
//   apply    changes the states of prepared ranges; noexcept, keeps the pieces apart
//   merge    joins equal neighbours; noexcept
//
// `State` offers `bool absorb(State& next)`: true when the two are equal for every purpose; this state then describes both
// pieces. It may forget what no longer matters in either. Not thread-safe; the owner of the storage's lock calls it.
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
    [[nodiscard]] size_t pieces() const { return begins_.empty() ? 1 : begins_.size(); }

    // False when the one piece is stored in the map itself: there is nothing to merge.
    [[nodiscard]] bool is_split() const { return !begins_.empty(); }
    // The one state of all bytes; null when there are several pieces.
    [[nodiscard]] const State* only() const { return begins_.empty() ? &only_ : nullptr; }
    // Likewise, to be changed, if `range` is all there is.
    [[nodiscard]] State* only(ByteRange range) { return begins_.empty() && range.size() == size_ ? &only_ : nullptr; }

    // Calls f(ByteRange, const State&) for every piece that overlaps `range`, clipped to it, in order.
    template <class F>
    void visit(ByteRange range, F&& f) const {
        assert(range.end <= size_);
        if (begins_.empty()) [[likely]] {
            if (!range.empty())
                f(range, only_);
            return;
        }
        for (size_t i = find(range.begin); i < begins_.size() && begins_[i] < range.end; ++i)
            f(range_of(i).intersect(range), states_[i]);
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
        if (range.empty() || (begins_.empty() && range.size() == size_)) [[likely]]
            return;
        if (begins_.empty()) {
            static_assert(few_pieces >= 3, "the most pieces that one range makes of one");
            begins_.reserve(few_pieces);
            states_.reserve(few_pieces);
            begins_.push_back(0);
            states_.push_back(std::move(only_));
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
        if (begins_.empty()) [[likely]] {
            assert(range.size() == size_);
            f(range, only_);
            return;
        }
        size_t i = find(range.begin);
        assert(begins_[i] == range.begin);
        for (; i < begins_.size() && begins_[i] < range.end; ++i) {
            assert(end_of(i) <= range.end);
            f(range_of(i), states_[i]);
        }
    }
    template <class F>
    void apply(std::span<const ByteRange> ranges, F&& f) {
        for (const ByteRange& range : ranges)
            apply(range, f);
    }

    // Merges equal neighbours from the one before the first range to the one after the last.
    void merge(std::span<const ByteRange> ranges) noexcept {
        if (begins_.empty() || ranges.empty()) [[likely]]
            return;
        const size_t first = find(ranges.front().begin);
        const size_t last = find(ranges.back().end - (ranges.back().empty() ? 0 : 1));
        merge(first > 0 ? first - 1 : 0, std::min(last + 2, begins_.size()));
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
        if (begins_.empty()) {
            f(ByteRange{0, size_}, only_);
            return;
        }
        for (size_t i = 0; i < begins_.size(); ++i)
            f(range_of(i), states_[i]);
        merge(0, begins_.size());
    }

    // Pieces begin at 0, are in order, not empty, and end within the size.
    [[nodiscard]] bool validate() const {
        if (begins_.size() != states_.size())
            return false;
        if (begins_.empty())
            return true;
        return begins_.front() == 0 && begins_.back() < size_ &&
               std::ranges::adjacent_find(begins_, std::ranges::greater_equal{}) == begins_.end();
    }

private:
    static constexpr size_t few_ranges = 4;
    // Most maps that have several pieces have few, and not for long: their arrays use the memory of other maps.
    static constexpr size_t few_pieces = 4;
    using Begins = std::vector<uint64_t, RecycledArrays<uint64_t, few_pieces>>;
    using States = std::vector<State, RecycledArrays<State, few_pieces>>;

    [[nodiscard]] uint64_t end_of(size_t index) const {
        return index + 1 < begins_.size() ? begins_[index + 1] : size_;
    }
    [[nodiscard]] ByteRange range_of(size_t index) const { return {begins_[index], end_of(index)}; }

    // The piece that contains `offset`; of several.
    [[nodiscard]] size_t find(uint64_t offset) const {
        for (size_t near = last_found_; near < begins_.size() && near < last_found_ + 2; ++near)
            if (begins_[near] <= offset && offset < end_of(near))
                return near;
        // Without branches that depend on the offset.
        const uint64_t* first = begins_.data();
        for (size_t count = begins_.size(); count > 1;) {
            const size_t half = count / 2;
            first = first[half] <= offset ? first + half : first;
            count -= half;
        }
        return last_found_ = static_cast<size_t>(first - begins_.data());
    }

    // Makes a piece begin at `offset`, which is less than the size.
    void split(uint64_t offset) {
        const size_t index = find(offset);
        if (begins_[index] == offset)
            return;
        State right = states_[index];
        if (begins_.size() == begins_.capacity())
            begins_.reserve(2 * begins_.size());  // so that the second insertion cannot fail
        states_.insert(states_.begin() + static_cast<ptrdiff_t>(index) + 1, std::move(right));
        begins_.insert(begins_.begin() + static_cast<ptrdiff_t>(index) + 1, offset);
    }

    // Merges equal neighbours among the pieces [first, past).
    void merge(size_t first, size_t past) noexcept {
        size_t kept = first;
        for (size_t i = first + 1; i < past; ++i) {
            if (states_[kept].absorb(states_[i]))
                continue;
            if (++kept != i) {
                begins_[kept] = begins_[i];
                states_[kept] = std::move(states_[i]);
            }
        }
        if (kept + 1 < past) {
            const auto from = static_cast<ptrdiff_t>(kept) + 1;
            const auto to = static_cast<ptrdiff_t>(past);
            begins_.erase(begins_.begin() + from, begins_.begin() + to);
            states_.erase(states_.begin() + from, states_.begin() + to);
        }
        keep_only_piece_inside();
    }

    // The arrays keep their memory: a map that was split once is likely to be split again.
    void keep_only_piece_inside() noexcept {
        if (begins_.size() != 1)
            return;
        only_ = std::move(states_.front());
        begins_.clear();
        states_.clear();
    }

    // Splits at the ends of many ranges in one pass.
    void split_all(std::span<const ByteRange> ranges) {
        const size_t pieces = this->pieces();
        Begins begins;
        States states;
        begins.reserve(pieces + 2 * ranges.size());
        states.reserve(pieces + 2 * ranges.size());
        size_t next = 0;  // the first range that does not end before the piece
        for (size_t i = 0; i < pieces; ++i) {
            const ByteRange piece = begins_.empty() ? ByteRange{0, size_} : range_of(i);
            const State& state = begins_.empty() ? only_ : states_[i];
            const auto add = [&](uint64_t begin) {
                begins.push_back(begin);
                states.push_back(state);
            };
            add(piece.begin);
            const auto cut = [&](uint64_t at) {
                if (at > begins.back() && at < piece.end)
                    add(at);
            };
            for (; next < ranges.size() && ranges[next].begin < piece.end; ++next) {
                cut(ranges[next].begin);
                cut(ranges[next].end);
                if (ranges[next].end > piece.end)
                    break;  // also ends a later piece
            }
        }
        begins_ = std::move(begins);
        states_ = std::move(states);
    }

    uint64_t size_;
    mutable size_t last_found_ = 0;
    State only_;  // valid while there are no others
    // Several pieces; one while it is being split.
    Begins begins_;
    States states_;
};

}  // namespace polder::memory
