// Translates the functions of a module.
#pragma once

#include "translation.h"

namespace polder::compiler::spirv {

// Declares all functions first, so that a call may come before the definition, then translates their bodies. Fails for recursion,
// which OpenCL does not have. The caller checks `failed` afterwards.
void define_functions(Translation& translation);

// Adds Clang's metadata for kernels (argument names, work-group sizes). Fails for an unknown execution mode.
void describe_kernel(Translation& translation, const Instruction& instruction, llvm::Function& kernel,
                     std::span<const uint32_t> parameters);

}  // namespace polder::compiler::spirv
