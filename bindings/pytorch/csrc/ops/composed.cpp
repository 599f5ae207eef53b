// Pointwise operators that consist of others.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalGenerator = std::optional<at::Generator>;

Tensor& cross_out(const Tensor& a, const Tensor& b, int64_t dim, Tensor& out) {
    // Component i is that of i + 1 and i + 2.
    const auto next = [dim](const Tensor& each, int64_t by) { return at::roll(each, -by, dim); };
    const auto both = at::broadcast_tensors({a, b});
    return at::sub_out(out, at::mul(next(both[0], 1), next(both[1], 2)), at::mul(next(both[0], 2), next(both[1], 1)));
}

// Parts along a dimension whose norm is greater than the limit are scaled to it.
Tensor& renorm_out(const Tensor& self, const Scalar& p, int64_t wrapped, const Scalar& limit, Tensor& out) {
    check_floating(self.scalar_type(), "renorm");
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    at::DimVector others;
    for (int64_t d = 0; d < self.dim(); ++d)
        if (d != dim)
            others.push_back(d);
    const auto exact = compute_type(self.scalar_type());
    const Tensor norms = at::linalg_vector_norm(self, p, others, true, exact);
    const Tensor factors = at::where(at::gt(norms, limit), at::reciprocal(at::add(norms, 1e-7)).mul_(limit), 1.0);
    return at::mul_out(out, self, factors.to(self.scalar_type()));
}

// The mantissa is in [0.5, 1).
std::tuple<Tensor&, Tensor&> frexp_out(const Tensor& self, Tensor& mantissa, Tensor& exponent) {
    check_floating(self.scalar_type(), "frexp");
    check_type(self.scalar_type(), mantissa);
    check_type(at::kInt, exponent);
    at::native::resize_output(mantissa, self.sizes());
    at::native::resize_output(exponent, self.sizes());
    const Tensor in = self;
    const auto compute = compute_type(in.scalar_type());
    auto exponents = at::TensorIteratorConfig()
                         .add_output(exponent)
                         .add_const_input(in)
                         .check_all_same_dtype(false)
                         .resize_outputs(false)
                         .build();
    pointwise(exponents, "a == 0 || !isfinite(a) ? (T)0 : (T)(ilogb(a) + 1)", compute);
    auto mantissas = at::TensorIterator::unary_op(mantissa, in);
    pointwise(mantissas, "a == 0 || !isfinite(a) ? a : ldexp(a, -(ilogb(a) + 1))", compute);
    return {mantissa, exponent};
}

Tensor& rrelu_out(const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                  OptionalGenerator generator, Tensor& out) {
    check_floating(self.scalar_type(), "rrelu");
    check_type(self.scalar_type(), noise, out);
    TORCH_CHECK(self.sizes() == noise.sizes(),
                "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
                " noise.shape = ", noise.sizes());
    if (!training)
        return at::leaky_relu_out(out, self, (lower.toDouble() + upper.toDouble()) / 2);
    noise.uniform_(lower.toDouble(), upper.toDouble(), std::move(generator)).masked_fill_(at::gt(self, 0), 1);
    return at::mul_out(out, self, noise);
}
Tensor rrelu(const Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
             OptionalGenerator generator) {
    Tensor out = at::empty_like(self);
    return rrelu_out(self, noise, lower, upper, training, std::move(generator), out);
}
Tensor& rrelu_(Tensor& self, Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
               OptionalGenerator generator) {
    return rrelu_out(self, noise, lower, upper, training, std::move(generator), self);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("linalg_cross.out", cross_out));
    m.impl(NATIVE("renorm.out", renorm_out));
    m.impl(NATIVE("frexp.Tensor_out", frexp_out));
    m.impl(NATIVE("rrelu_with_noise", rrelu));
    m.impl(NATIVE("rrelu_with_noise_", rrelu_));
    m.impl(NATIVE("rrelu_with_noise.out", rrelu_out));
}

}  // namespace torch_opencl
