// Caches the results of compile() on disk (files/cache.h). Only results that depend on the input alone are kept: no #include may
// have been read from disk.
#pragma once

#include "frontend/build_options.h"
#include "module/module.h"

#include <optional>
#include <string>

namespace polder::compiler {

[[nodiscard]] std::string frontend_cache_key(const CompileInput& input, const BuildOptions& options);
[[nodiscard]] std::optional<std::shared_ptr<const Module>> load_frontend_result(const std::string& key);
void store_frontend_result(const std::string& key, const CompiledModule& module);

}  // namespace polder::compiler
