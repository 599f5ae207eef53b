// Results in the order of memory that the CPU backend gives them: channels last where an input has it. Kernels compute contiguous results;
// these are copied.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_opencl {

// `made` has the same dimensions as `like`, of other sizes.
inline at::Tensor in_format_of(const at::Tensor& like, const at::Tensor& made) {
    return made.contiguous(like.suggest_memory_format());
}

}  // namespace torch_opencl
