// Executable for devices that execute on the host. `module` is of kind executable. Any thread.
#pragma once

#include <compiler/zeroed_memory.h>

namespace polder::compiler {

[[nodiscard]] std::shared_ptr<Executable> make_host_executable(std::shared_ptr<const Module> module,
                                                               const Target& target, const ZeroedMemory& zeroed);

} // namespace polder::compiler
