// Kernels that work on rows of a matrix with one work-group of ITEMS items per row.
#pragma once

#include "pointwise.h"

#include <string>

namespace torch_opencl {

// X: the elements' type in memory, with LOADX and STOREX; T: the compute type. REDUCE_SUM(v) and REDUCE_MAX(v) make v the sum and the
// greatest of all items' v; a kernel that uses them declares `local T shared[ITEMS]` and `int lane`.
std::string row_macros(c10::ScalarType type);
constexpr const char* row_kernel = "kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void ";

// ITEMS: two vectors of a processor's lanes, so that short rows keep them busy; more where there is a GPU.
size_t row_items();

inline void run_rows(Launch& launch, int64_t rows) {
    launch.run({static_cast<size_t>(rows) * row_items(), 1, 1}, {row_items(), 1, 1});
}

}  // namespace torch_opencl
