// Replaces `get_group_id(d) * get_local_size(d) + get_local_id(d)`, which many programs write, by
// `get_global_id(d) - get_global_offset(d)`. When a kernel has no other call that depends on its work-group, the runtime may then
// choose any work-group size that suits the device (decision 12).
//
// The two expressions are equal when all work-groups have the same size. clEnqueueNDRangeKernel requires that, unless the program
// is of OpenCL C 2.0 or later. With get_enqueued_local_size they are always equal.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

// `module`: retargeted, its variables in registers.
void find_global_ids(llvm::Module& module);

}  // namespace polder::compiler
