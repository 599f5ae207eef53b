// The suite's kernels in OpenCL C, for drivers whose devices compile source.
#pragma once

#include "kernels.h"

#include <polder/driver.h>
#include <string>
#include <vector>

namespace polder::conformance {

// Valid during Device::load, as long as the next one is not made on this thread.
[[nodiscard]] inline driver::TargetCode source_of(const driver::HostCode& code, bool prints) {
    using Kind = driver::KernelParameter::Kind;
    static std::atomic<uint64_t> count{0};
    static thread_local driver::SourceProgram program;
    static thread_local std::vector<driver::KernelParameter> parameters;
    std::string text;
    parameters = {{Kind::global_pointer, 0, 8}};
    if (prints) {
        text = "kernel void test() { printf(\"group %u\\n\", (uint)get_group_id(0)); }";
        parameters.clear();
    } else if (code.function == CountVisits::run) {
        text = R"(kernel void test(global uint* out) {
    const size_t x = get_global_id(0) - get_global_offset(0);
    const size_t y = get_global_id(1) - get_global_offset(1);
    const size_t z = get_global_id(2) - get_global_offset(2);
    out[(z * get_global_size(1) + y) * get_global_size(0) + x] += 1;
})";
    } else if (code.function == Scale::run) {
        text = R"(kernel void test(global uint* out, global const uint* in, uint factor) {
    out[get_global_id(0)] = in[get_global_id(0)] * factor;
})";
        parameters.push_back({Kind::global_pointer, 8, 8});
        parameters.push_back({Kind::value, 16, 4});
    } else if (code.function == DeepStack::run) {
        text = "kernel void test(global uint* out) { out[get_group_id(0)] = " +
               std::to_string((DeepStack::stack_bytes - 65536 + 4095) / 4096) + "; }";
    } else if (code.function == CheckWorkspace::run) {
        // The launch gives the argument 256 bytes behind the kernel's own.
        text = "#define OWN " + std::to_string(code.local_bytes) + R"(
kernel void test(global uint* out, local uchar* argument, ulong bytes, ulong scratch) {
    local uchar own[OWN];
    const uchar mark = (uchar)get_group_id(0);
    for (uint i = get_local_id(0); i < OWN; i += get_local_size(0))
        own[i] = mark;
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0))
        argument[i] = ~mark;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) != 0)
        return;
    uint wrong = 0;
    for (uint i = 0; i < OWN; ++i)
        wrong |= own[i] != mark ? 8 : 0;
    for (uint i = 0; i < 256; ++i)
        wrong |= argument[i] != (uchar)~mark ? 16 : 0;
    out[get_group_id(0)] = wrong;
})";
        parameters.push_back({Kind::local_pointer, 8, 8});
        parameters.push_back({Kind::value, 16, 8});
        parameters.push_back({Kind::value, 24, 8});
    }
    // Work-groups of different sizes need at least OpenCL C 2.0.
    program = {.id = ++count, .units = {{.text = text, .options = "-cl-std=CL3.0"}}, .is_build = true};
    driver::TargetCode made;
    made.format = driver::CodeFormat::opencl_c;
    made.program = &program;
    made.entry = "test";
    made.parameters = parameters;
    made.local_bytes = code.local_bytes;
    return made;
}

} // namespace polder::conformance
