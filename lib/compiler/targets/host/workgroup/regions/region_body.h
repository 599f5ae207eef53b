// The code of one region as the body of one loop over work-items.
#pragma once

#include "carried_values.h"
#include "cuts.h"
#include "debug_variables.h"
#include "loop_nest.h"
#include "region.h"
#include "targets/host/workgroup/frame/lowering.h"
#include "targets/host/workgroup/work_items/uniformity.h"

#include <utility>

namespace polder::compiler::workgroup {

// What all regions of a kernel share.
struct KernelRegions {
    const LoweredKernel& kernel;
    const Uniformity& uniformity;
    const Cuts& cuts;
    const Regions& regions;
    CarriedValues& carried;
    const DebugVariables& debug_variables;
    llvm::ArrayRef<std::pair<llvm::Instruction*, unsigned>> local_ids;  // instructions, with their dimensions
};

// Makes a copy of `region` the body of `nest`. Each work-item stores in `next` which cut it reached: 1 for the region's first
// exit, 0 (the initial value) when it returned. `next` is null when all work-items reach the same cut, or all return.
void emit_region_body(const KernelRegions& kernel, const Region& region, LoopNest& nest, llvm::AllocaInst* next);

}  // namespace polder::compiler::workgroup
