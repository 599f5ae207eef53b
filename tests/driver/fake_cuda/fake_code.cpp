// Code of the fake libcuda: modules, kernels and launches. Machine code is PTX behind a header with a hash and the version of the library,
// which refuses the code of another one.
#include "../../support/ptx_assembler.h"
#include "fake_entry.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

using namespace polder::cuda;
using namespace polder::cuda::fake;

namespace polder::cuda {

struct LinkOfCuda {
    std::vector<std::pair<JitOption, void*>> options;
    std::string ptx;
    std::string code;
};

}  // namespace polder::cuda

namespace {

struct CodeHeader {
    char magic[4];
    int version;
    uint64_t size;
    uint64_t hash;
};
constexpr std::string_view magic = "\177ELF";

std::string machine_code(const std::string& ptx) {
    CodeHeader header{{}, state().driver_version, ptx.size(), std::hash<std::string>{}(ptx)};
    magic.copy(header.magic, sizeof header.magic);
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + ptx;
}

// The text that `image` was made from; empty when it is damaged, or of another version.
std::string text_of_machine_code(const char* image) {
    CodeHeader header;
    std::memcpy(&header, image, sizeof header);
    if (header.version != state().driver_version || header.size > (1u << 24))
        return {};
    const std::string text(image + sizeof header, header.size);
    return std::hash<std::string>{}(text) == header.hash ? text : std::string();
}

using Options = std::vector<std::pair<JitOption, void*>>;

void log_refusal(const Options& options, const std::string& log) {
    size_t size = 0;
    for (const auto& [option, value] : options)
        if (option == jit_error_log_buffer_bytes)
            size = reinterpret_cast<uintptr_t>(value);
    for (const auto& [option, value] : options)
        if (option == jit_error_log_buffer)
            std::snprintf(static_cast<char*>(value), size, "%s", log.c_str());
}

// What the interpreter or NVIDIA's assembler objects to goes to `log`. Null then.
std::shared_ptr<const polder::ptx::Module> parsed(const std::string& text, std::string& log) {
    const unsigned processor = state().processor;
    std::shared_ptr<const polder::ptx::Module> module = polder::ptx::Module::load(text, processor, log);
    if (module && state().assembles && !polder::test::ptxas().empty()) {
        log = polder::test::assembler_errors(text, "sm_" + std::to_string(processor));
        if (!log.empty()) {
            std::fprintf(stderr, "fake CUDA: %s\n", log.c_str());
            return nullptr;
        }
    }
    return module;
}

Options listed(unsigned count, const JitOption* options, void** values) {
    Options list;
    for (unsigned i = 0; i < count; ++i)
        list.emplace_back(options[i], values[i]);
    return list;
}

}  // namespace

