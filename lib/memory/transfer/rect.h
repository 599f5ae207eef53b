// Rectangles of bytes within a storage: their rows as ranges, and their parts by where the bytes are.
// Values; any thread.
#pragma once

#include "residency/replicas.h"
#include "residency/residency.h"
#include "space/topology.h"

#include <memory/domain.h>

#include <algorithm>
#include <optional>

namespace polder::memory {

using Rows = SmallVector<ByteRange, 2>;

// Whether its bytes are one range.
[[nodiscard]] inline bool is_one_range(const StorageRect& rect) {
    const driver::RectShape& shape = rect.shape;
    return (shape.rows == 1 || rect.layout.row_pitch == shape.row_bytes) &&
           (shape.slices == 1 || rect.layout.slice_pitch == shape.row_bytes * shape.rows);
}

// The rows of `rect`, sorted and disjoint; rows that continue each other are one.
[[nodiscard]] Rows rows_of(const StorageRect& rect);

// The ranges that a command which reads `rect` records as read: its rows or, when there are many, one range from the first to the last.
// The bytes in between only make transfers and evictions wait longer than necessary, while separate rows would each be a piece.
[[nodiscard]] Rows read_ranges_of(const StorageRect& rect);

// The ranges that a command which overwrites `rect` in `space` records as written: its rows or, when there are many, one range from the first
// to the last. One range is only used when no byte between the rows becomes stale: each is held as if it had been written in `space`, or was
// never written and lies in a small gap between rows (its content is undefined, so that any holder is right).
[[nodiscard]] Rows written_ranges_of(const StorageRect& rect, const Residency& residency, SpaceId space);

// The offset at which row `y` of slice `z` begins.
[[nodiscard]] inline uint64_t row_offset(const driver::RectLayout& layout, uint64_t y, uint64_t z) {
    return y * layout.row_pitch + z * layout.slice_pitch;
}
[[nodiscard]] inline uint64_t bytes_of(const driver::RectShape& shape) {
    return shape.row_bytes * shape.rows * shape.slices;
}

// A part of a rectangle whose bytes are all copied from one replica.
struct RectPart {
    SpaceId source;
    DeviceAddress base;  // the base address of the replica
    uint64_t x = 0, y = 0, z = 0;  // the position of its first byte within the rectangle
    driver::RectShape shape;  // one row or a piece of one, whole rows of one slice, or whole slices
};
using RectParts = SmallVector<RectPart, 2>;

// The rectangle of `part` within the storage.
[[nodiscard]] inline StorageRect part_of(const StorageRect& rect, const RectPart& part) {
    return {rect.offset + part.x + row_offset(rect.layout, part.y, part.z), part.shape, rect.layout};
}

// A part of a rectangle: a piece of a row, whole rows of a slice, or whole slices.
struct Chunk {
    uint64_t x, y, z;  // the position of its first byte within the rectangle
    driver::RectShape shape;
};

// Divides `shape` into chunks of at most `bytes` bytes: parts of a row, whole rows, or whole slices. Calls f for each chunk.
template <class F>
void for_each_chunk(const driver::RectShape& shape, uint64_t bytes, F&& f) {
    const uint64_t row = shape.row_bytes;
    const uint64_t slice = row * shape.rows;
    const uint64_t slices_step = std::max<uint64_t>(1, bytes / slice);
    const uint64_t rows_step = slices_step > 1 ? shape.rows : std::min(shape.rows, std::max<uint64_t>(1, bytes / row));
    const uint64_t x_step = std::min(row, bytes);
    for (uint64_t z = 0; z < shape.slices; z += slices_step)
        for (uint64_t y = 0; y < shape.rows; y += rows_step)
            for (uint64_t x = 0; x < row; x += x_step)
                f(Chunk{x,
                        y,
                        z,
                        {std::min(x_step, row - x), std::min(rows_step, shape.rows - y),
                         std::min(slices_step, shape.slices - z)}});
}

// The rectangle of `chunk` within the storage.
[[nodiscard]] inline StorageRect part_of(const StorageRect& rect, const Chunk& chunk) {
    return {rect.offset + chunk.x + row_offset(rect.layout, chunk.y, chunk.z), chunk.shape, rect.layout};
}

// How to choose one of several holders to copy from.
struct SourceChoice {
    const Topology& topology;
    SpaceId to;  // where the bytes go
    SpaceId preferred;  // chosen if it holds the bytes and `to` does not

    [[nodiscard]] SpaceId operator()(SpaceSet holders) const;
};

// The source of all bytes from the first row to the last, if it is one. std::nullopt when there are several or some bytes were never written.
[[nodiscard]] std::optional<SpaceId> only_source(const Residency& residency, const StorageRect& rect,
                                                 const SourceChoice& choice);

// Splits `rect` by source. Rows with one source stay together; bytes never written are left out.
[[nodiscard]] RectParts split_by_source(const Residency& residency, const Replicas& replicas, const StorageRect& rect,
                                        const SourceChoice& choice);

}  // namespace polder::memory
