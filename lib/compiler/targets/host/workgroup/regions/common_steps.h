// Separates the steps that work-items have in common from values that advance around barriers. In
//
//   p = a + id; do { ...; barrier(); ...; p += stride; } while (...);
//
// p differs between work-items, so it would be kept in an array over the work-items, and after a load the vectorizer would not know how
// lanes differ. But p is the sum of its start, which follows from the ids, and of the steps so far, which are the same for all
// work-items. Each use adds the two. Nothing is kept for a work-item, and the step between lanes is known.
#pragma once

#include "cuts.h"

namespace polder::compiler::workgroup {

// For the loops that contain a cut. `uniformity` does not know the values that this makes, so it must not be used afterwards. Returns
// the number of values that were separated.
unsigned separate_common_steps(llvm::Function& function, const Cuts& cuts, const Uniformity& uniformity);

// Whether `function` has a loop around a cut. Without one, the analysis of uniformity is not needed.
[[nodiscard]] bool has_loops_around(llvm::Function& function, const Cuts& cuts);

}  // namespace polder::compiler::workgroup
