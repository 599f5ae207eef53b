// A plain model of a region allocator, for the property test and the fuzzer: the used ranges in a map.
// It drives a RegionAllocator with operations and aborts through `check` when the two disagree.
#pragma once

#include <bufalloc/region_allocator.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace polder::test {

class RegionModel {
public:
    explicit RegionModel(const RegionAllocator::Region& region) : region_(region), allocator_(region) {}

    // Each step returns whether allocator and model agree.
    [[nodiscard]] bool allocate(ByteCount size, Alignment alignment) {
        const bool possible = fits_somewhere(size, alignment);
        const auto block = allocator_.allocate(size, alignment);
        if (block.has_value() != possible)
            return false;
        return !block || record(*block, size, alignment);
    }
    [[nodiscard]] bool free_nth(size_t which) {
        if (live_.empty())
            return true;
        std::swap(live_[which % live_.size()], live_.back());
        used_.erase(live_.back().offset);
        allocator_.free(live_.back());
        live_.pop_back();
        return true;
    }
    [[nodiscard]] bool agrees() const {
        const auto statistics = allocator_.statistics();
        uint64_t free = 0, largest = 0, holes = 0;
        for_each_hole([&](ByteRange hole) {
            free += hole.size();
            largest = std::max(largest, hole.size());
            ++holes;
            return false;
        });
        return allocator_.validate() && statistics.free.value == free && statistics.largest_free.value == largest &&
               statistics.free_blocks == holes && statistics.used_blocks == live_.size() &&
               statistics.capacity.value == usable().size();
    }
    [[nodiscard]] size_t live() const { return live_.size(); }

private:
    [[nodiscard]] ByteRange usable() const {
        const uint64_t granularity = region_.granularity.value;
        const uint64_t first = (granularity - region_.base.value % granularity) % granularity;
        if (first >= region_.size.value)
            return {};
        return {first, first + (region_.size.value - first) / granularity * granularity};
    }
    [[nodiscard]] uint64_t rounded(ByteCount size) const {
        const uint64_t granularity = region_.granularity.value;
        const uint64_t bytes = std::max<uint64_t>(size.value, 1);
        return (bytes + granularity - 1) / granularity * granularity;
    }
    // Calls found(ByteRange) for each hole until it returns true.
    template <class Found>
    bool for_each_hole(Found&& found) const {
        uint64_t begin = usable().begin;
        for (const auto& [offset, size] : used_) {
            if (offset > begin && found(ByteRange{begin, offset}))
                return true;
            begin = offset + size;
        }
        return begin < usable().end && found(ByteRange{begin, usable().end});
    }
    [[nodiscard]] bool fits_somewhere(ByteCount size, Alignment alignment) const {
        if (size.value > usable().size())
            return false;
        const uint64_t bytes = rounded(size);
        return for_each_hole([&](ByteRange hole) {
            const uint64_t remainder = (region_.base.value + hole.begin) % alignment.value;
            const uint64_t padding = remainder == 0 ? 0 : alignment.value - remainder;
            return padding <= hole.size() && hole.size() - padding >= bytes;
        });
    }
    [[nodiscard]] bool record(const RegionAllocator::Block& block, ByteCount size, Alignment alignment) {
        const ByteRange range = block.range();
        const auto next = used_.lower_bound(range.begin);
        const bool apart = (next == used_.end() || next->first >= range.end) &&
                           (next == used_.begin() || std::prev(next)->first + std::prev(next)->second <= range.begin);
        live_.push_back(block);
        used_[range.begin] = range.size();
        return apart && usable().contains(range) && range.size() == rounded(size) &&
               (region_.base.value + range.begin) % alignment.value == 0;
    }

    RegionAllocator::Region region_;
    RegionAllocator allocator_;
    std::map<uint64_t, uint64_t> used_;  // offset -> size
    std::vector<RegionAllocator::Block> live_;
};

} // namespace polder::test
