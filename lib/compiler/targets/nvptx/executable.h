// Executable for NVIDIA's GPUs: one PTX text per kernel. `module` is of kind executable. Any thread.
#pragma once

#include <compiler/zeroed_memory.h>

namespace polder::compiler {

// out_of_resources when a kernel requires sub-groups that are no warps.
[[nodiscard]] Result<std::shared_ptr<Executable>>
make_nvptx_executable(std::shared_ptr<const Module> module, const Target& target, const ZeroedMemory& zeroed);

} // namespace polder::compiler
