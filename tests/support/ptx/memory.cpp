#include "memory.h"

#include <algorithm>

namespace polder::ptx {

std::vector<Range> merged(std::vector<Range> ranges) {
    std::ranges::sort(ranges, {}, &Range::begin);
    std::vector<Range> made;
    for (const Range& range : ranges) {
        if (range.begin == range.end)
            continue;
        if (!made.empty() && made.back().end >= range.begin && made.back().is_writable == range.is_writable)
            made.back().end = std::max(made.back().end, range.end);
        else
            made.push_back(range);
    }
    return made;
}

const Range* find(std::span<const Range> ranges, uint64_t address, uint64_t bytes) {
    const auto above = std::ranges::upper_bound(ranges, address, {}, &Range::begin);
    if (above == ranges.begin())
        return nullptr;
    const Range& range = *std::prev(above);
    return address < range.end && range.end - address >= bytes ? &range : nullptr;
}

}  // namespace polder::ptx
