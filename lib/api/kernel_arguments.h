// Setting the arguments of a kernel, for clSetKernelArg, clSetKernelArgSVMPointer, clSetKernelExecInfo and updates of command buffers.
#pragma once

#include "entry.h"

#include <runtime/kernel.h>

namespace polder::api {

// The errors are those of clSetKernelArg, clSetKernelArgSVMPointer and clSetKernelExecInfo.
[[nodiscard]] Result<void> set_argument(runtime::Kernel& kernel, cl_uint index, size_t size, const void* value);
[[nodiscard]] Result<void> set_svm_pointer(runtime::Kernel& kernel, cl_uint index, const void* value);
[[nodiscard]] Result<void> set_exec_info(runtime::Kernel& kernel, cl_kernel_exec_info name, size_t size,
                                         const void* value);

}  // namespace polder::api
