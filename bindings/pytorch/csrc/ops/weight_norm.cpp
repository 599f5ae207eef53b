// Weight normalization as the operators that it consists of: the CPU's fused kernels would copy weights to the host and back.
#include "native.h"

#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

std::tuple<Tensor, Tensor> weight_norm(const Tensor& direction, const Tensor& length, int64_t dim) {
    // Norms have the precision that sums have.
    const auto exact = compute_type(direction.scalar_type());
    const Tensor norms = at::norm_except_dim(direction.to(exact), 2, dim);
    return {at::mul(direction, at::div(length, norms)).to(direction.scalar_type()), norms};
}

std::tuple<Tensor, Tensor> weight_norm_backward(const Tensor& grad, const Tensor& direction, const Tensor& length,
                                                const Tensor& norms, int64_t dim) {
    const auto exact = norms.scalar_type();
    auto [of_direction, of_length] = at::_weight_norm_differentiable_backward(
        grad.to(exact).contiguous(), direction.to(exact).contiguous(), length.to(exact).contiguous(), norms, dim);
    return {of_direction.to(direction.scalar_type()), of_length.to(length.scalar_type())};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_weight_norm_interface", weight_norm));
    m.impl(NATIVE("_weight_norm_interface_backward", weight_norm_backward));
}

}  // namespace torch_opencl
