// The work-group size of a launch whose application names none. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace polder::runtime {

using Size3 = std::array<uint64_t, 3>;

struct LocalSizeRules {
    uint64_t group_max = 1;           // work-items in a group
    Size3 item_max{1, 1, 1};          // per dimension
    uint64_t preferred_multiple = 1;  // in x: the vector width, at most group_max
    uint32_t compute_units = 1;       // there should be work for each
    // `uniform`: all groups have the same size. `any`: they may differ, which the kernel can see, so only where same
    // ones would be poor. `unseen`: the kernel cannot tell.
    enum class Shape : uint8_t { uniform, any, unseen } shape = Shape::uniform;
};

// Wide in x, because neighbours in x are the lanes of a vector, and small enough that there are groups for all compute
// units. Sizes divide the global size unless `shape` allows others and they are better. `global` is not 0 in any
// dimension. O(group_max) divisions at worst.
[[nodiscard]] Size3 choose_local_size(const Size3& global, const LocalSizeRules& rules);

}  // namespace polder::runtime
