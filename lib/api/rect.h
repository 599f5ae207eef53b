// Checks of the rectangular commands' arguments.
#pragma once

#include <memory/domain.h>

#include <cstddef>
#include <polder/result.h>

namespace polder::api {

// One side of a rectangular command as the application passed it. x and pitches are in bytes, y in rows, z in slices.
struct RectArguments {
    const size_t* origin;
    size_t row_pitch;
    size_t slice_pitch;
};

// Checks and returns the rect within memory of `limit` bytes. Pitches of 0 mean that there are no gaps. CL_INVALID_VALUE: the region is
// empty, a pitch is too small, or the rect is out of bounds. For host memory, whose size is unknown, pass
// UINT64_MAX.
[[nodiscard]] Result<memory::StorageRect> check_rect(const RectArguments& arguments, const size_t* region,
                                                     uint64_t limit);

// Whether two rects of one memory have a byte in common. Exact when their pitches are equal, which the
// specification requires within one buffer; otherwise compares the ranges from first to last byte.
[[nodiscard]] bool rects_overlap(const memory::StorageRect& a, const memory::StorageRect& b);

}  // namespace polder::api
