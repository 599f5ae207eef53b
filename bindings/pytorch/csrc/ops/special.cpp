// Pointwise special functions. They are computed in double where the device has it: most are used once in a program, and sums of many terms
// lose digits in float.
#include "native.h"
#include "pointwise.h"

#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;
using at::TensorIterator;

c10::ScalarType precise(const at::TensorIteratorBase& iter) {
    const auto type = iter.common_dtype();
    check_floating(type, "a special function");
    return opencl_device(iter.tensor_base(0)).has_double ? at::kDouble : compute_type(type);
}
Tensor& unary(const Tensor& a, Tensor& out, const char* expression, c10::ArrayRef<Scalar> scalars = {}) {
    auto iter = TensorIterator::unary_float_op(out, a);
    pointwise(iter, expression, precise(iter), scalars);
    return out;
}
Tensor& binary(const Tensor& a, const Tensor& b, Tensor& out, const char* expression) {
    auto iter = TensorIterator::binary_float_op(out, a, b);
    pointwise(iter, expression, precise(iter));
    return out;
}

#define UNARY(X)                                                                                                       \
    X(digamma, "t_digamma(a)")                                                                                         \
    X(i0, "t_i0(a)")                                                                                                   \
    X(special_i0e, "t_bessel_i(a, 0)")                                                                                 \
    X(special_i1, "t_i1(a)")                                                                                           \
    X(special_i1e, "copysign(t_bessel_i(a, 1), a)")                                                                    \
    X(special_modified_bessel_i0, "t_i0(a)")                                                                           \
    X(special_modified_bessel_i1, "t_i1(a)")                                                                           \
    X(special_spherical_bessel_j0, "a == 0 ? (T)1 : isinf(a) ? (T)0 : sin(a) / a")                                     \
    X(special_entr, "a != a ? a : a > 0 ? -a * log(a) : a == 0 ? (T)0 : (T)-INFINITY")                                 \
    X(special_erfcx, "t_erfcx(a)")                                                                                     \
    X(special_log_ndtr, "t_log_ndtr(a)")                                                                               \
    X(special_ndtri, "t_ndtri(a)")

#define BINARY(X)                                                                                                      \
    X(special_zeta, "t_zeta(a, b)")                                                                                    \
    X(special_xlog1py, "b != b ? b : a == 0 ? (T)0 : a * log1p(b)")                                                    \
    X(igamma, "t_gamma_part(a, b, 0)")                                                                                 \
    X(igammac, "t_gamma_part(a, b, 1)")

#define DEFINE_UNARY(name, expression)                                                                                 \
    Tensor& name##_out(const Tensor& a, Tensor& out) { return unary(a, out, expression); }
#define DEFINE_BINARY(name, expression)                                                                                \
    Tensor& name##_out(const Tensor& a, const Tensor& b, Tensor& out) { return binary(a, b, out, expression); }
UNARY(DEFINE_UNARY)
BINARY(DEFINE_BINARY)

// (-1)^(n + 1) n! zeta(n + 1, x), 25.11.12.
Tensor& polygamma_out(int64_t n, const Tensor& a, Tensor& out) {
    TORCH_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
    if (n == 0)
        return digamma_out(a, out);
    const double factor = std::tgamma(static_cast<double>(n) + 1);
    const Scalar scalars[] = {n % 2 == 1 ? factor : -factor, static_cast<double>(n + 1)};
    return unary(a, out, "s0 * t_zeta(s1, a)", scalars);
}

}  // namespace

#define REGISTER(name, expression) m.impl(NATIVE(#name ".out", name##_out));

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    UNARY(REGISTER)
    BINARY(REGISTER)
    m.impl(NATIVE("polygamma.out", polygamma_out));
}

}  // namespace torch_opencl
