// Puts the regions between cuts into work-item loops; the last step of making a work-group function.
#pragma once

#include "cuts.h"
#include "lowering.h"
#include "uniformity.h"

namespace polder::compiler::workgroup {

struct RegionStatistics {
    uint64_t scratch_bytes_per_work_item = 0;
    uint64_t private_bytes_per_work_item = 0;
};

// Moves what is uniform, pure and computable there to the end of `prologue`, so that it is computed
// once per work-group.
void hoist_uniform_values(llvm::Function& function, llvm::BasicBlock& prologue, const Uniformity& uniformity);

// Replaces the body of one work-item by loops over all of them.
RegionStatistics form_work_item_loops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts);

} // namespace polder::compiler::workgroup
