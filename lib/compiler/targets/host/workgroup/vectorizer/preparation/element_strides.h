// Single elements of arrays whose strides are arguments, one for each dimension, as libraries of arrays have them:
//
//     in[x * strides[0] + y * strides[1]]
//
// The stride of the dimension that follows the work-item is mostly that of elements side by side.
#pragma once

#include "length_copies.h"
#include "targets/host/workgroup/vectorizer/analysis/access_places.h"

#include <llvm/ADT/ArrayRef.h>

namespace polder::compiler::workgroup {

// Such arguments of the loop, with the strides that make elements neighbours; none when there are no such accesses.
[[nodiscard]] KnownNumbers element_strides(llvm::ArrayRef<PlacedAccesses> accesses, const AccessPlaces& places);

}  // namespace polder::compiler::workgroup
