// Divides a copy of rows into pieces that fit into a staging chunk: some whole rows of one slice, or a part of one long row.
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

// All pieces of a copy, numbered from 0 in the order of their addresses. Immutable.
class CopyPieces {
public:
    CopyPieces(const driver::CopyOperation& copy, uint64_t piece_bytes_max)
        : shape_(copy.shape), from_(copy.from.layout), to_(copy.to.layout) {
        if (is_contiguous(shape_, from_) && is_contiguous(shape_, to_))
            shape_ = {shape_.row_bytes * shape_.rows * shape_.slices, 1, 1};
        part_bytes_ = std::min(shape_.row_bytes, piece_bytes_max);
        parts_ = (shape_.row_bytes + part_bytes_ - 1) / part_bytes_;
        rows_ = parts_ > 1 ? 1 : std::min(shape_.rows, piece_bytes_max / part_bytes_);
        groups_ = (shape_.rows + rows_ - 1) / rows_;
    }
    [[nodiscard]] uint64_t count() const { return parts_ * groups_ * shape_.slices; }
    [[nodiscard]] CopyPiece operator[](uint64_t index) const {
        const uint64_t x = index % parts_ * part_bytes_;
        const uint64_t y = index / parts_ % groups_ * rows_;
        const uint64_t z = index / parts_ / groups_;
        const auto offset = [&](const driver::RectLayout& layout) {
            return z * layout.slice_pitch + y * layout.row_pitch + x;
        };
        return {offset(from_), offset(to_), std::min(part_bytes_, shape_.row_bytes - x),
                std::min(rows_, shape_.rows - y)};
    }

private:
    driver::RectShape shape_;
    driver::RectLayout from_;
    driver::RectLayout to_;
    uint64_t part_bytes_ = 0;  // the bytes of a row in one piece
    uint64_t parts_ = 0;  // into how many parts a row is divided
    uint64_t rows_ = 0;  // how many rows are in one piece
    uint64_t groups_ = 0;  // into how many groups of rows a slice is divided
};

}  // namespace polder::cuda
