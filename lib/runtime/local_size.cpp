#include <runtime/local_size.h>

#include <algorithm>

namespace polder::runtime {
namespace {

// Groups above this size no longer make a launch cheaper, and their private values no longer fit the nearest cache.
constexpr uint64_t group_target_max = 256;
// Groups per compute unit, so that a slow one does not hold up the launch.
constexpr uint64_t groups_per_unit = 8;

uint64_t largest_divisor(uint64_t size, uint64_t max) {
    for (uint64_t divisor = std::min(size, max); divisor > 1; --divisor)
        if (size % divisor == 0)
            return divisor;
    return 1;
}

// The largest divisor up to `max` that is a multiple of `multiple`; without one, the largest divisor, or, where
// groups may differ in size and that is too small to fill a vector, whole vectors.
uint64_t choose_x(uint64_t size, uint64_t max, const LocalSizeRules& rules) {
    const uint64_t multiple = std::min(rules.preferred_multiple, max);
    if (size % multiple == 0)
        return multiple * largest_divisor(size / multiple, max / multiple);
    const uint64_t divisor = largest_divisor(size, max);
    const bool is_poor = divisor < multiple && size > multiple;
    if (is_poor && rules.shape == LocalSizeRules::Shape::any)
        return std::min(max / multiple * multiple, size);
    return divisor;
}

} // namespace

Size3 choose_local_size(const Size3& global, const LocalSizeRules& rules) {
    const uint64_t total = global[0] * global[1] * global[2];
    const uint64_t share = total / (groups_per_unit * rules.compute_units);
    uint64_t left = std::clamp(share, std::min<uint64_t>(rules.preferred_multiple, rules.group_max),
                               std::max<uint64_t>(1, std::min(group_target_max, rules.group_max)));
    Size3 local{1, 1, 1};
    local[0] = choose_x(global[0], std::max<uint64_t>(1, std::min(left, rules.item_max[0])), rules);
    for (size_t d = 1; d < 3; ++d) {
        left /= local[d - 1];
        local[d] = largest_divisor(global[d], std::max<uint64_t>(1, std::min(left, rules.item_max[d])));
    }
    return local;
}

} // namespace polder::runtime
