// Puts the regions between cuts into work-item loops; the last step of making a work-group function.
#pragma once

#include "cuts.h"
#include "targets/host/workgroup/lowering.h"
#include "targets/host/workgroup/uniformity.h"

namespace polder::compiler::workgroup {

struct RegionStatistics {
    uint64_t scratch_bytes_per_work_item = 0;
    uint64_t private_bytes_per_work_item = 0;
};

// Replaces the body of one work-item by loops over all of them.
RegionStatistics form_work_item_loops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts);

} // namespace polder::compiler::workgroup
