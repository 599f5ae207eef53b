#include "rect.h"

#include <algorithm>

namespace polder::api {
namespace {

bool multiply(uint64_t a, uint64_t b, uint64_t& product) { return !__builtin_mul_overflow(a, b, &product); }
bool add(uint64_t a, uint64_t b, uint64_t& sum) { return !__builtin_add_overflow(a, b, &sum); }

// Computes the offset of (x, y, z). False when it overflows.
bool position(const memory::StorageRect& rect, uint64_t x, uint64_t y, uint64_t z, uint64_t& result) {
    uint64_t rows = 0;
    uint64_t slices = 0;
    return multiply(y, rect.layout.row_pitch, rows) && multiply(z, rect.layout.slice_pitch, slices) &&
           add(x, rows, result) && add(result, slices, result);
}

uint64_t extent(const memory::StorageRect& rect) {
    return (rect.shape.slices - 1) * rect.layout.slice_pitch + (rect.shape.rows - 1) * rect.layout.row_pitch +
           rect.shape.row_bytes;
}

int64_t distance(uint64_t from, uint64_t to) { return static_cast<int64_t>(to - from); }

// Whether a row of one slice overlaps a row of another slice: `offset` is the distance of the slices, which have `rows` rows each.
bool rows_meet(int64_t offset, int64_t row_pitch, int64_t rows, int64_t row_bytes) {
    const int64_t nearest = -offset / row_pitch;
    for (int64_t dy = nearest - 1; dy <= nearest + 1; ++dy) {
        const int64_t clamped = std::clamp(dy, 1 - rows, rows - 1);
        if (std::abs(offset + clamped * row_pitch) < row_bytes)
            return true;
    }
    return false;
}

}  // namespace

Result<memory::StorageRect> check_rect(const RectArguments& arguments, const size_t* region, uint64_t limit) {
    // CL_INVALID_VALUE: origin or region is null, or an extent of region is 0.
    if (!arguments.origin || !region || region[0] == 0 || region[1] == 0 || region[2] == 0)
        return fail(Status::invalid_value);
    memory::StorageRect rect;
    rect.shape = {region[0], region[1], region[2]};
    rect.layout.row_pitch = arguments.row_pitch ? arguments.row_pitch : region[0];
    // CL_INVALID_VALUE: the row pitch is less than region[0].
    if (rect.layout.row_pitch < region[0])
        return fail(Status::invalid_value);
    uint64_t tight_slice = 0;
    // CL_INVALID_VALUE: a slice is larger than the address space.
    if (!multiply(region[1], rect.layout.row_pitch, tight_slice))
        return fail(Status::invalid_value);
    rect.layout.slice_pitch = arguments.slice_pitch ? arguments.slice_pitch : tight_slice;
    // CL_INVALID_VALUE: the slice pitch is less than a slice, or not a multiple of the row pitch.
    if (rect.layout.slice_pitch < tight_slice || rect.layout.slice_pitch % rect.layout.row_pitch != 0)
        return fail(Status::invalid_value);
    uint64_t last_row = 0;
    uint64_t end = 0;
    const size_t* origin = arguments.origin;
    const bool fits = position(rect, origin[0], origin[1], origin[2], rect.offset) &&
                      position(rect, 0, region[1] - 1, region[2] - 1, last_row) && add(rect.offset, last_row, end) &&
                      add(end, region[0], end) && end <= limit;
    // CL_INVALID_VALUE: the region is out of the bounds of the buffer.
    if (!fits)
        return fail(Status::invalid_value);
    return rect;
}

bool rects_overlap(const memory::StorageRect& a, const memory::StorageRect& b) {
    if (a.offset >= b.offset + extent(b) || b.offset >= a.offset + extent(a))
        return false;
    const bool is_row = a.shape.rows == 1 && a.shape.slices == 1;
    const bool same_pitches = a.layout.row_pitch == b.layout.row_pitch && a.layout.slice_pitch == b.layout.slice_pitch;
    if (is_row || !same_pitches)
        return true;
    const auto slices = static_cast<int64_t>(a.shape.slices);
    for (int64_t dz = 1 - slices; dz < slices; ++dz) {
        const int64_t offset = distance(a.offset, b.offset) + dz * static_cast<int64_t>(a.layout.slice_pitch);
        if (rows_meet(offset, static_cast<int64_t>(a.layout.row_pitch), static_cast<int64_t>(a.shape.rows),
                      static_cast<int64_t>(a.shape.row_bytes)))
            return true;
    }
    return false;
}

}  // namespace polder::api
