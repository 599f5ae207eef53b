// Rewrites calls of printf to calls of polder_printf (lib/kernel), which a work-item can make on the host:
//   int polder_printf(const LaunchContext*, const char* format, const std::byte* arguments, size_t size)
// with the arguments packed one after another in slots of a multiple of 8 bytes. Expects a retargeted module.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

void lower_printf(llvm::Module& module);

} // namespace polder::compiler
