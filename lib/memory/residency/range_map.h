// RangeMap: a state for every byte of [0, size), kept as few pieces as there are different states.
//
// A sorted array of pieces: finding one is a binary search, splitting and merging move what follows. Most maps
// have one piece, which stands in the map itself: then nothing is searched or allocated. Updating many ranges at
// once costs one pass over the pieces (rectangles have thousands of rows).
//
// `State` offers `bool absorb(const State& next)`: true when the two are equal for every purpose; then this one now
// stands for both. Not thread-safe; guarded by the domain's lock. Nothing fails but for std::bad_alloc.
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

    // Calls f(ByteRange, State&) for every piece of `range`, split so that nothing outside it changes, then merges
    // what became equal.
    template <class F>
    void update(ByteRange range, F&& f) {
        assert(range.end <= size_);
        if (range.empty())
            return;
        if (many_.empty()) {
            if (range.size() == size_) [[likely]] {
                f(range, only_.state);
                return;
            }
            many_.reserve(3);  // what one update makes of one piece
            many_.push_back(std::move(only_));
        }
        const size_t first = split(range.begin);
        const size_t past = range.end == end_of(first) ? first + 1 : boundary(range.end);
        for (size_t i = first; i < past; ++i)
            f(range_of(i), many_[i].state);
        merge(first > 0 ? first - 1 : 0, std::min(past + 1, many_.size()));
    }

    // The same for many ranges, sorted and disjoint.
    template <class F>
    void update(std::span<const ByteRange> ranges, F&& f) {
        if (ranges.size() <= few_ranges) {
            for (const ByteRange& range : ranges)
                update(range, f);
            return;
        }
        rebuild(ranges, f);
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

    // Makes a piece begin at `offset`, which is within the size, and answers its index.
    size_t split(uint64_t offset) {
        const size_t index = find(offset);
        if (many_[index].begin == offset)
            return index;
        Piece right{offset, many_[index].state};
        many_.insert(many_.begin() + static_cast<ptrdiff_t>(index) + 1, std::move(right));
        return index + 1;
    }

    // Like split, but `offset` may be the size.
    size_t boundary(uint64_t offset) { return offset == size_ ? many_.size() : split(offset); }

    // Merges equal neighbours among the pieces [first, past).
    void merge(size_t first, size_t past) {
        size_t kept = first;
        for (size_t i = first + 1; i < past; ++i) {
            if (many_[kept].state.absorb(many_[i].state))
                continue;
            if (++kept != i)
                many_[kept] = std::move(many_[i]);
        }
        if (kept + 1 < past)
            many_.erase(many_.begin() + static_cast<ptrdiff_t>(kept) + 1, many_.begin() + static_cast<ptrdiff_t>(past));
        take_out_the_only_one();
    }

    // The array keeps its memory: a map that was split once will be again.
    void take_out_the_only_one() {
        if (many_.size() != 1)
            return;
        only_ = std::move(many_.front());
        many_.clear();
    }

    template <class F>
    void rebuild(std::span<const ByteRange> ranges, F&& f) {
        if (many_.empty())
            many_.push_back(std::move(only_));
        std::vector<Piece> result;
        result.reserve(many_.size() + 2 * ranges.size());
        const auto emit = [&](uint64_t begin, State state) {
            if (result.empty() || !result.back().state.absorb(state))
                result.push_back({begin, std::move(state)});
        };
        size_t next = 0;
        for (size_t i = 0; i < many_.size(); ++i) {
            const ByteRange piece = range_of(i);
            for (uint64_t at = piece.begin; at < piece.end;) {
                while (next < ranges.size() && ranges[next].end <= at)
                    ++next;
                const bool inside = next < ranges.size() && ranges[next].begin <= at;
                const uint64_t until = next == ranges.size()
                                           ? piece.end
                                           : std::min(piece.end, inside ? ranges[next].end : ranges[next].begin);
                State state = many_[i].state;
                if (inside)
                    f(ByteRange{at, until}, state);
                emit(at, std::move(state));
                at = until;
            }
        }
        many_ = std::move(result);
        take_out_the_only_one();
    }

    uint64_t size_;
    Piece only_;               // valid while many_ is empty
    std::vector<Piece> many_;  // several; one only when splitting it ran out of memory
};

} // namespace polder::memory
