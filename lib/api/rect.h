// Checks of the rectangular commands' arguments.
#pragma once

#include <memory/domain.h>

#include <cstddef>
#include <polder/result.h>

namespace polder::api {

// One side of a rectangular command as the application gives it, in bytes, rows and slices.
struct RectArguments {
    const size_t* origin;
    size_t row_pitch;
    size_t slice_pitch;
};

// The rect within memory of `limit` bytes. Pitches of 0 mean the tightest ones. invalid_value when a region is
// empty, a pitch too small, or the rect out of bounds. The host side of a transfer has no known limit: pass
// UINT64_MAX.
[[nodiscard]] Result<memory::StorageRect> check_rect(const RectArguments& arguments, const size_t* region,
                                                     uint64_t limit);

// Whether two rects of one memory have a byte in common. Exact when their pitches are equal, which the
// specification demands within one buffer; otherwise it compares the ranges that enclose them.
[[nodiscard]] bool rects_overlap(const memory::StorageRect& a, const memory::StorageRect& b);

} // namespace polder::api
