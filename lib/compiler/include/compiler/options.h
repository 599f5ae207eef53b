// Whether the options of a build are valid, without building: a build with a callback begins only when they are.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <polder/result.h>
#include <string_view>

namespace polder::compiler {

// clBuildProgram, clCompileProgram, clLinkProgram.
enum class OptionStage : uint8_t { build, compile, link };

// invalid_build_options, invalid_compiler_options or invalid_linker_options.
[[nodiscard]] Result<void> check_options(std::string_view text, OptionStage stage);

} // namespace polder::compiler
