// From the host form of an executable to object code of one kernel's work-group function.
//
// Reads only the kernel and what it calls, guards divisions, lets the work-group pass (lib/compiler/targets/host/workgroup)
// make the function, runs LLVM's O3 pipeline with both vectorizers for this processor, and emits an ELF object.
// Any thread; one call uses a context of its own.
// Errors: out_of_resources, with the reason.
#pragma once

#include "program/module.h"
#include "targets/host/workgroup/workgroup.h"

#include <optional>
#include <string>

namespace polder::compiler {

struct KernelObject {
    std::string object;  // ELF
    std::string entry;  // its symbol
    uint64_t local_bytes = 0;
    uint64_t scratch_bytes_per_work_item = 0;
    uint64_t private_bytes_per_work_item = 0;
    uint64_t vector_width = 1;
    uint64_t stack_bytes = 0;
    std::string lanes;  // what became of its work-items, for the user
};

struct KernelRequest {
    const CompiledModule& module;
    std::string_view host_bitcode;  // of the module's host form (lower.h)
    const KernelInfo& kernel;
    std::optional<WorkGroups> groups;
};

[[nodiscard]] Result<KernelObject> generate_code(const KernelRequest& request);

// What the work-group pass makes of the kernel's work-items, without machine code.
[[nodiscard]] Result<workgroup::LaneReport> report_lanes(const KernelRequest& request, workgroup::Lanes lanes);

}  // namespace polder::compiler
