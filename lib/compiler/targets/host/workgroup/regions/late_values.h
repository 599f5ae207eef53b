// Computes values of work-items where they are used, not before a barrier. `base + id` behind a barrier is then a sum again, and the base, which all
// work-items share, is kept once. Kept for each work-item, the sum would be in an array, and the vectorizer would not know how the lanes' places differ.
#pragma once

#include "cuts.h"

namespace polder::compiler::workgroup {

// Values that follow from ids and from what is computed in the prologue are left alone: CarriedValues computes those again. `uniformity` does not know
// the values that this makes, so it must not be used afterwards.
void compute_late(llvm::Function& function, const llvm::BasicBlock& prologue, const Cuts& cuts,
                  const Uniformity& uniformity);

}  // namespace polder::compiler::workgroup
