// Units and rounding of sizes in bytes.
#pragma once

#include <cstdint>

namespace polder {

inline constexpr uint64_t MiB = uint64_t{1} << 20;

[[nodiscard]] constexpr uint64_t rounded_up(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace polder
