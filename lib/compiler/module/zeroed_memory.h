// Makes the kernels of a module find memory zeroed (cl_khr_initialize_memory). Must run before any optimization,
// because optimization replaces variables that have no value by undefined values.
//
// One thread per module. Does not fail.
#pragma once

#include <compiler/zeroed_memory.h>

#include <llvm/IR/Module.h>
#include <span>

namespace polder::compiler {

// `kernels` are those of the module.
void zero_memory(llvm::Module& module, std::span<const KernelInfo> kernels, const ZeroedMemory& what);

}  // namespace polder::compiler
