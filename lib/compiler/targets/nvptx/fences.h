// Gives atomic operations the order and scope that OpenCL asks for.
//
// LLVM's NVPTX back end turns `atomicrmw` into `atom` of relaxed order, whatever the order in the IR. Every atomic operation
// therefore becomes a relaxed one between fences, as PTX's memory model maps C++'s orders (Lustig, Sahasrabuddhe and Giroux: "A
// Formal Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019): release, a fence before; acquire, a fence after;
// sequentially consistent, fence.sc before and a fence after.
//
// The scope of the whole system is served as that of the device: no memory here is shared with other devices at
// the same time (CL_DEVICE_SVM_ATOMICS is not reported).
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

void place_fences(llvm::Module& module);

}  // namespace polder::compiler
