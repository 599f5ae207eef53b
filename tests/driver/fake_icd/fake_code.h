// The suite's kernels for the fake ICD: registers work-group functions, and makes source that names them.
#pragma once

#include "../kernels.h"
#include "fake_icd.h"
#include "find.h"

#include <atomic>
#include <string>

namespace polder::fake_icd {

// Valid during Device::load, as long as the next one is not made on this thread.
inline driver::TargetCode code_of(const driver::HostCode& code) {
    using Kind = driver::KernelParameter::Kind;
    static std::atomic<uint64_t> count{0};
    static thread_local driver::SourceProgram program;
    static thread_local std::vector<driver::KernelParameter> parameters;
    const uint64_t id = ++count;
    const std::string entry = "kernel_" + std::to_string(id);
    parameters.clear();
    if (code.function == conformance::CountVisits::run || code.function == conformance::DeepStack::run)
        parameters = {{Kind::global_pointer, 0, 8}};
    else if (code.function == conformance::Scale::run)
        parameters = {{Kind::global_pointer, 0, 8}, {Kind::global_pointer, 8, 8}, {Kind::value, 16, 4}};
    else if (code.function == conformance::CheckWorkspace::run)
        parameters = {
            {Kind::global_pointer, 0, 8}, {Kind::local_pointer, 8, 8}, {Kind::value, 16, 8}, {Kind::value, 24, 8}};
    const Kernel kernel{code.function, code.local_bytes, code.scratch_bytes_per_work_item, parameters};
    static const auto register_kernel = find<RegisterKernel>("fake_icd_register_kernel");
    register_kernel(entry.c_str(), &kernel);
    program = {.id = id, .units = {{.text = "kernel void " + entry + "()"}}, .is_build = true};
    driver::TargetCode made;
    made.format = driver::CodeFormat::opencl_c;
    made.program = &program;
    made.entry = entry;
    made.parameters = parameters;
    made.local_bytes = code.local_bytes;
    return made;
}

} // namespace polder::fake_icd
