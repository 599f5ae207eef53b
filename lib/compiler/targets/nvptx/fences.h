// Lowers atomic operations to the memory order and scope that OpenCL requires.
//
// LLVM's NVPTX back end turns `atomicrmw` into `atom` of relaxed order, for every order in the IR. Every atomic operation
// therefore becomes a relaxed one between fences, as PTX's memory model maps C++'s orders (Lustig, Sahasrabuddhe and Giroux: "A
// Formal Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019): release, a fence before; acquire, a fence after;
// sequentially consistent, fence.sc before and a fence after.
//
// The scope of all devices is treated as the scope of the device, because no memory is shared with another device at
// the same time (CL_DEVICE_SVM_ATOMICS is not reported).
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

void place_fences(llvm::Module& module);

}  // namespace polder::compiler
