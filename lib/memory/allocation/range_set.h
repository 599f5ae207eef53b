// A set of bytes, kept as disjoint ranges that do not touch. O(log n) in the number of ranges, plus those removed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <polder/types.h>

namespace polder::memory {

class RangeSet {
public:
    [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }

    // Calls visitor(ByteRange) for each part of `range` that is not in the set, in ascending order.
    template <class Visitor>
    void for_each_missing(ByteRange range, Visitor&& visitor) const {
        uint64_t begin = range.begin;
        auto next = ends_by_begin_.upper_bound(range.begin);
        if (next != ends_by_begin_.begin())
            begin = std::max(begin, std::prev(next)->second);
        for (; next != ends_by_begin_.end() && next->first < range.end; ++next) {
            visitor(ByteRange{begin, next->first});
            begin = next->second;
        }
        if (begin < range.end)
            visitor(ByteRange{begin, range.end});
    }

    void insert(ByteRange range) {
        if (range.empty())
            return;
        ByteRange merged = range;
        auto next = first_touching(range);
        while (next != ends_by_begin_.end() && next->first <= range.end) {
            merged = {std::min(merged.begin, next->first), std::max(merged.end, next->second)};
            size_bytes_ -= next->second - next->first;
            next = ends_by_begin_.erase(next);
        }
        ends_by_begin_.emplace_hint(next, merged.begin, merged.end);
        size_bytes_ += merged.size();
    }

    // Returns how many of the bytes were in the set.
    uint64_t erase(ByteRange range) {
        uint64_t erased = 0;
        auto next = first_touching(range);
        while (next != ends_by_begin_.end() && next->first < range.end) {
            const ByteRange old{next->first, next->second};
            if (!old.overlaps(range)) {  // the two are only neighbours
                ++next;
                continue;
            }
            erased += old.intersect(range).size();
            next = ends_by_begin_.erase(next);
            if (old.begin < range.begin)
                ends_by_begin_.emplace_hint(next, old.begin, range.begin);
            if (old.end > range.end)
                next = ends_by_begin_.emplace_hint(next, range.end, old.end);
        }
        size_bytes_ -= erased;
        return erased;
    }

private:
    [[nodiscard]] std::map<uint64_t, uint64_t>::iterator first_touching(ByteRange range) {
        const auto after = ends_by_begin_.upper_bound(range.begin);
        if (after != ends_by_begin_.begin() && std::prev(after)->second >= range.begin)
            return std::prev(after);
        return after;
    }

    std::map<uint64_t, uint64_t> ends_by_begin_;
    uint64_t size_bytes_ = 0;
};

} // namespace polder::memory
