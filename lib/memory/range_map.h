// RangeMap: a state for every byte of [0, size), kept as few pieces as there are different states.
//
// A sorted vector of pieces: finding one is a binary search, splitting and merging move what follows. Most maps
// have one piece, and then nothing is searched or allocated. Updating many ranges at once costs one pass
// over the pieces (rectangles have thousands of rows).
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
    RangeMap(ByteCount size, State initial) : size_(size.value) {
        assert(size_ > 0);
        pieces_.push_back({0, std::move(initial)});
    }

    [[nodiscard]] ByteCount size() const { return ByteCount{size_}; }
    [[nodiscard]] size_t pieces() const { return pieces_.size(); }

    // Calls f(ByteRange, const State&) for every piece that overlaps `range`, clipped to it, in order.
    template <class F>
    void visit(ByteRange range, F&& f) const {
        assert(range.end <= size_);
        for (size_t i = find(range.begin); i < pieces_.size() && pieces_[i].begin < range.end; ++i)
            f(range_of(i).intersect(range), pieces_[i].state);
    }

    // Calls f(ByteRange, State&) for every piece of `range`, split so that nothing outside it changes, then merges
    // what became equal.
    template <class F>
    void update(ByteRange range, F&& f) {
        assert(range.end <= size_);
        if (range.empty())
            return;
        const size_t first = split(range.begin);
        const size_t past = range.end == end_of(first) ? first + 1 : boundary(range.end);
        for (size_t i = first; i < past; ++i)
            f(range_of(i), pieces_[i].state);
        if (pieces_.size() > 1)
            merge(first > 0 ? first - 1 : 0, std::min(past + 1, pieces_.size()));
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
        for (size_t i = 0; i < pieces_.size(); ++i)
            f(range_of(i), pieces_[i].state);
        merge(0, pieces_.size());
    }

    // Pieces begin at 0, are in order, not empty, and end within the size.
    [[nodiscard]] bool validate() const {
        if (pieces_.empty() || pieces_.front().begin != 0)
            return false;
        for (size_t i = 1; i < pieces_.size(); ++i)
            if (pieces_[i - 1].begin >= pieces_[i].begin)
                return false;
        return pieces_.back().begin < size_;
    }

private:
    static constexpr size_t few_ranges = 4;
    struct Piece {
        uint64_t begin;
        State state;
    };

    [[nodiscard]] uint64_t end_of(size_t index) const {
        return index + 1 < pieces_.size() ? pieces_[index + 1].begin : size_;
    }
    [[nodiscard]] ByteRange range_of(size_t index) const { return {pieces_[index].begin, end_of(index)}; }

    // The piece that contains `offset`.
    [[nodiscard]] size_t find(uint64_t offset) const {
        if (pieces_.size() == 1)
            return 0;
        const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                            [](uint64_t at, const Piece& piece) { return at < piece.begin; });
        return static_cast<size_t>(after - pieces_.begin()) - 1;
    }

    // Makes a piece begin at `offset`, which is within the size, and answers its index.
    size_t split(uint64_t offset) {
        const size_t index = find(offset);
        if (pieces_[index].begin == offset)
            return index;
        Piece right{offset, pieces_[index].state};
        pieces_.insert(pieces_.begin() + static_cast<ptrdiff_t>(index) + 1, std::move(right));
        return index + 1;
    }

    // Like split, but `offset` may be the size.
    size_t boundary(uint64_t offset) { return offset == size_ ? pieces_.size() : split(offset); }

    // Merges equal neighbours among the pieces [first, past).
    void merge(size_t first, size_t past) {
        size_t kept = first;
        for (size_t i = first + 1; i < past; ++i) {
            if (pieces_[kept].state.absorb(pieces_[i].state))
                continue;
            if (++kept != i)
                pieces_[kept] = std::move(pieces_[i]);
        }
        if (kept + 1 < past)
            pieces_.erase(pieces_.begin() + static_cast<ptrdiff_t>(kept) + 1,
                          pieces_.begin() + static_cast<ptrdiff_t>(past));
    }

    template <class F>
    void rebuild(std::span<const ByteRange> ranges, F&& f) {
        std::vector<Piece> result;
        result.reserve(pieces_.size() + 2 * ranges.size());
        const auto emit = [&](uint64_t begin, State state) {
            if (result.empty() || !result.back().state.absorb(state))
                result.push_back({begin, std::move(state)});
        };
        size_t next = 0;
        for (size_t i = 0; i < pieces_.size(); ++i) {
            const ByteRange piece = range_of(i);
            for (uint64_t at = piece.begin; at < piece.end;) {
                while (next < ranges.size() && ranges[next].end <= at)
                    ++next;
                const bool inside = next < ranges.size() && ranges[next].begin <= at;
                const uint64_t until = next == ranges.size()
                                           ? piece.end
                                           : std::min(piece.end, inside ? ranges[next].end : ranges[next].begin);
                State state = pieces_[i].state;
                if (inside)
                    f(ByteRange{at, until}, state);
                emit(at, std::move(state));
                at = until;
            }
        }
        pieces_ = std::move(result);
    }

    uint64_t size_;
    std::vector<Piece> pieces_;
};

} // namespace polder::memory
