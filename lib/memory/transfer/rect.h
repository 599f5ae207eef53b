// Rectangles of bytes within a storage: their rows as ranges, and their parts by where the bytes are.
// Values; any thread.
#pragma once

#include "residency/replicas.h"
#include "residency/residency.h"
#include "topology.h"

#include <memory/domain.h>

namespace polder::memory {

using Rows = SmallVector<ByteRange, 2>;

// The rows of `rect`, sorted and disjoint; rows that continue each other are one.
[[nodiscard]] Rows rows_of(const StorageRect& rect);

// Where row `y` of slice `z` begins.
[[nodiscard]] inline uint64_t row_offset(const driver::RectLayout& layout, uint64_t y, uint64_t z) {
    return y * layout.row_pitch + z * layout.slice_pitch;
}
[[nodiscard]] inline uint64_t bytes_of(const driver::RectShape& shape) {
    return shape.row_bytes * shape.rows * shape.slices;
}

// A part of a rectangle whose bytes are all copied from one replica.
struct RectPart {
    SpaceId source;
    DeviceAddress base;  // of the replica
    uint64_t x = 0, y = 0, z = 0;  // of its first byte within the rectangle
    driver::RectShape shape;       // one row or a piece of one, whole rows of one slice, or whole slices
};
using RectParts = SmallVector<RectPart, 2>;

// Where `part` of `rect` is.
[[nodiscard]] inline StorageRect part_of(const StorageRect& rect, const RectPart& part) {
    return {rect.offset + part.x + row_offset(rect.layout, part.y, part.z), part.shape, rect.layout};
}

// From which of several holders to copy.
struct SourceChoice {
    const Topology& topology;
    SpaceId to;         // where the bytes go
    SpaceId preferred;  // if it holds them and `to` does not

    [[nodiscard]] SpaceId operator()(SpaceSet holders) const;
};

// Splits `rect` by source. Rows with one source stay together; bytes never written are left out.
[[nodiscard]] RectParts split_by_source(const Residency& residency, const Replicas& replicas, const StorageRect& rect,
                                        const SourceChoice& choice);

} // namespace polder::memory
