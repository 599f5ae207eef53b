// Separates the steps that work-items have in common from values that advance around barriers. In
//
//   p = a + id; do { ...; barrier(); ...; p += stride; } while (...);
//
// p differs between work-items, so that it would be kept in an array over the work-items, and its lanes would be known only as values of
// memory. It is the sum of its start, which follows from the ids, and of the steps so far, which are the same for all
// work-items. Each use adds the two: nothing is kept for a work-item, and the lanes are known to be neighbours.
#pragma once

#include "cuts.h"

namespace polder::compiler::workgroup {

// For the loops that contain a cut. `uniformity` does not know the values that this makes, so it must not be used afterwards. Returns
// the number of values that were separated.
unsigned separate_common_steps(llvm::Function& function, const Cuts& cuts, const Uniformity& uniformity);

// Whether `function` has a loop around a cut, for which the analysis is worth its time.
[[nodiscard]] bool has_loops_around(llvm::Function& function, const Cuts& cuts);

}  // namespace polder::compiler::workgroup