EXPORT Code cuModuleLoadDataEx(Module* module, const void* image, unsigned count, JitOption* options,
                               void** values) try {
    ENTER("cuModuleLoadDataEx");
    NEEDS_CONTEXT();
    const auto* const bytes = static_cast<const char*>(image);
    const bool is_machine_code = std::string_view(bytes, magic.size()) == magic;
    const std::string text = is_machine_code ? text_of_machine_code(bytes) : std::string(bytes);
    if (is_machine_code && text.empty())
        return invalid_image;
    std::string log;
    std::shared_ptr<const polder::ptx::Module> loaded =
        is_machine_code ? polder::ptx::Module::load(text, state().processor, log) : parsed(text, log);
    if (!loaded) {
        log_refusal(listed(count, options, values), log);
        return invalid_ptx;
    }
    *module = new ModuleOfCuda{std::move(loaded), {}};
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuModuleUnload(Module module) try { RELEASE("cuModuleUnload", delete module); }
CATCH_OUT_OF_MEMORY

EXPORT Code cuLinkCreate_v2(unsigned count, JitOption* options, void** values, Link* link) try {
    ENTER("cuLinkCreate_v2");
    NEEDS_CONTEXT();
    *link = new LinkOfCuda{listed(count, options, values), {}, {}};
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuLinkAddData_v2(Link link, JitInput type, void* data, size_t size, const char*, unsigned, JitOption*,
                             void**) try {
    ENTER("cuLinkAddData_v2");
    const auto* const text = static_cast<const char*>(data);
    if (type != jit_input_ptx || size == 0 || text[size - 1] != '\0')
        return invalid_value;
    link->ptx = text;
    std::string log;
    if (parsed(link->ptx, log))
        return code_success;
    log_refusal(link->options, log);
    return invalid_ptx;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuLinkComplete(Link link, void** code, size_t* size) try {
    ENTER("cuLinkComplete");
    link->code = machine_code(link->ptx);
    *code = link->code.data();
    *size = link->code.size();
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuLinkDestroy(Link link) try { RELEASE("cuLinkDestroy", delete link); }
CATCH_OUT_OF_MEMORY

EXPORT Code cuModuleGetFunction(Function* function, Module module, const char* name) try {
    ENTER("cuModuleGetFunction");
    const polder::ptx::Function* const kernel = module->module->kernel(name);
    if (kernel == nullptr)
        return not_found;
    const std::lock_guard lock(state().mutex);
    const auto [made, is_new] = module->functions.try_emplace(name);
    if (is_new) {  // other threads may launch the others
        made->second.module = module->module;
        made->second.kernel = kernel;
        if (const auto found = state().kernels.find(name); found != state().kernels.end())
            made->second.registered = found->second;
    }
    *function = &made->second;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuFuncGetAttribute(int* value, FunctionAttribute attribute, Function function) try {
    ENTER("cuFuncGetAttribute");
    switch (static_cast<int>(attribute)) {
    case function_max_threads_per_block:
        *value = function->kernel->threads_max != 0 ? static_cast<int>(function->kernel->threads_max) : 1024;
        break;
    case function_shared_bytes: *value = static_cast<int>(function->module->static_shared_bytes()); break;
    case function_local_bytes: *value = static_cast<int>(function->kernel->local_bytes); break;
    case function_registers: *value = 32; break;
    default: *value = 0;
    }
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuFuncSetAttribute(Function, FunctionAttribute, int value) try {
    ENTER("cuFuncSetAttribute");
    return value <= max_shared_bytes ? code_success : invalid_value;
}
CATCH_OUT_OF_MEMORY

namespace {

// What a launch keeps until its stream executes it.
struct FakeLaunch {
    FunctionOfCuda function;
    polder::ptx::Module::Grid grid;
    // Aligned as a parameter of 16 bytes.
    std::vector<std::byte> parameters;
};

void execute(ContextOfCuda& context, const FakeLaunch& launch) {
    if (launch.function.registered) {
        const auto& blocks = launch.grid.blocks;
        run_grid(*launch.function.registered, {blocks[0], blocks[1], blocks[2]}, launch.grid.dynamic_shared_bytes,
                 launch.parameters);
        return;
    }
    const auto outcome = launch.function.module->run(*launch.function.kernel, launch.grid, launch.parameters,
                                                     state().memory_of(context.device));
    if (outcome.fault == polder::ptx::Fault::none)
        return;
    std::fprintf(stderr, "fake GPU %d: kernel %s: %s\n", context.device, launch.function.kernel->name.c_str(),
                 outcome.what.c_str());
    {
        const std::lock_guard lock(state().mutex);
        state().last_fault = outcome.what;
    }
    context.lost_by.store(static_cast<int>(outcome.fault));
}

}  // namespace

EXPORT Code cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,
                           void** extra) try {
    ENTER("cuLaunchKernel");
    NEEDS_STREAM(stream);
    const uint64_t shared = function->module->static_shared_bytes() + shared_bytes;
    int threads_max = 0;
    cuFuncGetAttribute(&threads_max, function_max_threads_per_block, function);
    if (grid_y > 300 || grid_z > 3 || uint64_t{block_x} * block_y * block_z > static_cast<uint64_t>(threads_max) ||
        parameters || !extra || shared > static_cast<uint64_t>(max_shared_bytes))
        return invalid_value;
    const auto* const begin = static_cast<const std::byte*>(extra[1]);
    const size_t size = *static_cast<const size_t*>(extra[3]);
    if (size < function->kernel->parameter_bytes)
        return invalid_value;
    FakeLaunch launch{*function,
                      {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes},
                      std::vector<std::byte>(begin, begin + size)};
    stream->push([&context = stream->context, launch = std::move(launch)] { execute(context, launch); });
    return code_success;
}
CATCH_OUT_OF_MEMORY
