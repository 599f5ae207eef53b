// Units of sizes, in bytes.
#pragma once

#include <cstdint>

namespace polder {

inline constexpr uint64_t MiB = uint64_t{1} << 20;

}  // namespace polder
