// Writing to one dimension of a tensor by an index.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_opencl {

// The action for each element of the index. The last four combine an element of the source with that of the place, in the order of the index.
enum class Action { read, write, fill, add, multiply, greatest, least };

inline at::Tensor at_least_1d(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.reshape({1}) : tensor; }

// Scatters into `out`, which starts as a copy of self. No source for fill. `value` is what places are filled with, or the factor of what is added.
at::Tensor& scatter(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                    const at::Scalar& value, Action action, at::Tensor& out);
// target[.., index[i], ..] = or += source[.., i, ..], and so on.
void put_rows(const at::Tensor& target, int64_t dim, const at::Tensor& index, const at::Tensor& source, Action action,
              const at::Scalar& value);

}  // namespace torch_opencl
