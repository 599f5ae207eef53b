// The code of a program for NVIDIA's GPUs: PTX text, one per kernel. `module` is an executable. Any thread.
#pragma once

#include <compiler/compiler.h>

namespace polder::compiler {

[[nodiscard]] std::shared_ptr<Executable> make_nvptx_executable(std::shared_ptr<const Module> module,
                                                                const Target& target);

} // namespace polder::compiler
