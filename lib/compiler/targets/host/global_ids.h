// Finds ids that a program adds up by itself, `get_group_id(d) * get_local_size(d) + get_local_id(d)`, and makes them
// `get_global_id(d) - get_global_offset(d)`: a kernel that asks for its group in no other way does not see how its
// work-items are grouped, so that they may be grouped as suits the device (decision 12).
//
// The two are the same where all groups have one size, which clEnqueueNDRangeKernel makes sure of unless the program is
// of OpenCL C 2.0 or later; with get_enqueued_local_size they are always the same.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

// `module`: retargeted, its variables in registers.
void find_global_ids(llvm::Module& module);

}  // namespace polder::compiler
