// How many vectors of work-items run at once.
//
// Where each iteration of a loop waits for the one before (a chain), a processor is idle most of the time: it could work on other
// vectors meanwhile. The vectorizer then makes vectors of two or four times as many lanes, which LLVM splits into several registers.
//
// Where all values that vary between lanes have 8 or 16 bits, as in filters of pixels, a vector with one lane for each 32 bits of a register
// would fill only a quarter or a half of the register. It gets two or four times as many lanes, too.
//
// Where work-items access many pages of memory, each in a row (as chemistry does, with a row of memory for each reaction), a processor looks up all pages
// for each vector, because it keeps the places of some 64. Several vectors at once use each page several times. Where a look-up is cheap,
// there are only as many vectors as fit the registers.
//
// Other loops that wait, for divisions, calls or gathers: waiting_loops.h.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

namespace polder::compiler::workgroup {

// No more vectors than divide a known number of work-items.
[[nodiscard]] unsigned fitting_vectors(unsigned vectors, const LanePlan& plan, unsigned lanes);

// 1, 2 or 4. Where there are inner loops, more than 1 only where no inner loop has calls, inner branches, lanes that leave it at different times, or accesses of
// lanes one by one, where the code is short, and where the values that an inner loop keeps for several vectors fit the processor's registers. `lanes`: of one vector.
[[nodiscard]] unsigned vectors_at_once(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses,
                                       const llvm::TargetTransformInfo& target, unsigned lanes,
                                       const LaneTarget& prices);

}  // namespace polder::compiler::workgroup
