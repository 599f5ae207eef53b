// Puts the regions between cuts into work-item loops; the last step of making a work-group function.
#pragma once

#include "carried_values.h"
#include "cuts.h"
#include "targets/host/workgroup/frame/lowering.h"
#include "targets/host/workgroup/work_items/uniformity.h"

namespace polder::compiler::workgroup {

// Whether loops in which no work-item has a side effect are skipped (idle_loops.h). Code for a debugger executes them, so that each
// work-item stops at a breakpoint.
enum class IdleLoops : uint8_t { executed, skipped };

// Replaces the body of one work-item by loops over all of them.
RegionStatistics form_work_item_loops(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts,
                                      IdleLoops idle);

}  // namespace polder::compiler::workgroup
