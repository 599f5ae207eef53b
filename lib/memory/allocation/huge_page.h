// The size of the host's large pages (transparent huge pages of x86-64 and of arm64 with pages of 4 KiB).
#pragma once

#include <base/sizes.h>
#include <bufalloc/region_allocator.h>

namespace polder::memory {

inline constexpr Alignment huge_page{2 * MiB};

}  // namespace polder::memory
