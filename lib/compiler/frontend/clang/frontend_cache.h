// Keeps what compile() made of a source, for the next time. Only results that depend on nothing but the
// input (no #include from disk) are kept.
#pragma once

#include "program/build_options.h"
#include "program/module.h"

#include <optional>
#include <string>

namespace polder::compiler {

[[nodiscard]] std::string frontend_cache_key(const CompileInput& input, const BuildOptions& options);
[[nodiscard]] std::optional<std::shared_ptr<const Module>> load_frontend_result(const std::string& key);
void store_frontend_result(const std::string& key, const CompiledModule& module);

} // namespace polder::compiler
