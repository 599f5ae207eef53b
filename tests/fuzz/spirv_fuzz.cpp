// The SPIR-V frontend, from bytes to retargeted IR, without the guard that catches crashes in the library: a fault of the
// translation must be seen. Start it with a folder of modules (build/tests/api/*.spv) to have something to change.
//
// SPIRV-Tools is not instrumented, and its validator is trusted to find invalid modules.
#include "frontend/spirv/frontend.h"

#include <compiler/spirv.h>

#include <llvm/IR/LLVMContext.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace polder::compiler;
    if (!inspect_spirv(std::as_bytes(std::span{data, size})))
        return 0;
    CompileInput input;
    input.source.assign(reinterpret_cast<const char*>(data), size);
    input.language = CompileInput::Language::spirv;
    input.target.extensions = {"cl_khr_fp64",
                               "cl_khr_fp16",
                               "cl_khr_subgroups",
                               "cl_khr_int64_base_atomics",
                               "cl_khr_expect_assume",
                               "cl_khr_extended_bit_ops",
                               "cl_khr_subgroup_ballot",
                               "cl_khr_integer_dot_product",
                               "cl_intel_subgroups",
                               "cl_intel_spirv_subgroups"};
    input.target.features = {"__opencl_c_generic_address_space", "__opencl_c_images", "__opencl_c_pipes",
                             "__opencl_c_device_enqueue", "__opencl_c_subgroups"};
    llvm::LLVMContext context;
    std::string log;
    if (!run_spirv_frontend(input, false, context, log) && log.empty())
        __builtin_trap();  // every refusal has a reason
    return 0;
}
