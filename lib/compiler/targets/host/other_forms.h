// Which other forms of a kernel's code are worth measuring (decision 325): those of which the vectorizer's estimates may be wrong.
// Plain functions without LLVM.
#pragma once

#include "targets/host/workgroup/frame/options.h"

#include <compiler/compiler.h>

#include <vector>

namespace polder::compiler {

// `lanes` is the report of the planned code, whose object has `object_bytes`. `has_same_results`: code with and without lanes computes the same bits.
// The likely forms come first.
[[nodiscard]] std::vector<Form> other_forms(const workgroup::LaneReport& lanes, uint64_t object_bytes,
                                            bool has_same_results);

// As in WorkGroupOptions: how many vectors of lanes run at once in code of `form`; 0: as many as the vectorizer chooses.
[[nodiscard]] unsigned vectors_of(Form form);

}  // namespace polder::compiler
