#include "frontend_cache.h"

#include "files/cache.h"
#include "frontend.h"

namespace polder::compiler {

std::string frontend_cache_key(const CompileInput& input, const BuildOptions& options) {
    const std::vector<std::string> arguments = frontend_arguments(input, options);
    // -cl-opt-disable and -cl-denorms-are-zero are not arguments of Clang. The module keeps them for Polder's own passes and for launches, so the
    // key needs them, too.
    std::vector<std::string_view> parts{"frontend", input.source, options.is_optimized ? "optimized" : "as written",
                                        options.flushes_subnormals ? "flushed" : ""};
    for (const NamedSource& header : input.headers) {
        parts.push_back(header.name);
        parts.push_back(header.text);
    }
    parts.insert(parts.end(), arguments.begin(), arguments.end());
    std::vector<std::string> numbers;
    if (input.language == CompileInput::Language::spirv)
        parts[0] = "spirv";
    for (const SpecializationValue& value : input.specialization) {
        numbers.push_back(std::to_string(value.id) + "=");
        for (const std::byte byte : value.bytes)
            numbers.back() += std::to_string(std::to_integer<int>(byte)) + ",";
    }
    parts.insert(parts.end(), numbers.begin(), numbers.end());
    return cache_key(parts);
}

std::optional<std::shared_ptr<const Module>> load_frontend_result(const std::string& key) {
    const auto bytes = load_cached(key);
    if (!bytes)
        return std::nullopt;
    auto module = Module::deserialize(std::as_bytes(std::span{bytes->data(), bytes->size()}));
    return module ? std::optional{std::move(*module)} : std::nullopt;
}

void store_frontend_result(const std::string& key, const CompiledModule& module) {
    const std::vector<std::byte> bytes = module.serialize();
    store_cached(key, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace polder::compiler
