// Kernels for memory without addresses. All kernels of this package take addresses inside of tensors. Where a tensor's memory is a
// buffer without an address, each parameter that is a pointer becomes two: the buffer, and the offset in it.
#pragma once

#include <string>

namespace torch_opencl {

// The source with each parameter `global T* name` of its kernels replaced by `global T* base_name, ulong offset_name`. The pointer
// itself is declared at the beginning of the kernel's body.
std::string with_offsets(const std::string& source);

}  // namespace torch_opencl
