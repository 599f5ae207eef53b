// Cuts a copy of rows into pieces that fit a staging chunk: some whole rows of one slice, or a part of one long row.
#pragma once

#include <algorithm>
#include <polder/driver.h>

namespace polder::cuda {

struct CopyPiece {
    uint64_t from_offset;
    uint64_t to_offset;
    uint64_t row_bytes;
    uint64_t rows;
    [[nodiscard]] uint64_t bytes() const { return row_bytes * rows; }
};

[[nodiscard]] inline bool is_contiguous(const driver::RectShape& shape, const driver::RectLayout& layout) {
    return (shape.rows == 1 || layout.row_pitch == shape.row_bytes) &&
           (shape.slices == 1 || layout.slice_pitch == shape.row_bytes * shape.rows);
}

// Calls use(piece) in order until it returns something other than `success`, and returns that.
template <class Result, class Use>
Result for_each_piece(const driver::CopyOperation& copy, uint64_t piece_bytes_max, Result success, Use&& use) {
    driver::RectShape shape = copy.shape;
    if (is_contiguous(shape, copy.from.layout) && is_contiguous(shape, copy.to.layout))
        shape = {shape.row_bytes * shape.rows * shape.slices, 1, 1};
    const uint64_t row_part = std::min(shape.row_bytes, piece_bytes_max);
    const uint64_t rows_max = row_part < shape.row_bytes ? 1 : piece_bytes_max / row_part;
    for (uint64_t z = 0; z < shape.slices; ++z)
        for (uint64_t y = 0; y < shape.rows; y += std::min(rows_max, shape.rows - y))
            for (uint64_t x = 0; x < shape.row_bytes; x += row_part) {
                const auto offset = [&](const driver::RectLayout& layout) {
                    return z * layout.slice_pitch + y * layout.row_pitch + x;
                };
                const CopyPiece piece{offset(copy.from.layout), offset(copy.to.layout),
                                      std::min(row_part, shape.row_bytes - x), std::min(rows_max, shape.rows - y)};
                if (const Result result = use(piece); result != success)
                    return result;
            }
    return success;
}

} // namespace polder::cuda
