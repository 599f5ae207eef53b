// The functions of a module, kernels first of all.
#pragma once

#include "translation.h"

namespace polder::compiler::spirv {

// Declares all functions, so that calls may come before definitions, then translates their bodies. Refuses recursion,
// which OpenCL does not have. Check `failed` afterwards.
void define_functions(Translation& translation);

// What the runtime asks about a kernel, as metadata in the form of Clang's. Refuses execution modes that it does not know.
void describe_kernel(Translation& translation, const Instruction& instruction, llvm::Function& kernel,
                     std::span<const uint32_t> parameters);

}  // namespace polder::compiler::spirv
