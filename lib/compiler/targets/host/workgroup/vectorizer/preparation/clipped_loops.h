// Loops of the kernel that end at the edges of the data, as those over the taps of a filter:
//
//     for (k = x + r >= width ? x + r + 1 - width : 0; k < (x - r < 0 ? x + r + 1 : taps); k++)  ...
//
// Their limits are choices by a comparison that follows the work-item. Away from the edges all work-items choose a number that they share. Then all lanes
// have the same iterations.
#pragma once

#include "item_ranges.h"
#include "length_copies.h"
#include "targets/host/workgroup/vectorizer/analysis/access_places.h"

namespace polder::compiler::workgroup {

// A choice that a limit of such a loop is made of, the operand that is its result away from the edges, and where that is so.
struct ClippedLimit {
    llvm::Instruction* choice = nullptr;
    llvm::Value* taken = nullptr;
    ItemComparison holds;
};

// Of the loops within `loop`, which `guarded` examines. None of loops of which a limit would still follow the work-item.
[[nodiscard]] llvm::SmallVector<ClippedLimit, 4> clipped_limits(const llvm::Loop& loop, const GuardedLoop& guarded,
                                                                const ItemRanges& ranges);

// Arguments by which such limits multiply a number that follows the work-item, as the stride of a filter's windows: mostly 1. An argument that is also the
// length of the windows is none.
[[nodiscard]] KnownNumbers clipped_strides(const llvm::Loop& loop, const AccessPlaces& places);

}  // namespace polder::compiler::workgroup
