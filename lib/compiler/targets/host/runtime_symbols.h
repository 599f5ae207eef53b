// The symbols of this process that compiled kernels may refer to: the library functions that LLVM's code generator calls, and the
// formatter of printf. Kernels see no other symbols.
//
// Immutable; any thread.
#pragma once

#include <string_view>

namespace polder::compiler {

// Null when kernels may not refer to `name`.
[[nodiscard]] void* runtime_symbol(std::string_view name);

}  // namespace polder::compiler
