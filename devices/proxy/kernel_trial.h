// The parameters of a kernel in machine code, found by trial: implementations need not report them for programs that were not built from
// source (clGetKernelArgInfo), and most do not.
#pragma once

#include <polder/program_binaries.h>
#include <proxy/foreign_context.h>
#include <string>
#include <vector>

namespace polder::proxy {

// invalid_binary for a kernel with an image of unknown type, as far as that shows, and for one with a value of unknown size.
[[nodiscard]] Result<driver::MachineCodeKernel> examine(const ForeignContext& context, cl_program program,
                                                        const std::string& name);
// Sorted.
[[nodiscard]] Result<std::vector<std::string>> kernel_names(const ForeignContext& context, cl_program program);

}  // namespace polder::proxy
