// NVIDIA's GPUs as LLVM describes them: triple, data layout, processors and address spaces.
//
// Global and constant memory are address space 1, local memory is 3 ("shared"); private and generic pointers are 0. Constant
// memory is global memory, because CUDA's constant bank holds only 64 KiB and buffers are never in it.
// Any thread.
#pragma once

#include "retarget.h"

#include <llvm/Target/TargetMachine.h>
#include <memory>
#include <string>

namespace polder::compiler {

inline constexpr unsigned nvptx_global_space = 1;
inline constexpr unsigned nvptx_local_space = 3;

// Null when LLVM does not know `processor` ("sm_70" to "sm_120").
[[nodiscard]] std::unique_ptr<llvm::TargetMachine> create_nvptx_machine(const std::string& processor);

// Gives `module` the address spaces, the triple and the data layout of NVPTX.
void retarget_to_nvptx(llvm::Module& module, const AddressSpaceNumbers& numbers);

}  // namespace polder::compiler
