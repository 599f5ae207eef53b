// Generates object code of one kernel's work-group function from the host form of an executable.
//
// Reads only the kernel and what it calls, guards divisions, makes the work-group function by the work-group pass
// (lib/compiler/targets/host/workgroup), runs LLVM's O3 pipeline with both vectorizers for this processor, and emits an ELF object.
// Any thread; one call uses a context of its own.
// Errors: out_of_resources, with the reason; also when the code is not needed any more (OptionalWork).
#pragma once

#include "cold_functions.h"
#include "module/module.h"
#include "targets/host/workgroup/workgroup.h"

#include <optional>
#include <span>
#include <string>

namespace polder::compiler {

struct KernelObject {
    std::string object;  // ELF
    std::string entry;  // the symbol of the work-group function
    uint64_t local_bytes = 0;
    uint64_t scratch_bytes_per_work_item = 0;
    uint64_t private_bytes_per_work_item = 0;
    uint64_t vector_width = 1;
    uint64_t lane_dimension = 0;  // the one whose work-items are lanes
    uint64_t other_dimension = 0;  // LaneDimensions::other
    uint64_t row_multiple = 1;  // Executable::row_multiple
    uint64_t stack_bytes = 0;
    std::vector<ColdFunction> cold_functions;  // that `object` calls
    std::vector<Form> other_forms;  // worth measuring beside planned code (other_forms.h)
    std::string lanes;  // a text for the user: whether work-items became lanes, or why not
};

struct KernelRequest {
    const CompiledModule& module;
    std::string_view host_bitcode;  // of the module's host form (lower.h)
    const KernelInfo& kernel;
    std::optional<WorkGroups> groups;
    std::span<const KnownArgument> known = {};
    Effort effort = Effort::full;
    Form form = Form::planned;  // not `best`
    Launches launches = Launches::any;
};

[[nodiscard]] Result<KernelObject> generate_code(const KernelRequest& request);

// Runs the work-group pass only, and returns its report.
[[nodiscard]] Result<workgroup::LaneReport> report_lanes(const KernelRequest& request, workgroup::Lanes lanes);

}  // namespace polder::compiler
