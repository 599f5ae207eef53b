// Computes KernelInfo, the properties of a kernel that the runtime needs, from its LLVM function and Clang's metadata.
//
// Expects a retargeted module after LLVM's inference of function attributes. `readonly`, `writeonly` and `readnone` of an argument
// then cover the callees too; a pointer that escapes (that is stored, or converted to an integer) has none of them.
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Module.h>
#include <vector>

namespace polder::compiler {

// A kernel's metadata: a number for each argument, KernelArgument::bytes_max. Only kernels from SPIR-V have it.
constexpr const char* argument_bytes_max = "kernel_arg_bytes_max";

[[nodiscard]] bool is_kernel(const llvm::Function& function);

// All kernels that `module` defines, sorted by name.
[[nodiscard]] std::vector<KernelInfo> kernel_infos(const llvm::Module& module);
// Those of blocks (block_kernels.h), which kernel_infos leaves out.
[[nodiscard]] std::vector<KernelInfo> block_infos(const llvm::Module& module);

}  // namespace polder::compiler
