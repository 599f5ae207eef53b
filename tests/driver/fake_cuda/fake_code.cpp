// Code of the fake libcuda: modules, kernels and launches. PTX is text with an entry. Machine code is that text behind a header with a
// hash and the version of the library, which refuses the code of another one.
#include "fake_entry.h"

#include <cstring>
#include <functional>
#include <span>
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

void log_refusal(std::span<const std::pair<JitOption, void*>> options) {
    for (const auto& [option, value] : options)
        if (option == jit_error_log_buffer)
            std::strcpy(static_cast<char*>(value), "ptxas error: no entry");
}

bool has_entry(const std::string& ptx) { return ptx.find(".entry") != std::string::npos; }

std::vector<std::pair<JitOption, void*>> listed(unsigned count, const JitOption* options, void** values) {
    std::vector<std::pair<JitOption, void*>> list;
    for (unsigned i = 0; i < count; ++i)
        list.emplace_back(options[i], values[i]);
    return list;
}

}  // namespace

EXPORT Code cuModuleLoadDataEx(Module* module, const void* image, unsigned count, JitOption* options, void** values) {
    ENTER("cuModuleLoadDataEx");
    NEEDS_CONTEXT();
    const auto* const bytes = static_cast<const char*>(image);
    if (std::string_view(bytes, magic.size()) == magic) {
        std::string text = text_of_machine_code(bytes);
        if (text.empty())
            return invalid_image;
        *module = new ModuleOfCuda{std::move(text)};
        return code_success;
    }
    const std::string text(bytes);
    if (!has_entry(text)) {
        log_refusal(listed(count, options, values));
        return invalid_ptx;
    }
    *module = new ModuleOfCuda{text};
    return code_success;
}
EXPORT Code cuModuleUnload(Module module) {
    delete module;
    return code_success;
}

EXPORT Code cuLinkCreate_v2(unsigned count, JitOption* options, void** values, Link* link) {
    ENTER("cuLinkCreate");
    NEEDS_CONTEXT();
    *link = new LinkOfCuda{listed(count, options, values), {}, {}};
    return code_success;
}
EXPORT Code cuLinkAddData_v2(Link link, JitInput type, void* data, size_t size, const char*, unsigned, JitOption*,
                             void**) {
    ENTER("cuLinkAddData");
    const auto* const text = static_cast<const char*>(data);
    if (type != jit_input_ptx || size == 0 || text[size - 1] != '\0')
        return invalid_value;
    link->ptx = text;
    if (has_entry(link->ptx))
        return code_success;
    log_refusal(link->options);
    return invalid_ptx;
}
EXPORT Code cuLinkComplete(Link link, void** code, size_t* size) {
    ENTER("cuLinkComplete");
    link->code = machine_code(link->ptx);
    *code = link->code.data();
    *size = link->code.size();
    return code_success;
}
EXPORT Code cuLinkDestroy(Link link) {
    ENTER("cuLinkDestroy");
    delete link;
    return code_success;
}

EXPORT Code cuModuleGetFunction(Function* function, Module module, const char* name) {
    ENTER("cuModuleGetFunction");
    const std::lock_guard lock(state().mutex);
    const auto found = state().kernels.find(name);
    if (found == state().kernels.end() || module->text.find(name) == std::string::npos)
        return not_found;
    // Kernels live as long as the process, like this.
    static std::map<std::string, FunctionOfCuda> functions;
    functions[name].kernel = found->second;
    *function = &functions[name];
    return code_success;
}
EXPORT Code cuFuncGetAttribute(int* value, FunctionAttribute attribute, Function) {
    *value = attribute == function_max_threads_per_block ? 1024 : attribute == function_registers ? 32 : 0;
    return code_success;
}
EXPORT Code cuFuncSetAttribute(Function, FunctionAttribute, int value) {
    return value <= max_shared_bytes ? code_success : invalid_value;
}
EXPORT Code cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,
                           void** extra) {
    ENTER("cuLaunchKernel");
    NEEDS_CONTEXT();
    if (grid_y > 300 || grid_z > 3 || block_x * block_y * block_z > 1024 || parameters || !extra ||
        static_cast<int>(shared_bytes) > max_shared_bytes)
        return invalid_value;
    const auto* const begin = static_cast<const std::byte*>(extra[1]);
    std::vector<std::byte> buffer(begin, begin + *static_cast<const size_t*>(extra[3]));
    stream->push([kernel = function->kernel, grid_x, grid_y, grid_z, shared_bytes, buffer = std::move(buffer)] {
        polder::cuda::fake::run_grid(kernel, {grid_x, grid_y, grid_z}, shared_bytes, buffer);
    });
    return code_success;
}
