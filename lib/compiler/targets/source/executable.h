// The code of a program for drivers that compile it themselves: the program as the application gave it. `module` is an
// executable, compiled for such a target. `machine_code`: what the driver has made of it earlier, if anything. Any thread.
#pragma once

#include <compiler/compiler.h>

namespace polder::compiler {

[[nodiscard]] std::shared_ptr<Executable> make_source_executable(std::shared_ptr<const Module> module,
                                                                 const Target& target, std::string machine_code = {});

}  // namespace polder::compiler
