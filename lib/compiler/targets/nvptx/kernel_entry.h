// The entry of a kernel in PTX (include/polder/ptx_abi.h): unpacks the arguments, returns from threads outside the range, and
// holds the kernel's body with every function that asks about its work-item.
//
// Hidden arguments are only known to the entry, so that what needs them must be inlined into it; other functions may
// stay functions.
#pragma once

#include <compiler/compiler.h>

#include <llvm/IR/Function.h>

namespace polder::compiler {

struct KernelEntry {
    llvm::Function* function = nullptr;
    uint64_t local_bytes = 0;  // of the kernel's own local memory
    uint64_t dynamic_local_bytes = 0;  // how many of them the driver has to add to a launch
};

// `kernel`: in a module for NVPTX, its built-ins linked. out_of_resources for recursion among functions that ask about their
// work-item.
[[nodiscard]] Result<KernelEntry> make_kernel_entry(llvm::Function& kernel, const KernelInfo& info,
                                                    const std::optional<WorkGroups>& groups);

}  // namespace polder::compiler
