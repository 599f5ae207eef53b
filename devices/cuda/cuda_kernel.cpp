// Loading: CUDA compiles the PTX of a program once, and the machine code is stored on disk. Later kernels of the program find the module
// by its text. Launching: the hidden arguments are appended to the packed arguments, and the range is divided into grids within
// CUDA's limits.
#include <base/code_cache.h>

#include <algorithm>
#include <cstring>
#include <cuda/cuda_kernel.h>
#include <cuda/required_sizes.h>

namespace polder::cuda {

namespace {

// The most private memory of a thread on all GPUs so far ("local memory" in the technical specifications of CUDA's programming guide).
constexpr uint64_t private_bytes_max = 512 << 10;

// The error messages of CUDA's compiler for code that it refuses.
class JitLog {
public:
    static constexpr unsigned count = 2;
    JitOption* options() { return options_; }
    void** values() { return values_; }
    [[nodiscard]] Error error(const CudaApi& api, Code code) const {
        const std::string said = text_.substr(0, text_.find('\0'));
        return Error{Status::out_of_resources,
                     "CUDA refuses the code: " + api.name_of(code) + (said.empty() ? "" : "\n" + said)};
    }

private:
    std::string text_ = std::string(4096, '\0');
    JitOption options_[count] = {jit_error_log_buffer, jit_error_log_buffer_bytes};
    void* values_[count] = {text_.data(), reinterpret_cast<void*>(static_cast<uintptr_t>(text_.size()))};
};

// Machine code for the context's GPU.
Result<std::string> compiled(const CudaApi& api, std::string ptx) {
    JitLog log;
    Link link = nullptr;
    POLDER_CUDA_TRY(api, link_create(JitLog::count, log.options(), log.values(), &link), "cuLinkCreate");
    void* code = nullptr;
    size_t size = 0;
    // PTX is text that ends with a null, which counts.
    Code result = api.link_add(link, jit_input_ptx, ptx.data(), ptx.size() + 1, "kernel", 0, nullptr, nullptr);
    if (result == code_success)
        result = api.link_complete(link, &code, &size);
    // The code belongs to the link.
    Result<std::string> made = fail(Status::out_of_resources);
    if (result == code_success)
        made = std::string(static_cast<const char*>(code), size);
    else
        made = fail(log.error(api, result));
    api.link_destroy(link);
    return made;
}

Result<Module> module_of(const CudaApi& api, const std::string& code) {
    JitLog log;
    Module module = nullptr;
    if (const Code result = api.module_load(&module, code.c_str(), JitLog::count, log.options(), log.values()))
        return fail(log.error(api, result));
    return module;
}

// A module of new machine code.
struct Compiled {
    std::string code;
    Module module = nullptr;
};
Result<Compiled> load_compiled(const CudaApi& api, std::string ptx) {
    POLDER_ASSIGN(code, compiled(api, std::move(ptx)));
    POLDER_ASSIGN(module, module_of(api, code));
    return Compiled{std::move(code), module};
}

// Whether the GPU has registers for the work-groups that the kernels require.
bool has_registers_for(const CudaApi& api, Module module, const std::vector<RequiredSize>& required) {
    return std::ranges::all_of(required, [&](const RequiredSize& size) {
        Function function = nullptr;
        int most = 0;
        return api.module_function(&function, module, size.entry.c_str()) == code_success &&
               api.function_attribute(&most, function_max_threads_per_block, function) == code_success &&
               static_cast<uint64_t>(most) >= size.threads;
    });
}

// With required sizes only when the GPU has too few registers otherwise (required_sizes.h).
Result<Compiled> compiled_module(const CudaApi& api, const std::string& ptx) {
    const std::vector<RequiredSize> required = required_sizes(ptx);
    if (!required.empty())
        if (Result<Compiled> made = load_compiled(api, without_required_sizes(ptx))) {
            if (has_registers_for(api, made->module, required))
                return made;
            api.module_unload(made->module);
        }
    return load_compiled(api, ptx);
}

// Without this cache, CUDA would compile PTX in each process. Stored machine code is checked by loading it. When CUDA does not load it, for
// example because it is for another GPU, the PTX is compiled again.
Result<Module> module_of_ptx(const CudaContext& context, std::string& ptx) {
    CodeCache* const cache = CodeCache::installed();
    if (!cache)
        return module_of(context.api, ptx);
    const std::string processor =
        "sm_" + std::to_string(context.facts.compute_major) + std::to_string(context.facts.compute_minor);
    const std::string version = "CUDA driver " + std::to_string(context.facts.driver_version);
    const std::string_view parts[] = {"cubin without required sizes", processor, version, ptx};
    if (const std::optional<std::string> kept = cache->load(parts))
        if (Result<Module> module = module_of(context.api, *kept))
            return module;
    POLDER_ASSIGN(made, compiled_module(context.api, ptx));
    try {
        cache->store(parts, made.code);
    } catch (...) {
        context.api.module_unload(made.module);
        throw;
    }
    return made.module;
}

}  // namespace

Result<std::shared_ptr<LoadedModule>> LoadedModule::load(CudaContext& context, std::string_view code) {
    const CudaContext::Current current(context);
    std::string text(code);
    POLDER_ASSIGN(handle, module_of_ptx(context, text));
    try {
        return std::shared_ptr<LoadedModule>(new LoadedModule(context, handle));
    } catch (...) {
        context.api.module_unload(handle);
        throw;
    }
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
    Code failed = code_success;
    const auto ask = [&](FunctionAttribute attribute) {
        int value = 0;
        if (const Code result = api.function_attribute(&value, attribute, function))
            failed = result;
        return static_cast<uint32_t>(value);
    };
    const uint64_t static_bytes = ask(function_shared_bytes);
    if (static_bytes + code.dynamic_local_bytes > context.facts.shared_bytes)
        return fail(Status::out_of_resources,
                    "the kernel needs " + std::to_string(static_bytes + code.dynamic_local_bytes) +
                        " bytes of local memory, the GPU has " + std::to_string(context.facts.shared_bytes));
    // CUDA requires this call for more than 48 KiB of shared memory.
    const auto dynamic_max = static_cast<int>(context.facts.shared_bytes - static_bytes);
    POLDER_CUDA_TRY(api, function_set_attribute(function, function_max_dynamic_shared_bytes, dynamic_max),
                    "cuFuncSetAttribute");
    driver::KernelLimits limits;
    limits.max_work_group_size = ask(function_max_threads_per_block);
    limits.local_bytes = code.local_bytes;
    limits.private_bytes_per_work_item = ask(function_local_bytes);
    limits.registers_per_work_item = ask(function_registers);
    if (failed != code_success)
        return fail(api.error(failed, "cuFuncGetAttribute"));
    // CUDA would load such a kernel, too, but a launch would not write its results.
    if (limits.private_bytes_per_work_item > private_bytes_max)
        return fail(Status::out_of_resources, "the kernel needs " + std::to_string(limits.private_bytes_per_work_item) +
                                                  " bytes of private memory for each work-item, the GPU has " +
                                                  std::to_string(private_bytes_max));
    limits.preferred_multiple = context.facts.warp_size;
    return std::unique_ptr<driver::LoadedKernel>(new CudaKernel(context, std::move(module), function, code, limits));
}

CudaKernel::Parameter CudaKernel::parameter_of(const driver::LaunchOperation& operation) const {
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
    Parameter parameter;
    parameter.reserve(ptx_parameter_bytes(arguments_size_));
    parameter.append(operation.arguments.first(std::min<size_t>(operation.arguments.size(), arguments_size_)));
    while (parameter.size() < ptx_hidden_offset(arguments_size_))
        parameter.push_back(std::byte{0});
    parameter.append(std::as_bytes(std::span(&hidden, 1)));
    return parameter;
}

void CudaKernel::set_print_ring(Parameter& parameter, DevicePointer ring) const {
    const uint64_t address = ring;
    std::memcpy(parameter.data() + ptx_hidden_offset(arguments_size_) + offsetof(PtxHiddenArguments, print_ring),
                &address, sizeof address);
}

Code CudaKernel::launch(Stream stream, Parameter& parameter, uint64_t dynamic_bytes) const {
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
