// What compiled kernels may refer to: what LLVM's code generator falls back to, and printf. Nothing else of the process is
// visible to them.
//
// Immutable; any thread.
#pragma once

#include <string_view>

namespace polder::compiler {

// Null when kernels may not refer to `name`.
[[nodiscard]] void* runtime_symbol(std::string_view name);

}  // namespace polder::compiler
