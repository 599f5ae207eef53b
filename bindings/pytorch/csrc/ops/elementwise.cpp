// Pointwise operators of one and two tensors, from tables. PyTorch makes the functional and in-place forms of most of them from
// the forms with an output.
#include "native.h"
#include "pointwise.h"

#include <ATen/ScalarOps.h>
#include <limits>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;
using at::TensorIterator;

// same: the result has the type of the inputs. real: integers become floating-point numbers. floating, whole and integer: as same, but the
// operator is of floating-point numbers alone, of integers and truth values, or of integers alone.
enum class Result { same, real, floating, whole, integer };

void check_inputs(c10::ScalarType type, Result result) {
    if (result == Result::floating)
        check_floating(type, "a pointwise operation");
    if (result == Result::whole)
        TORCH_CHECK_NOT_IMPLEMENTED(!is_floating(type), "opencl: an operation on bits has no kernel for ", type);
    if (result == Result::integer)
        TORCH_CHECK_NOT_IMPLEMENTED(at::isIntegralType(type, false),
                                    "opencl: an operation on integers has no kernel for ", type);
}

Tensor& unary(const Tensor& a, Tensor& out, Result result, const char* expression) {
    auto iter = result == Result::real ? TensorIterator::unary_float_op(out, a) : TensorIterator::unary_op(out, a);
    check_inputs(iter.common_dtype(), result);
    pointwise(iter, expression, iter.common_dtype());
    return out;
}

// The result has the type of `out`.
Tensor& with_own_type(const Tensor& a, Tensor& out, const char* expression) {
    auto iter = at::TensorIteratorConfig()
                    .add_output(out)
                    .add_const_input(a)
                    .check_all_same_dtype(false)
                    .declare_static_dtype_and_device(out.scalar_type(), out.device())
                    .build();
    pointwise(iter, expression, a.scalar_type());
    return out;
}

Tensor& binary(const Tensor& a, const Tensor& b, Tensor& out, Result result, const char* expression,
               c10::ArrayRef<Scalar> scalars = {}) {
    auto iter =
        result == Result::real ? TensorIterator::binary_float_op(out, a, b) : TensorIterator::binary_op(out, a, b);
    check_inputs(iter.common_dtype(), result);
    pointwise(iter, expression, iter.common_dtype(), scalars);
    return out;
}

Tensor& compare(const Tensor& a, const Tensor& b, Tensor& out, const char* expression) {
    auto iter = TensorIterator::comparison_op(out, a, b);
    pointwise(iter, expression, iter.common_dtype());
    return out;
}

// Exponents may have fractions. Powers of whole exponents are exact.
constexpr const char* ldexp_expression = "b == rint(b) && fabs(b) < (T)9999 ? ldexp(a, (int)b) : a * exp2(b)";

#define UNARY(X)                                                                                                       \
    X(acos, real, "acos(a)")                                                                                           \
    X(acosh, real, "acosh(a)")                                                                                         \
    X(asin, real, "asin(a)")                                                                                           \
    X(asinh, real, "asinh(a)")                                                                                         \
    X(atan, real, "atan(a)")                                                                                           \
    X(atanh, real, "atanh(a)")                                                                                         \
    X(cos, real, "cos(a)")                                                                                             \
    X(cosh, real, "cosh(a)")                                                                                           \
    X(erf, real, "t_erf(a)")                                                                                           \
    X(erfc, real, "erfc(a)")                                                                                           \
    X(erfinv, real, "t_erfinv(a)")                                                                                     \
    X(exp, real, "exp(a)")                                                                                             \
    X(exp2, real, "exp2(a)")                                                                                           \
    X(expm1, real, "expm1(a)")                                                                                         \
    X(lgamma, real, "lgamma(a)")                                                                                       \
    X(log, real, "log(a)")                                                                                             \
    X(log10, real, "log10(a)")                                                                                         \
    X(log1p, real, "log1p(a)")                                                                                         \
    X(log2, real, "log2(a)")                                                                                           \
    X(reciprocal, real, "1 / a")                                                                                       \
    X(rsqrt, real, "1 / sqrt(a)")                                                                                      \
    X(sigmoid, real, "t_sigmoid(a)")                                                                                   \
    X(sin, real, "sin(a)")                                                                                             \
    X(sinc, real, "a == 0 ? (T)1 : sinpi(a) / ((T)3.14159265358979323846 * a)")                                        \
    X(sinh, real, "sinh(a)")                                                                                           \
    X(sqrt, real, "sqrt(a)")                                                                                           \
    X(tan, real, "tan(a)")                                                                                             \
    X(tanh, real, "tanh(a)")                                                                                           \
    X(neg, same, "-a")                                                                                                 \
    X(silu, floating, "a / (1 + exp(-a))")                                                                             \
    X(mish, floating, "a * tanh(log1p(exp(a)))")                                                                       \
    X(hardsigmoid, floating, "t_nan_min(t_nan_max(a + 3, (T)0), (T)6) / 6")                                            \
    X(frac, floating, "a - trunc(a)")                                                                                  \
    X(sign, same, "t_sign(a)")                                                                                         \
    X(bitwise_not, whole, "IS_BOOL ? !a : ~a")

