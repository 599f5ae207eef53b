// Makes the entry function of a kernel in PTX (include/polder/ptx_abi.h). The entry reads the arguments, returns at once in threads
// outside of the range, and contains the kernel's body.
//
// Only the entry has the hidden arguments (sizes, offsets, the ring of printf). Functions that need them, such as those that call
// get_global_id, are therefore inlined into it; other functions stay functions.
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Function.h>

namespace polder::compiler {

struct KernelEntry {
    llvm::Function* function = nullptr;
    uint64_t local_bytes = 0;  // of the kernel's own local memory
    uint64_t dynamic_local_bytes = 0;  // how many of them the driver has to add to a launch
};

// Whether the kernel has image arguments: pointers into its parameter, which stays in its own memory.
[[nodiscard]] bool has_image(const KernelInfo& info);

// `kernel`: in a module for NVPTX, with the built-ins linked. out_of_resources when a function that has to be inlined is recursive.
[[nodiscard]] Result<KernelEntry> make_kernel_entry(llvm::Function& kernel, const KernelInfo& info,
                                                    const std::optional<WorkGroups>& groups);

}  // namespace polder::compiler
