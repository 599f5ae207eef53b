// Chooses the work-group size of a launch without a local size. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace polder::runtime {

using Size3 = std::array<uint64_t, 3>;

// The work-items of a group in a large launch whose kernel may notice the size. The private values of larger groups no longer fit the nearest cache where
// they live across barriers.
constexpr uint64_t usual_group_items = 256;

struct LocalSizeRules {
    uint64_t group_max = 1;  // work-items in a group
    Size3 item_max{1, 1, 1};  // per dimension
    uint64_t preferred_multiple = 1;  // in the dimension of the lanes: the vector width, at most group_max
    uint64_t row_multiple = 1;  // in this dimension, for which the code is; where the global size is a multiple
    unsigned lane_dimension = 0;  // whose neighbours are the lanes of a vector
    uint32_t compute_units = 1;  // there should be work for each
    // `uniform`: all groups must have the same size. `any`: sizes may differ, but the kernel can notice it, so they differ only where
    // equal sizes would be slow. `unseen`: sizes may differ, and the kernel cannot notice it.
    enum class Shape : uint8_t { uniform, any, unseen } shape = Shape::uniform;
};

// Wide in the dimension of the lanes, which most often is x, and small enough that there are groups for all compute
// units. Sizes divide the global size unless `shape` allows others and they are better. `global` is not 0 in any
// dimension. O(group_max) divisions at worst.
[[nodiscard]] Size3 choose_local_size(const Size3& global, const LocalSizeRules& rules);

}  // namespace polder::runtime