#define ROUNDING(X)                                                                                                    \
    X(ceil, "ceil(a)")                                                                                                 \
    X(floor, "floor(a)")                                                                                               \
    X(round, "rint(a)")                                                                                                \
    X(trunc, "trunc(a)")

#define DEFINE(name, result, expression)                                                                               \
    Tensor& name##_out(const Tensor& a, Tensor& out) { return unary(a, out, Result::result, expression); }
#define DEFINE_ROUNDING(name, expression)                                                                              \
    Tensor& name##_out(const Tensor& a, Tensor& out) {                                                                 \
        return unary(a, out, Result::same, at::isFloatingType(a.scalar_type()) ? expression : "a");                    \
    }
UNARY(DEFINE)
ROUNDING(DEFINE_ROUNDING)

Tensor& abs_out(const Tensor& a, Tensor& out) {
    if (a.is_complex())
        return with_own_type(a, out, "t_abs(a)");
    return unary(a, out, Result::same, "t_abs(a)");
}
Tensor& sgn_out(const Tensor& a, Tensor& out) { return unary(a, out, Result::same, "t_sign(a)"); }
Tensor& logical_not_out(const Tensor& a, Tensor& out) { return with_own_type(a, out, "a == 0"); }
Tensor& signbit_out(const Tensor& a, Tensor& out) {
    return with_own_type(a, out, at::isFloatingType(a.scalar_type()) ? "signbit(a) != 0" : "a < 0");
}
Tensor& isneginf_out(const Tensor& a, Tensor& out) {
    return with_own_type(a, out, at::isFloatingType(a.scalar_type()) ? "a == -INFINITY" : "0");
}
Tensor& isposinf_out(const Tensor& a, Tensor& out) {
    return with_own_type(a, out, at::isFloatingType(a.scalar_type()) ? "a == INFINITY" : "0");
}
Tensor& round_decimals_out(const Tensor& a, int64_t decimals, Tensor& out) {
    check_floating(a.scalar_type(), "round to decimals");
    auto iter = TensorIterator::unary_op(out, a);
    const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
    pointwise(iter, decimals < 0 ? "rint(a / s0) * s0" : "rint(a * s0) / s0", iter.common_dtype(), Scalar(scale));
    return out;
}
Tensor isnan(const Tensor& a) {
    Tensor out = at::empty_like(a, a.options().dtype(at::kBool));
    return with_own_type(a, out, "a != a");
}

