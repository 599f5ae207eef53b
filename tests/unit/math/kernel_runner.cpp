#include "kernel_runner.h"

#include "../ptx_support.h"

#include <compiler/compiler.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace polder::test {
namespace {

constexpr uint64_t group_size = 256;

struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory allocate(uint64_t bytes) {
    const uint64_t alignment = local_memory_alignment;
    return Memory{static_cast<std::byte*>(std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment))};
}

compiler::Target target() {
    compiler::Target result;
    result.code.local_memory_bytes = 1 << 20;
    result.extensions = {"cl_khr_fp16",
                         "cl_khr_fp64",
                         "cl_ext_float_atomics",
                         "cl_khr_int64_base_atomics",
                         "cl_khr_int64_extended_atomics",
                         "cl_khr_byte_addressable_store",
                         "cl_khr_global_int32_base_atomics",
                         "cl_khr_global_int32_extended_atomics",
                         "cl_khr_local_int32_base_atomics",
                         "cl_khr_local_int32_extended_atomics",
                         "cl_khr_subgroup_ballot",
                         "cl_khr_subgroup_clustered_reduce",
                         "cl_khr_subgroup_extended_types",
                         "cl_khr_subgroup_non_uniform_arithmetic",
                         "cl_khr_subgroup_non_uniform_vote",
                         "cl_khr_subgroup_rotate",
                         "cl_khr_subgroup_shuffle",
                         "cl_khr_subgroup_shuffle_relative",
                         "cl_intel_subgroups",
                         "cl_intel_subgroups_char",
                         "cl_intel_subgroups_long",
                         "cl_intel_subgroups_short",
                         "cl_khr_extended_bit_ops",
                         "cl_khr_integer_dot_product"};
    result.features = {"__opencl_c_ext_fp16_global_atomic_add",
                       "__opencl_c_ext_fp16_global_atomic_load_store",
                       "__opencl_c_ext_fp16_global_atomic_min_max",
                       "__opencl_c_ext_fp16_local_atomic_add",
                       "__opencl_c_ext_fp16_local_atomic_load_store",
                       "__opencl_c_ext_fp16_local_atomic_min_max",
                       "__opencl_c_fp64",
                       "__opencl_c_int64",
                       "__opencl_c_generic_address_space",
                       "__opencl_c_program_scope_global_variables",
                       "__opencl_c_work_group_collective_functions",
                       "__opencl_c_atomic_order_acq_rel",
                       "__opencl_c_atomic_order_seq_cst",
                       "__opencl_c_atomic_scope_device",
                       "__opencl_c_atomic_scope_all_devices",
                       "__opencl_c_subgroups",
                       "__opencl_c_integer_dot_product_input_4x8bit",
                       "__opencl_c_integer_dot_product_input_4x8bit_packed"};
    return result;
}

} // namespace

struct KernelRunner::State {
    std::shared_ptr<const compiler::Module> module;
    std::shared_ptr<compiler::Executable> executable;
    std::string printed;
};

KernelRunner::KernelRunner(const std::string& source) : state_(std::make_unique<State>()) {
    std::string log;
    compiler::CompileInput input;
    input.source = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" + source;
    input.options = "-cl-std=CL3.0";
    input.target = target();
    const auto object = compiler::compile(input, log);
    if (!object) {
        ADD_FAILURE() << log;
        return;
    }
    compiler::LinkInput objects;
    objects.modules = {*object};
    objects.target = target();
    auto module = compiler::link(objects, log);
    if (!module) {
        ADD_FAILURE() << log;
        return;
    }
    state_->module = *module;
    auto executable = compiler::Executable::open(state_->module, target());
    if (!executable) {
        ADD_FAILURE() << "the module cannot be loaded";
        return;
    }
    state_->executable = *executable;
    // The same kernels as PTX, which the assembler must accept.
    if (std::getenv("POLDER_TEST_PTX"))
        compiler::test::expect_ptx(state_->module);
}

KernelRunner::~KernelRunner() = default;

const std::string& KernelRunner::printed() const { return state_->printed; }

void KernelRunner::run(const std::string& kernel, std::span<void* const> pointers, size_t count) {
    std::array<uint64_t, 3> local_size{std::min<uint64_t>(group_size, count), 1, 1};
    if (state_->module)
        for (const compiler::KernelInfo& info : state_->module->kernels())
            if (info.name == kernel)
                local_size = info.reqd_work_group_size.value_or(local_size);
    run(kernel, pointers, Range{{count, 1, 1}, local_size});
}

void KernelRunner::run(const std::string& kernel, std::span<void* const> pointers, const Range& range) {
    if (!state_->executable)
        return;
    const auto code = state_->executable->code(kernel, std::nullopt);
    if (!code) {
        ADD_FAILURE() << kernel << " does not compile: " << code.error().detail();
        return;
    }
    const auto& compiled = std::get<driver::HostCode>(**code);
    const auto infos = state_->module->kernels();
    const auto info = std::find_if(infos.begin(), infos.end(), [&](const auto& each) { return each.name == kernel; });
    ASSERT_NE(info, infos.end()) << kernel;
    ASSERT_EQ(info->arguments.size(), pointers.size());
    const Memory arguments = allocate(info->arguments_size);
    for (size_t i = 0; i < pointers.size(); ++i)
        std::memcpy(arguments.get() + info->arguments[i].offset, &pointers[i], sizeof(void*));

    LaunchContext context{};
    uint64_t items = 1;
    for (size_t d = 0; d < 3; ++d) {
        context.global_size[d] = range.global_size[d];
        context.local_size[d] = range.local_size[d];
        context.num_groups[d] = (range.global_size[d] + range.local_size[d] - 1) / range.local_size[d];
        items *= range.local_size[d];
    }
    context.work_dim = 3;
    context.local_bytes = static_cast<uint32_t>(compiled.local_bytes);
    context.print = [](void* user, const char* text, size_t size) {
        static_cast<std::string*>(user)->append(text, size);
    };
    context.print_user = &state_->printed;
    const Memory local = allocate(compiled.local_bytes);
    const Memory scratch = allocate(compiled.scratch_bytes_per_work_item * items + 4096);
    uint64_t id[3];
    for (id[2] = 0; id[2] < context.num_groups[2]; ++id[2])
        for (id[1] = 0; id[1] < context.num_groups[1]; ++id[1])
            for (id[0] = 0; id[0] < context.num_groups[0]; ++id[0])
                compiled.function(arguments.get(), &context, id, local.get(), scratch.get());
}

} // namespace polder::test
