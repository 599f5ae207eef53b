// Divisors among the arguments of a kernel which the kernel itself compares with 1, as in the passes of a transformation of which the first one differs:
//
//     k = i % p;  if (p != 1) rotate(...);  out[k + (i - k) * 4 + n * p] = ...
//
// With 1, each work-item's elements are side by side, there is no division, and what stands under the comparison is left out.
#pragma once

#include "length_copies.h"

namespace polder::compiler::workgroup {

// Such arguments of the loop, as 1.
[[nodiscard]] KnownNumbers asked_divisors(const llvm::Loop& loop);

}  // namespace polder::compiler::workgroup