#define BINARY(X)                                                                                                      \
    X(mul, same, "a * b")                                                                                              \
    X(div, real, "a / b")                                                                                              \
    X(atan2, real, "atan2(a, b)")                                                                                      \
    X(maximum, same, "t_nan_max(a, b)")                                                                                \
    X(minimum, same, "t_nan_min(a, b)")                                                                                \
    X(hypot, floating, "hypot(a, b)")                                                                                  \
    X(copysign, real, "copysign(a, b)")                                                                                \
    X(nextafter, floating, "nextafter(a, b)")                                                                          \
    X(logaddexp, floating, "isinf(a) && a == b ? a : t_nan_max(a, b) + log1p(exp(-fabs(a - b)))")                      \
    X(logaddexp2, floating,                                                                                            \
      "isinf(a) && a == b ? a : t_nan_max(a, b) + log1p(exp2(-fabs(a - b))) * (T)1.4426950408889634074")               \
    X(gcd, integer, "t_gcd(a, b)")                                                                                     \
    X(lcm, integer, "a == 0 || b == 0 ? (T)0 : t_abs((T)(a / t_gcd(a, b) * b))")                                       \
    X(heaviside, same, "a == 0 ? b : (T)(a > 0)")

#define BINARY_TENSOR(X)                                                                                               \
    X(remainder, same, "t_remainder(a, b)")                                                                            \
    X(bitwise_and, whole, "a & b")                                                                                     \
    X(bitwise_or, whole, "a | b")                                                                                      \
    X(bitwise_left_shift, whole, "b < 0 || b >= (T)(8 * sizeof(T)) ? (T)0 : (T)(a << b)")                              \
    X(bitwise_right_shift, whole, "b < 0 || b >= (T)(8 * sizeof(T)) ? (T)-(a < 0) : (T)(a >> b)")                      \
    X(bitwise_xor, whole, "a ^ b")                                                                                     \
    X(xlogy, real, "b != b ? b : a == 0 ? (T)0 : a * log(b)")                                                          \
    X(sigmoid_grad, floating, "a * (1 - b) * b")                                                                       \
    X(tanh_grad, floating, "a * (1 - b * b)")                                                                          \
    X(silu_grad, floating, "a * t_sigmoid(b) * (1 + b * (1 - t_sigmoid(b)))")                                          \
    X(hardsigmoid_grad, floating, "b > -3 && b < 3 ? a / 6 : (T)0")

#define COMPARISON(X)                                                                                                  \
    X(eq, "a == b")                                                                                                    \
    X(ne, "a != b")                                                                                                    \
    X(lt, "a < b")                                                                                                     \
    X(le, "a <= b")                                                                                                    \
    X(gt, "a > b")                                                                                                     \
    X(ge, "a >= b")

#define LOGICAL(X)                                                                                                     \
    X(logical_and, "a != 0 && b != 0")                                                                                 \
    X(logical_or, "a != 0 || b != 0")                                                                                  \
    X(logical_xor, "(a != 0) != (b != 0)")

#define DEFINE_BINARY(name, result, expression)                                                                        \
    Tensor& name##_out(const Tensor& a, const Tensor& b, Tensor& out) {                                                \
        return binary(a, b, out, Result::result, expression);                                                          \
    }
#define DEFINE_COMPARISON(name, expression)                                                                            \
    Tensor& name##_out(const Tensor& a, const Tensor& b, Tensor& out) { return compare(a, b, out, expression); }       \
    Tensor& name##_scalar_out(const Tensor& a, const Scalar& b, Tensor& out) {                                         \
        return compare(a, at::native::wrapped_scalar_tensor(b), out, expression);                                      \
    }
#define DEFINE_LOGICAL(name, expression)                                                                               \
    Tensor& name##_out(const Tensor& a, const Tensor& b, Tensor& out) { return compare(a, b, out, expression); }
BINARY(DEFINE_BINARY)
BINARY_TENSOR(DEFINE_BINARY)
COMPARISON(DEFINE_COMPARISON)
LOGICAL(DEFINE_LOGICAL)

bool is_one(const Scalar& scalar) { return !scalar.isComplex() && scalar.toDouble() == 1; }

Tensor& add_out(const Tensor& a, const Tensor& b, const Scalar& alpha, Tensor& out) {
    return is_one(alpha) ? binary(a, b, out, Result::same, "a + b")
                         : binary(a, b, out, Result::same, "a + s0 * b", alpha);
}
Tensor& sub_out(const Tensor& a, const Tensor& b, const Scalar& alpha, Tensor& out) {
    return is_one(alpha) ? binary(a, b, out, Result::same, "a - b")
                         : binary(a, b, out, Result::same, "a - s0 * b", alpha);
}

Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha) { return at::sub(b, a, alpha); }

