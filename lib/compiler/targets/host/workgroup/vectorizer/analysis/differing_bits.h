// Values whose lanes differ only in a few low bits, as in work-groups of a known size (LaneShape::differing_bits).
#pragma once

#include "lane_shape.h"

namespace polder::compiler::workgroup {

// How many low bits the index of a work-item has, when the largest number of work-items is known; else 0.
[[nodiscard]] unsigned bits_of_index(const llvm::Loop& loop);

// `shape`, that of a value of `bits` bits, with the knowledge that its lanes differ only in `differing` of them. 0: nothing is known.
[[nodiscard]] LaneShape in_low_bits(LaneShape shape, unsigned differing, unsigned bits);

}  // namespace polder::compiler::workgroup
