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

// Versions of PTX that code needs, as LLVM counts them. `any`: the oldest one for the processor.
enum class PtxVersion : unsigned {
    any = 0,
    parameter_addresses = 77,  // cvta.param; CUDA 11.7
    large_parameters = 81,  // more than 4352 bytes; CUDA 12.1
};

// Null when LLVM does not know `processor` ("sm_70" to "sm_120").
[[nodiscard]] std::unique_ptr<llvm::TargetMachine> create_nvptx_machine(const std::string& processor,
                                                                        PtxVersion version = PtxVersion::any);

// Gives `module` the address spaces, the triple and the data layout of NVPTX.
void retarget_to_nvptx(llvm::Module& module, const AddressSpaceNumbers& numbers);

}  // namespace polder::compiler
