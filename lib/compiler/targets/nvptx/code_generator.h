// Generates the PTX text of one kernel from the target-neutral bitcode of an executable.
//
// Reads the kernel and what it calls, zeroes memory if the request says so, changes the address spaces to NVPTX's, lowers printf (print.h), links the
// built-ins, builds the kernel's entry (kernel_entry.h), lowers atomic operations (fences.h), and runs LLVM's
// O3 pipeline. Debug information is dropped. Any thread; each call uses its own LLVMContext.
// Errors: out_of_resources, with the reason.
#pragma once

#include "module/module.h"

#include <compiler/zeroed_memory.h>

#include <optional>
#include <string>

namespace polder::compiler {

struct PtxKernel {
    std::string text;
    uint64_t local_bytes = 0;
    uint64_t dynamic_local_bytes = 0;
    bool prints = false;
};

struct PtxRequest {
    const CompiledModule& module;
    const KernelInfo& kernel;
    std::optional<WorkGroups> groups;
    std::string processor;
    ZeroedMemory zeroed;
};

[[nodiscard]] Result<PtxKernel> generate_ptx(const PtxRequest& request);

}  // namespace polder::compiler
