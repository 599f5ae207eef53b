// Machine code of a driver's own compiler (polder/program_binaries.h) in programs. A program that Polder has compiled from source has it in
// addition, to save the driver's compiler work. A program may also consist of it alone: then its kernels are known as far as the driver
// reports them. Any thread.
#pragma once

#include <compiler/compiler.h>

#include <polder/program_binaries.h>

namespace polder::compiler {

// An executable without bitcode and source. The types of its kernels' arguments have no names.
[[nodiscard]] std::shared_ptr<const Module> make_module(std::span<const driver::MachineCodeKernel> kernels);

// For a target of the format opencl_c. `machine_code` may be empty.
[[nodiscard]] Result<std::shared_ptr<Executable>> open_with(std::string machine_code,
                                                            std::shared_ptr<const Module> module, const Target& target);

}  // namespace polder::compiler
