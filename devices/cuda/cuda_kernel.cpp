// Loading: CUDA compiles the PTX of a program once; later kernels of the program find the module by its text. Launching: the hidden
// arguments are appended to the packed ones, and the range is divided into grids within CUDA's limits.
#include <algorithm>
#include <cstring>
#include <cuda/cuda_kernel.h>

namespace polder::cuda {

Result<std::shared_ptr<LoadedModule>> LoadedModule::load(CudaContext& context, std::string_view code) {
    const CudaContext::Current current(context);
    // PTX is text that ends with a null; a cubin ignores what follows it.
    const std::string text(code);
    std::string log(4096, '\0');
    JitOption options[] = {jit_error_log_buffer, jit_error_log_buffer_bytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(static_cast<uintptr_t>(log.size()))};
    Module handle = nullptr;
    const Code code_of_load = context.api.module_load(&handle, text.c_str(), 2, options, values);
    if (code_of_load == code_success)
        return std::shared_ptr<LoadedModule>(new LoadedModule(context, handle));
    log.resize(std::strlen(log.c_str()));
    return fail(Status::out_of_resources,
                "CUDA refuses the code: " + context.api.name_of(code_of_load) + (log.empty() ? "" : "\n" + log));
}

LoadedModule::~LoadedModule() {
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    context_.api.module_unload(handle_);
}

Result<std::shared_ptr<LoadedModule>> ModuleCache::load(CudaContext& context, std::string_view code) {
    // Held while CUDA compiles, so that a program's kernels do not compile it several times.
    Lock lock(mutex_);
    std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = modules_.find(code); found != modules_.end())
        if (std::shared_ptr<LoadedModule> module = found->second.lock())
            return module;
    POLDER_ASSIGN(module, LoadedModule::load(context, code));
    modules_[std::string(code)] = module;
    return module;
}

Result<std::unique_ptr<driver::LoadedKernel>> CudaKernel::load(CudaContext& context, ModuleCache& modules,
                                                               const driver::TargetCode& code) {
    POLDER_ASSIGN(module, modules.load(context, code.code));
    const CudaContext::Current current(context);
    const CudaApi& api = context.api;
    Function function = nullptr;
    POLDER_CUDA_TRY(api, module_function(&function, module->handle(), code.entry.c_str()), "cuModuleGetFunction");
    const auto ask = [&](FunctionAttribute attribute) {
        int value = 0;
        return api.function_attribute(&value, attribute, function) == code_success ? static_cast<uint32_t>(value) : 0;
    };
    const uint64_t static_bytes = ask(function_shared_bytes);
    if (static_bytes + code.dynamic_local_bytes > context.facts.shared_bytes)
        return fail(Status::out_of_resources,
                    "the kernel needs " + std::to_string(static_bytes + code.dynamic_local_bytes) +
                        " bytes of local memory, the GPU has " + std::to_string(context.facts.shared_bytes));
    // More than 48 KiB must be asked for.
    const auto dynamic_max = static_cast<int>(context.facts.shared_bytes - static_bytes);
    POLDER_CUDA_TRY(api, function_set_attribute(function, function_max_dynamic_shared_bytes, dynamic_max),
                    "cuFuncSetAttribute");
    driver::KernelLimits limits;
    limits.max_work_group_size = ask(function_max_threads_per_block);
    limits.local_bytes = code.local_bytes;
    limits.private_bytes_per_work_item = ask(function_local_bytes);
    limits.registers_per_work_item = ask(function_registers);
    limits.preferred_multiple = context.facts.warp_size;
    return std::unique_ptr<driver::LoadedKernel>(new CudaKernel(context, std::move(module), function, code, limits));
}

std::vector<std::byte> CudaKernel::parameter_of(const driver::LaunchOperation& operation) const {
    PtxHiddenArguments hidden{};
    hidden.work_dim = operation.work_dim;
    hidden.program_variables = operation.program_variables.value;
    for (uint32_t d = 0; d < 3; ++d) {
        const bool used = d < operation.work_dim;
        hidden.global_offset[d] = used ? operation.global_offset[d] : 0;
        hidden.global_size[d] = used ? operation.global_size[d] : 1;
        hidden.local_size[d] = used ? static_cast<uint32_t>(operation.local_size[d]) : 1;
        hidden.num_groups[d] =
            static_cast<uint32_t>((hidden.global_size[d] + hidden.local_size[d] - 1) / hidden.local_size[d]);
    }
    std::vector<std::byte> parameter(ptx_parameter_bytes(arguments_size_));
    const size_t given = std::min<size_t>(operation.arguments.size(), arguments_size_);
    if (given != 0)
        std::memcpy(parameter.data(), operation.arguments.data(), given);
    std::memcpy(parameter.data() + ptx_hidden_offset(arguments_size_), &hidden, sizeof hidden);
    return parameter;
}

void CudaKernel::set_print_ring(std::vector<std::byte>& parameter, DevicePointer ring) const {
    const uint64_t address = ring;
    std::memcpy(parameter.data() + ptx_hidden_offset(arguments_size_) + offsetof(PtxHiddenArguments, print_ring),
                &address, sizeof address);
}

Code CudaKernel::launch(Stream stream, std::vector<std::byte>& parameter, uint64_t dynamic_bytes) const {
    std::byte* const place = parameter.data() + ptx_hidden_offset(arguments_size_);
    PtxHiddenArguments hidden;
    std::memcpy(&hidden, place, sizeof hidden);
    size_t size = parameter.size();
    // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE and CU_LAUNCH_PARAM_END.
    void* extra[] = {reinterpret_cast<void*>(uintptr_t{1}), parameter.data(), reinterpret_cast<void*>(uintptr_t{2}),
                     &size, nullptr};
    const auto count_from = [&](int d, uint64_t first) {
        return static_cast<unsigned>(std::min<uint64_t>(hidden.num_groups[d] - first, context_.facts.max_grid[d]));
    };
    for (uint64_t z = 0; z < hidden.num_groups[2]; z += context_.facts.max_grid[2])
        for (uint64_t y = 0; y < hidden.num_groups[1]; y += context_.facts.max_grid[1])
            for (uint64_t x = 0; x < hidden.num_groups[0]; x += context_.facts.max_grid[0]) {
                const uint64_t first[3] = {x, y, z};
                for (int d = 0; d < 3; ++d)
                    hidden.group_offset[d] = static_cast<uint32_t>(first[d]);
                std::memcpy(place, &hidden, sizeof hidden);
                const Code code = context_.api.launch(function_, count_from(0, x), count_from(1, y), count_from(2, z),
                                                      hidden.local_size[0], hidden.local_size[1], hidden.local_size[2],
                                                      static_cast<unsigned>(dynamic_bytes), stream, nullptr, extra);
                if (code != code_success)
                    return code;
            }
    return code_success;
}

}  // namespace polder::cuda