Tensor& div_mode_out(const Tensor& a, const Tensor& b, std::optional<c10::string_view> mode, Tensor& out) {
    if (!mode)
        return div_out(a, b, out);
    if (*mode == "floor")
        return binary(a, b, out, Result::same, "t_div_floor(a, b)");
    const bool is_real = at::isFloatingType(at::result_type(a, b));
    return binary(a, b, out, Result::same, is_real ? "trunc(a / b)" : "b == 0 ? 0 : a / b");
}
Tensor& floor_divide_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary(a, b, out, Result::same, "t_div_floor(a, b)");
}
Tensor floor_divide(const Tensor& a, const Tensor& b) {
    Tensor out;
    auto iter = TensorIterator::binary_op(out, a, b);
    pointwise(iter, "t_div_floor(a, b)", iter.common_dtype());
    return iter.output();
}
Tensor& floor_divide_(Tensor& a, const Tensor& b) { return torch_opencl::floor_divide_out(a, b, a); }

Tensor& fmod_out(const Tensor& a, const Tensor& b, Tensor& out) {
    const bool is_real = at::isFloatingType(at::result_type(a, b));
    return binary(a, b, out, Result::same, is_real ? "fmod(a, b)" : "b == 0 ? 0 : a % b");
}
Tensor& fmax_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary(a, b, out, Result::same, at::isFloatingType(at::result_type(a, b)) ? "fmax(a, b)" : "a > b ? a : b");
}
Tensor& fmin_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary(a, b, out, Result::same, at::isFloatingType(at::result_type(a, b)) ? "fmin(a, b)" : "a < b ? a : b");
}

Tensor& pow_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary(a, b, out, Result::same, "t_pow(a, b)");
}
Tensor& pow_scalar_out(const Tensor& a, const Scalar& b, Tensor& out) {
    const bool is_plain = a.scalar_type() == out.scalar_type() && !b.isComplex();
    if (is_plain && b.toDouble() == 2)
        return unary(a, out, Result::same, "a * a");
    if (is_plain && b.toDouble() == 0.5 && a.is_floating_point())
        return unary(a, out, Result::same, "sqrt(a)");
    return pow_out(a, at::native::wrapped_scalar_tensor(b), out);
}
Tensor& pow_base_out(const Scalar& a, const Tensor& b, Tensor& out) {
    return pow_out(at::native::wrapped_scalar_tensor(a), b, out);
}

// PyTorch's own function of this name asks each backend for a kernel of it.
Tensor ldexp(const Tensor& a, const Tensor& b) {
    Tensor out;
    auto iter = TensorIterator::binary_float_op(out, a, b);
    pointwise(iter, ldexp_expression, iter.common_dtype());
    return iter.output();
}
Tensor& ldexp_out(const Tensor& a, const Tensor& b, Tensor& out) {
    return binary(a, b, out, Result::real, ldexp_expression);
}
Tensor& ldexp_(Tensor& a, const Tensor& b) { return torch_opencl::ldexp_out(a, b, a); }

template <typename Number>
double limit_of(bool is_greatest) {
    using Limits = std::numeric_limits<Number>;
    return static_cast<double>(is_greatest ? Limits::max() : Limits::lowest());
}
double limit_of(c10::ScalarType type, bool is_greatest) {
    switch (type) {
    case c10::kDouble: return limit_of<double>(is_greatest);
    case c10::kHalf: return limit_of<c10::Half>(is_greatest);
    case c10::kBFloat16: return limit_of<c10::BFloat16>(is_greatest);
    default: return limit_of<float>(is_greatest);
    }
}
Tensor& nan_to_num_out(const Tensor& a, std::optional<double> nan, std::optional<double> positive,
                       std::optional<double> negative, Tensor& out) {
    const auto type = a.scalar_type();
    if (!at::isFloatingType(type))
        return unary(a, out, Result::same, "a");
    auto iter = TensorIterator::unary_op(out, a);
    const Scalar values[] = {nan.value_or(0), positive.value_or(limit_of(type, true)),
                             negative.value_or(limit_of(type, false))};
    pointwise(iter, "a != a ? s0 : a == INFINITY ? s1 : a == -INFINITY ? s2 : a", iter.common_dtype(), values);
    return out;
}

}  // namespace

