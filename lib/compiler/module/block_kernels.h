// Blocks that kernels enqueue (OpenCL C 6.15.17), as Clang leaves them in a module: for each block a kernel whose parameters are the address of
// the block's literal, and then the block's __local arguments. A call of __enqueue_kernel_... passes the kernel's address.
//
// prepare_blocks: for Clang's module. The kernels get the metadata of other kernels, and block_attribute. The functions that they call are no
// longer named by the literals: nothing reads that member.
// name_blocks: for the host's form of a module. Calls get the kernel's name, a constant string, instead of its address, so that each kernel has code
// of its own. Calls in functions with debug information ask for exact error codes.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

inline constexpr const char* block_attribute = "polder-block";

void prepare_blocks(llvm::Module& module);
void name_blocks(llvm::Module& module);

// Whether `function` is one of the functions of lib/kernel for blocks and events.
[[nodiscard]] bool is_device_enqueue(llvm::StringRef function);

}  // namespace polder::compiler
