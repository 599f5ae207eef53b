#include <runtime/local_size.h>

#include <algorithm>

namespace polder::runtime {
namespace {

// Kernels that cannot notice the size have no barriers. Beginning a group takes as long as some vectors of a short kernel.
constexpr uint64_t unseen_target_max = 1024;
// Where work-items take different times, large groups end at different times, so there should be more of them.
constexpr uint64_t groups_per_unit_of_large = 64;
// Groups per compute unit, so that a slow one does not hold up the launch.
constexpr uint64_t groups_per_unit = 8;

uint64_t largest_divisor(uint64_t size, uint64_t max) {
    for (uint64_t divisor = std::min(size, max); divisor > 1; --divisor)
        if (size % divisor == 0)
            return divisor;
    return 1;
}

// 0 when there is none.
uint64_t smallest_divisor_above(uint64_t size, uint64_t above, uint64_t max) {
    for (uint64_t divisor = above + 1; divisor <= std::min(size, max); ++divisor)
        if (size % divisor == 0)
            return divisor;
    return 0;
}

// How many work-items a dimension may have in a group: `target` is best, `most` is possible.
struct Extent {
    uint64_t target;
    uint64_t most;
};

uint64_t choose_lanes(uint64_t size, const Extent& extent, const LocalSizeRules& rules) {
    const bool has_whole_rows = size % rules.row_multiple == 0 && rules.row_multiple <= extent.target;
    const uint64_t wanted =
        has_whole_rows ? std::max(rules.preferred_multiple, rules.row_multiple) : rules.preferred_multiple;
    const uint64_t multiple = std::min(wanted, extent.target);
    const uint64_t whole_vectors = std::min(extent.target / multiple * multiple, size);
    const uint64_t same = size % multiple == 0 ? multiple * largest_divisor(size / multiple, extent.target / multiple)
                                               : largest_divisor(size, extent.target);
    const bool is_poor = same < multiple && size > multiple;
    switch (rules.shape) {
    case LocalSizeRules::Shape::unseen: return same % multiple == 0 && 2 * same > whole_vectors ? same : whole_vectors;
    case LocalSizeRules::Shape::any: return is_poor ? whole_vectors : same;
    default: break;
    }
    // A group larger than is best beats one that fills no vector.
    const uint64_t larger = is_poor ? smallest_divisor_above(size, extent.target, extent.most) : 0;
    return larger ? larger : same;
}

uint64_t choose_other(uint64_t size, uint64_t max, LocalSizeRules::Shape shape) {
    const uint64_t same = largest_divisor(size, max);
    const uint64_t most = std::min(size, max);
    return shape != LocalSizeRules::Shape::uniform && 2 * same <= most ? most : same;
}

}  // namespace

Size3 choose_local_size(const Size3& global, const LocalSizeRules& rules) {
    const uint64_t total = global[0] * global[1] * global[2];
    const uint64_t share = total / (groups_per_unit * rules.compute_units);
    const uint64_t target_max =
        rules.shape == LocalSizeRules::Shape::unseen
            ? std::clamp(total / (groups_per_unit_of_large * rules.compute_units), usual_group_items, unseen_target_max)
            : usual_group_items;
    uint64_t left = std::clamp(share, std::min<uint64_t>(rules.preferred_multiple, rules.group_max),
                               std::max<uint64_t>(1, std::min(target_max, rules.group_max)));
    Size3 local{1, 1, 1};
    const size_t lanes = rules.lane_dimension;
    const Extent extent{std::max<uint64_t>(1, std::min(left, rules.item_max[lanes])),
                        std::min(rules.group_max, rules.item_max[lanes])};
    local[lanes] = choose_lanes(global[lanes], extent, rules);
    left /= local[lanes];
    for (size_t d = 0; d < 3; ++d) {
        if (d == lanes)
            continue;
        local[d] = choose_other(global[d], std::max<uint64_t>(1, std::min(left, rules.item_max[d])), rules.shape);
        left /= local[d];
    }
    return local;
}

}  // namespace polder::runtime
