// Turns an OpenCL kernel into a work-group function: one call runs every work-item of one work-group
// (design decision 7; calling convention in include/polder/kernel_abi.h).
//
// Input: a kernel in a module that the caller may destroy, linked with everything it calls, not yet
// optimised, with the host's data layout and triple. Address spaces may be flattened to 0 or not;
// __local variables are globals in addrspace(3) or have the attribute
// "polder-local". Functions are recognised by their mangled OpenCL names (work_item_functions.h).
//
// Output: a new external function with the WorkGroupFunction ABI in the same module, whose work-items are
// lanes where possible. LLVM's O3 pipeline must follow. The kernel itself stays in the module, unused.
//
// Algorithm, in the order of the steps:
//   frame/inliner        inlines all functions that use an id, a barrier or a __local variable
//   frame/lowering       replaces ids by loads from the launch context and by intrinsics, __local variables by offsets
//   frame/private_volatiles  lets volatile variables of a work-item that hold constants be values
//   frame/simplify       runs scalar passes; accumulators keeps elements that loops add to in registers
//   work_items/local_atomics  marks atomic operations on __local memory; after the vectorizer they become ordinary operations
//   work_items/unchanging_atomics  lets atomic operations that would write the same value again only read, also after the vectorizer
//   vectorizer/lane_dimension  chooses the dimension whose work-items become lanes; frame/group_order lets the groups follow it
//   regions/common_steps separates the steps that all work-items have in common from values that advance around barriers
//   regions/late_values  computes what follows from ids and from values that all work-items share behind the barriers, not before them
//   work_items/uniformity  finds the values and branches that are the same for all work-items
//   work_items/uniform_division  replaces divisions by a uniform value by multiplications
//   work_items/hoisting  moves uniform values before the loops
//   regions/cuts         finds where all work-items meet: barriers, and uniform branches that decide which barrier comes next
//   regions/work_item_loops  puts the code between cuts (a region) into a loop over work-items. A value that lives across a cut is
//                        recomputed, kept once (when uniform), or kept in an array over the work-items in `scratch`
//                        (carried_values). Regions with sub-group functions get loops over sub-groups (loop_nest).
//   regions/idle_loops   skips the loops in which no work-item passes the guard at the start of the region
//   vectorizer           makes neighbouring work-items the lanes of vectors where that is faster (lane_cost): lane_plan decides
//                        which blocks run under masks, lane_shape how values differ between lanes; vector_loop and lane_code
//                        write the code, lane_memory and lane_access its memory accesses
// A region is all code from one cut to the next ones, so that any control flow is handled,
// reducible or not. Code that is reachable from several cuts is copied for each of them.
//
// Threads: a call uses its module and its LLVMContext alone.
// Errors: llvm::Error with a sentence for the build log (recursion that reaches a barrier or an id).
#pragma once

#include "targets/host/workgroup/frame/options.h"

#include <llvm/Support/Error.h>

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct WorkGroupResult {
    llvm::Function* function = nullptr;
    uint64_t local_bytes = 0;  // __local variables of the kernel and its callees
    uint64_t scratch_bytes_per_work_item = 0;  // 0: `scratch` may be null
    uint64_t private_bytes_per_work_item = 0;  // variables of a work-item that are in memory
    uint32_t vector_width = 1;  // work-items that one pass of the inner loop is meant to cover
    bool has_barriers = false;
    LaneReport lanes;
};

[[nodiscard]] llvm::Expected<WorkGroupResult> make_work_group_function(llvm::Function& kernel,
                                                                       const WorkGroupOptions& options);

}  // namespace polder::compiler::workgroup
