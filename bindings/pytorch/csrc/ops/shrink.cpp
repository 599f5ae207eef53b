// Activations with a band around 0, and the inverse of the sigmoid.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

Tensor& apply(Tensor& out, const Tensor& a, const char* expression, c10::ArrayRef<Scalar> scalars) {
    check_floating(a.scalar_type(), "an activation");
    auto iter = at::TensorIterator::unary_op(out, a);
    pointwise(iter, expression, iter.common_dtype(), scalars);
    return out;
}
Tensor& apply_gradient(Tensor& out, const Tensor& grad, const Tensor& a, const char* expression,
                       c10::ArrayRef<Scalar> scalars) {
    check_floating(a.scalar_type(), "an activation");
    auto iter = at::TensorIterator::borrowing_binary_op(out, grad, a);
    pointwise(iter, expression, iter.common_dtype(), scalars);
    return out;
}

Tensor& hardshrink_out(const Tensor& a, const Scalar& lambda, Tensor& out) {
    return apply(out, a, "a >= -s0 && a <= s0 ? (T)0 : a", lambda);
}
Tensor& softshrink_out(const Tensor& a, const Scalar& lambda, Tensor& out) {
    return apply(out, a, "a > s0 ? a - s0 : a < -s0 ? a + s0 : a * 0", lambda);
}
// Of both.
Tensor& shrink_backward_out(const Tensor& grad, const Tensor& a, const Scalar& lambda, Tensor& out) {
    return apply_gradient(out, grad, a, "b >= -s0 && b <= s0 ? (T)0 : a", lambda);
}

Tensor& logit_out(const Tensor& a, std::optional<double> eps, Tensor& out) {
    if (!eps)
        return apply(out, a, "log(a / (1 - a))", {});
    const Scalar limits[] = {*eps, 1 - *eps};
    return apply(out, a, "a != a ? a : a < s0 ? log(s0 / (1 - s0)) : a > s1 ? log(s1 / (1 - s1)) : log(a / (1 - a))",
                 limits);
}
Tensor logit(const Tensor& a, std::optional<double> eps) {
    if (at::isIntegralType(a.scalar_type(), true))
        return torch_opencl::logit(a.to(at::get_default_dtype_as_scalartype()), eps);
    Tensor out = at::empty_like(a);
    return logit_out(a, eps, out);
}
Tensor& logit_(Tensor& a, std::optional<double> eps) { return logit_out(a, eps, a); }
Tensor& logit_backward_out(const Tensor& grad, const Tensor& a, std::optional<double> eps, Tensor& out) {
    if (!eps)
        return apply_gradient(out, grad, a, "b < 0 || b > 1 ? (T)NAN : a / (b * (1 - b))", {});
    const Scalar limits[] = {*eps, 1 - *eps};
    return apply_gradient(out, grad, a, "b < s0 || b > s1 ? (T)0 : a / (b * (1 - b))", limits);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("hardshrink.out", hardshrink_out));
    m.impl(NATIVE("softshrink.out", softshrink_out));
    m.impl(NATIVE("hardshrink_backward.grad_input", shrink_backward_out));
    m.impl(NATIVE("softshrink_backward.grad_input", shrink_backward_out));
    m.impl(NATIVE("logit", torch_opencl::logit));
    m.impl(NATIVE("logit_", logit_));
    m.impl(NATIVE("logit.out", logit_out));
    m.impl(NATIVE("logit_backward.grad_input", logit_backward_out));
}

}  // namespace torch_opencl
