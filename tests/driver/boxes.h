// Rectangles of bytes, for tests of copies.
#pragma once

#include "conformance.h"

namespace polder::conformance {

// A box of rows that is copied into a larger one. `copy_box` does it row by row.
struct BoxCase {
    driver::RectShape shape;
    driver::RectLayout from;
    driver::RectLayout to;
};

inline void copy_box(const BoxCase& box, const Bytes& from, Bytes& to) {
    for (uint64_t z = 0; z < box.shape.slices; ++z)
        for (uint64_t y = 0; y < box.shape.rows; ++y)
            std::memcpy(to.data() + z * box.to.slice_pitch + y * box.to.row_pitch,
                        from.data() + z * box.from.slice_pitch + y * box.from.row_pitch, box.shape.row_bytes);
}

}  // namespace polder::conformance
