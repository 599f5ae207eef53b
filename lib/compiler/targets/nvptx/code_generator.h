// From the target-neutral bitcode of an executable to PTX text of one kernel.
//
// Reads the kernel and what it calls, gives them NVPTX's address spaces, makes printf a record in a ring, links the
// built-ins, builds the entry (kernel_entry.h), makes atomic operations relaxed ones between fences (fences.h), and runs LLVM's
// O3 pipeline. Debug information is dropped. Any thread; one call uses a context of its own.
// Errors: out_of_resources, with the reason.
#pragma once

#include "program/module.h"

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
};

[[nodiscard]] Result<PtxKernel> generate_ptx(const PtxRequest& request);

}  // namespace polder::compiler
