// The build options of OpenCL C (specification of the C API, "Compiler Options" and "Linker Options"):
// from the application's string to arguments for Clang and flags for our own stages.
//
// Pure; any thread. An option that the table in build_options.cpp does not know is an error.
#pragma once

#include <compiler/options.h>

#include <polder/result.h>
#include <string>
#include <string_view>
#include <vector>

namespace polder::compiler {

struct BuildOptions {
    std::vector<std::string> clang;  // for `clang -cc1`, in the application's order
    std::string standard = "CL1.2";  // value of -cl-std
    bool is_optimized = true;        // no -cl-opt-disable
    bool flushes_subnormals = false;  // -cl-denorms-are-zero
    bool has_debug_information = false;  // -g
    bool makes_library = false;      // -create-library
    bool enables_link_options = false;
};

// Splits like a shell: white space separates, quotes group, a backslash escapes a quote, a space or a
// backslash. Fails with invalid_value on a quote that is not closed.
[[nodiscard]] Result<std::vector<std::string>> split_options(std::string_view text);

// Parses the application's options, then POCL_EXTRA_BUILD_FLAGS, which may hold any option of Clang.
// Fails with the error code of `stage`, and a detail for the build log.
[[nodiscard]] Result<BuildOptions> parse_options(std::string_view text, OptionStage stage);

} // namespace polder::compiler