#define REGISTER(name, ...) m.impl(NATIVE_COMPLEX(#name ".out", name##_out));
#define REGISTER_COMPARISON(name, ...)                                                                                 \
    m.impl(NATIVE_COMPLEX(#name ".Tensor_out", name##_out));                                                           \
    m.impl(NATIVE_COMPLEX(#name ".Scalar_out", name##_scalar_out));

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    UNARY(REGISTER)
    ROUNDING(REGISTER)
    BINARY(REGISTER)
    COMPARISON(REGISTER_COMPARISON)
    LOGICAL(REGISTER)
    m.impl(NATIVE_COMPLEX("abs.out", abs_out));
    m.impl(NATIVE_COMPLEX("sgn.out", sgn_out));
    m.impl(NATIVE_COMPLEX("logical_not.out", logical_not_out));
    m.impl(NATIVE_COMPLEX("signbit.out", signbit_out));
    m.impl(NATIVE_COMPLEX("isneginf.out", isneginf_out));
    m.impl(NATIVE_COMPLEX("isposinf.out", isposinf_out));
    m.impl(NATIVE_COMPLEX("round.decimals_out", round_decimals_out));
    m.impl(NATIVE_COMPLEX("isnan", isnan));
    m.impl(NATIVE("ldexp.Tensor", torch_opencl::ldexp));
    m.impl(NATIVE("ldexp.out", ldexp_out));
    m.impl(NATIVE("ldexp_", ldexp_));
    m.impl(NATIVE("nan_to_num.out", nan_to_num_out));
    m.impl(NATIVE_COMPLEX("add.out", add_out));
    m.impl(NATIVE_COMPLEX("sub.out", sub_out));
    m.impl(NATIVE_COMPLEX("rsub.Tensor", torch_opencl::rsub));
    m.impl(NATIVE_COMPLEX("div.out_mode", div_mode_out));
    m.impl(NATIVE_COMPLEX("floor_divide.out", floor_divide_out));
    m.impl(NATIVE_COMPLEX("floor_divide", floor_divide));
    m.impl(NATIVE_COMPLEX("floor_divide_.Tensor", floor_divide_));
    m.impl(NATIVE_COMPLEX("remainder.Tensor_out", remainder_out));
    m.impl(NATIVE_COMPLEX("bitwise_and.Tensor_out", bitwise_and_out));
    m.impl(NATIVE_COMPLEX("bitwise_or.Tensor_out", bitwise_or_out));
    m.impl(NATIVE_COMPLEX("bitwise_xor.Tensor_out", bitwise_xor_out));
    m.impl(NATIVE_COMPLEX("bitwise_left_shift.Tensor_out", bitwise_left_shift_out));
    m.impl(NATIVE_COMPLEX("bitwise_right_shift.Tensor_out", bitwise_right_shift_out));
    m.impl(NATIVE_COMPLEX("sigmoid_backward.grad_input", sigmoid_grad_out));
    m.impl(NATIVE_COMPLEX("tanh_backward.grad_input", tanh_grad_out));
    m.impl(NATIVE_COMPLEX("silu_backward.grad_input", silu_grad_out));
    m.impl(NATIVE_COMPLEX("hardsigmoid_backward.grad_input", hardsigmoid_grad_out));
    m.impl(NATIVE_COMPLEX("xlogy.OutTensor", xlogy_out));
    m.impl(NATIVE_COMPLEX("fmod.Tensor_out", fmod_out));
    m.impl(NATIVE_COMPLEX("fmax.out", fmax_out));
    m.impl(NATIVE_COMPLEX("fmin.out", fmin_out));
    m.impl(NATIVE_COMPLEX("pow.Tensor_Tensor_out", pow_out));
    m.impl(NATIVE_COMPLEX("pow.Tensor_Scalar_out", pow_scalar_out));
    m.impl(NATIVE_COMPLEX("pow.Scalar_out", pow_base_out));
}

}  // namespace torch_opencl
