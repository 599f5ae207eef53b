// Pointwise operators with scalars or three tensors: activations and their gradients, clamping, selection, losses before their
// reduction.
#include "native.h"
#include "pointwise.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

at::TensorIterator iterator(const Tensor& out, std::initializer_list<Tensor> inputs) {
    at::TensorIteratorConfig config;
    config.add_output(out).check_all_same_dtype(false).promote_inputs_to_common_dtype(true).allow_cpu_scalars(true);
    config.enforce_safe_casting_to_output(false).set_check_mem_overlap(true);
    for (const Tensor& input : inputs)
        config.add_owned_const_input(input);
    return config.build();
}

// The type of the computation is the common type of the inputs.
Tensor& apply(Tensor& out, std::initializer_list<Tensor> inputs, const char* expression,
              c10::ArrayRef<Scalar> scalars = {}) {
    auto iter = iterator(out, inputs);
    pointwise(iter, expression, iter.common_dtype(), scalars);
    return out;
}

// Of floating-point numbers alone.
Tensor& apply_floating(Tensor& out, std::initializer_list<Tensor> inputs, const char* expression,
                       c10::ArrayRef<Scalar> scalars = {}) {
    auto iter = iterator(out, inputs);
    check_floating(iter.common_dtype(), "a pointwise operation");
    pointwise(iter, expression, iter.common_dtype(), scalars);
    return out;
}

// Limits with a fraction make a result of integers one of floating-point numbers.
Tensor& clamp_out(const Tensor& a, const std::optional<Scalar>& low, const std::optional<Scalar>& high, Tensor& out) {
    auto iter = iterator(out, {a});
    const auto type = out.scalar_type();
    const Scalar least = low.value_or(0), most = high.value_or(0);
    const Scalar both[] = {least, most};
    if (low && high)
        pointwise(iter, "t_nan_min(t_nan_max(a, s0), s1)", type, both);
    else if (low)
        pointwise(iter, "t_nan_max(a, s0)", type, least);
    else
        pointwise(iter, "t_nan_min(a, s0)", type, most);
    return out;
}
Tensor& clamp_min_out(const Tensor& a, const Scalar& low, Tensor& out) { return clamp_out(a, low, {}, out); }
Tensor& clamp_max_out(const Tensor& a, const Scalar& high, Tensor& out) { return clamp_out(a, {}, high, out); }
Tensor& clamp_tensor_out(const Tensor& a, const std::optional<Tensor>& low, const std::optional<Tensor>& high,
                         Tensor& out) {
    if (low && high)
        return apply(out, {a, *low, *high}, "t_nan_min(t_nan_max(a, b), c)");
    return low ? apply(out, {a, *low}, "t_nan_max(a, b)") : apply(out, {a, *high}, "t_nan_min(a, b)");
}
Tensor& clamp_min_tensor_out(const Tensor& a, const Tensor& low, Tensor& out) {
    return apply(out, {a, low}, "t_nan_max(a, b)");
}
Tensor& clamp_max_tensor_out(const Tensor& a, const Tensor& high, Tensor& out) {
    return apply(out, {a, high}, "t_nan_min(a, b)");
}

void check_signed(const Tensor& a, const Scalar& low) {
    TORCH_CHECK_NOT_IMPLEMENTED(a.scalar_type() != at::kBool, "opencl: an activation has no kernel for Bool");
    TORCH_CHECK_NOT_IMPLEMENTED(a.scalar_type() != at::kByte || low.toDouble() >= 0,
                                "opencl: a negative limit has no kernel for Byte");
}
Tensor& relu_(Tensor& a) {
    check_signed(a, 0);
    return clamp_out(a, Scalar(0), {}, a);
}
Tensor relu(const Tensor& a) {
    check_signed(a, 0);
    Tensor out = at::empty_like(a);
    return clamp_out(a, Scalar(0), {}, out);
}
Tensor& hardtanh_out(const Tensor& a, const Scalar& low, const Scalar& high, Tensor& out) {
    check_signed(a, low);
    at::native::resize_output(out, a.sizes());
    return clamp_out(a, low, high, out);
}
Tensor hardtanh(const Tensor& a, const Scalar& low, const Scalar& high) {
    check_signed(a, low);
    Tensor out = at::empty_like(a);
    return clamp_out(a, low, high, out);
}
Tensor& hardtanh_(Tensor& a, const Scalar& low, const Scalar& high) {
    check_signed(a, low);
    return clamp_out(a, low, high, a);
}
Tensor hardtanh_backward(const Tensor& grad, const Tensor& a, const Scalar& low, const Scalar& high) {
    Tensor out = at::empty_like(a);
    return apply_floating(out, {grad, a}, "b > s0 && b < s1 ? a : (T)0", {low, high});
}
Tensor& threshold_out(const Tensor& a, const Scalar& threshold, const Scalar& value, Tensor& out) {
    return apply(out, {a}, "a <= s0 ? s1 : a", {threshold, value});
}
Tensor& threshold_backward_out(const Tensor& grad, const Tensor& a, const Scalar& threshold, Tensor& out) {
    return apply(out, {grad, a}, "b <= s0 ? (T)0 : a", threshold);
}
Tensor& leaky_relu_out(const Tensor& a, const Scalar& slope, Tensor& out) {
    return apply_floating(out, {a}, "a > 0 ? a : a * s0", slope);
}
Tensor& leaky_relu_backward_out(const Tensor& grad, const Tensor& a, const Scalar& slope, bool, Tensor& out) {
    return apply_floating(out, {grad, a}, "b > 0 ? a : a * s0", slope);
}
Tensor& elu_out(const Tensor& a, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, Tensor& out) {
    return apply_floating(out, {a}, "a < 0 ? expm1(a * s2) * s0 * s1 : a * s1", {alpha, scale, input_scale});
}
Tensor& elu_backward_out(const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                         bool is_result, const Tensor& a, Tensor& out) {
    const char* const expression =
        is_result ? "b <= 0 ? a * s2 * (b + s0 * s1) : a * s1" : "b <= 0 ? a * s2 * s0 * s1 * exp(b * s2) : a * s1";
    return apply_floating(out, {grad, a}, expression, {alpha, scale, input_scale});
}
Tensor& softplus_out(const Tensor& a, const Scalar& beta, const Scalar& threshold, Tensor& out) {
    return apply_floating(out, {a}, "a * s0 > s1 ? a : log1p(exp(a * s0)) / s0", {beta, threshold});
}
Tensor& softplus_backward_out(const Tensor& grad, const Tensor& a, const Scalar& beta, const Scalar& threshold,
                              Tensor& out) {
    return apply_floating(out, {grad, a}, "b * s0 > s1 ? a : a * t_sigmoid(b * s0)", {beta, threshold});
}

constexpr const char* gelu_tanh_inner = "tanh((T)0.7978845608028654 * (a + (T)0.044715 * a * a * a))";

Tensor& gelu_out(const Tensor& a, c10::string_view approximate, Tensor& out) {
    if (approximate == "tanh") {
        static const std::string expression = std::string("(T)0.5 * a * (1 + ") + gelu_tanh_inner + ")";
        return apply_floating(out, {a}, expression.c_str());
    }
    return apply_floating(out, {a}, "(T)0.5 * a * (1 + t_erf(a * (T)0.7071067811865476))");
}
Tensor& gelu_backward_out(const Tensor& grad, const Tensor& a, c10::string_view approximate, Tensor& out) {
    if (approximate == "tanh")
        return apply_floating(out, {grad, a}, "a * t_gelu_tanh_grad(b)");
    return apply_floating(
        out, {grad, a},
        "a * ((T)0.5 * (1 + t_erf(b * (T)0.7071067811865476)) + b * exp(-b * b / 2) * (T)0.3989422804014327)");
}
Tensor hardswish(const Tensor& a) {
    Tensor out = at::empty_like(a);
    return apply_floating(out, {a}, "a * t_nan_min(t_nan_max(a + 3, (T)0), (T)6) / 6");
}
Tensor& hardswish_(Tensor& a) { return apply_floating(a, {a}, "a * t_nan_min(t_nan_max(a + 3, (T)0), (T)6) / 6"); }
Tensor hardswish_backward(const Tensor& grad, const Tensor& a) {
    Tensor out = at::empty_like(a);
    return apply_floating(out, {grad, a}, "b <= -3 ? (T)0 : b < 3 ? a * (b / 3 + (T)0.5) : a");
}

std::tuple<Tensor&, Tensor&> log_sigmoid_out(const Tensor& a, Tensor& out, Tensor& buffer) {
    at::native::resize_output(buffer, {0});  // the gradient computes what the CPU backend keeps here
    at::native::resize_output(out, a.sizes());
    apply_floating(out, {a}, "t_nan_min(a, (T)0) - log1p(exp(-fabs(a)))");
    return {out, buffer};
}
std::tuple<Tensor, Tensor> log_sigmoid(const Tensor& a) {
    Tensor out = at::empty_like(a), buffer = at::empty({0}, a.options());
    log_sigmoid_out(a, out, buffer);
    return {out, buffer};
}
Tensor& log_sigmoid_backward_out(const Tensor& grad, const Tensor& a, const Tensor&, Tensor& out) {
    at::native::resize_output(out, a.sizes());
    return apply_floating(out, {grad, a}, "a * t_sigmoid(-b)");
}
Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& a, const Tensor& buffer) {
    Tensor out = at::empty_like(a);
    return log_sigmoid_backward_out(grad, a, buffer, out);
}
// The weight is expanded to a's dimensions.
Tensor prelu(const Tensor& a, const Tensor& weight) {
    Tensor out = at::empty_like(a);
    return apply_floating(out, {a, weight}, "a > 0 ? a : a * b");
}
std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad, const Tensor& a, const Tensor& weight) {
    Tensor grad_in = at::empty_like(a), grad_weight = at::empty_like(a);
    apply_floating(grad_in, {grad, a, weight}, "b > 0 ? a : a * c");
    apply_floating(grad_weight, {grad, a}, "b > 0 ? (T)0 : a * b");
    return {grad_in, grad_weight};
}

// Half of the dimension, gated by the other half.
Tensor& glu_out(const Tensor& a, int64_t dim, Tensor& out) {
    const auto halves = a.chunk(2, dim);
    at::native::resize_output(out, halves[0].sizes());
    return apply_floating(out, {halves[0], halves[1]}, "a * t_sigmoid(b)");
}
Tensor& glu_backward_out(const Tensor& grad, const Tensor& a, int64_t dim, Tensor& out) {
    at::native::resize_output(out, a.sizes());
    const auto halves = a.chunk(2, dim);
    auto parts = out.chunk(2, dim);
    apply_floating(parts[0], {grad, halves[1]}, "a * t_sigmoid(b)");
    apply_floating(parts[1], {grad, halves[0], halves[1]}, "a * b * t_sigmoid(c) * t_sigmoid(-c)");
    return out;
}
Tensor glu_backward(const Tensor& grad, const Tensor& a, int64_t dim) {
    Tensor out = at::empty(a.sizes(), a.options());
    return glu_backward_out(grad, a, dim, out);
}

Tensor& where_out(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out) {
    const auto type = at::result_type(a, b);
    TORCH_CHECK(out.scalar_type() == type, "Expected out type to be ", type, " but got ", out.scalar_type());
    auto iter = at::TensorIteratorConfig()
                    .check_all_same_dtype(false)
                    .add_output(out)
                    .add_owned_const_input(condition)
                    .add_owned_const_input(a)
                    .add_owned_const_input(b)
                    .allow_cpu_scalars(true)
                    .build();
    pointwise(iter, "a != 0 ? b : c", out.scalar_type());
    return out;
}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
    TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
                "where expected condition to be a boolean tensor, but got a tensor with dtype ",
                condition.scalar_type());
    const at::Device device = condition.is_privateuseone() ? condition.device()
                              : a.is_privateuseone()       ? a.device()
                                                           : b.device();
    const auto type = at::result_type(a, b);
    auto iter = at::TensorIteratorConfig()
                    .check_all_same_dtype(false)
                    .add_owned_output(Tensor())
                    .add_owned_const_input(condition.device() == device ? condition : condition.to(device))
                    .add_owned_const_input(a)
                    .add_owned_const_input(b)
                    .declare_static_dtype_and_device(type, device)
                    .allow_cpu_scalars(true)
                    .build();
    pointwise(iter, "a != 0 ? b : c", type);
    return iter.output();
}

Tensor& masked_fill_scalar_(Tensor& self, const Tensor& mask, const Scalar& value) {
    TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill only supports boolean masks, but got mask with dtype ",
                mask.scalar_type());
    auto iter = at::TensorIteratorConfig()
                    .set_check_mem_overlap(false)
                    .check_all_same_dtype(false)
                    .resize_outputs(false)
                    .add_output(self)
                    .add_const_input(self)
                    .add_const_input(mask)
                    .build();
    pointwise(iter, "b != 0 ? s0 : a", self.scalar_type(), value);
    return self;
}
Tensor& masked_fill_tensor_(Tensor& self, const Tensor& mask, const Tensor& value) {
    TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
    return masked_fill_scalar_(self, mask, value.item());
}

Tensor& lerp_scalar_out(const Tensor& a, const Tensor& end, const Scalar& weight, Tensor& out) {
    const bool near_end = weight.toDouble() >= 0.5;
    return apply_floating(out, {a, end}, near_end ? "b - (b - a) * (1 - s0)" : "a + s0 * (b - a)", weight);
}
Tensor& lerp_tensor_out(const Tensor& a, const Tensor& end, const Tensor& weight, Tensor& out) {
    return apply_floating(out, {a, end, weight}, "fabs(c) < (T)0.5 ? a + c * (b - a) : b - (b - a) * (1 - c)");
}
Tensor& addcmul_out(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value, Tensor& out) {
    return apply(out, {a, b, c}, "a + s0 * b * c", value);
}
Tensor& addcdiv_out(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value, Tensor& out) {
    return apply(out, {a, b, c}, "a + s0 * (b / c)", value);
}

// Pointwise losses: the reduction is an operator of its own on the differences.
Tensor& reduce_loss(Tensor& elements, int64_t reduction, Tensor& out) {
    if (reduction == at::Reduction::Mean)
        at::mean_out(out, elements, at::IntArrayRef{}, false);
    else
        at::sum_out(out, elements, at::IntArrayRef{}, false);
    return out;
}
Tensor& pointwise_loss(const Tensor& a, const Tensor& target, int64_t reduction, Tensor& out, const char* expression,
                       c10::ArrayRef<Scalar> scalars = {}) {
    if (reduction == at::Reduction::None)
        return apply_floating(out, {a, target}, expression, scalars);
    const auto options = a.options().dtype(at::result_type(a, target));
    Tensor elements = at::empty(at::infer_size(a.sizes(), target.sizes()), options);
    apply_floating(elements, {a, target}, expression, scalars);
    return reduce_loss(elements, reduction, out);
}
Tensor& pointwise_loss_backward(const Tensor& grad, const Tensor& a, const Tensor& target, int64_t reduction,
                                Tensor& out, const char* expression, double parameter = 0) {
    const double norm = reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(a.numel()) : 1.0;
    return apply_floating(out, {grad, a, target}, expression, {Scalar(norm), Scalar(parameter)});
}
Tensor& mse_loss_out(const Tensor& a, const Tensor& target, int64_t reduction, Tensor& out) {
    return pointwise_loss(a, target, reduction, out, "(a - b) * (a - b)");
}
Tensor& mse_loss_backward_out(const Tensor& grad, const Tensor& a, const Tensor& target, int64_t reduction,
                              Tensor& out) {
    return pointwise_loss_backward(grad, a, target, reduction, out, "2 * s0 * (b - c) * a");
}
Tensor mse_loss_backward(const Tensor& grad, const Tensor& a, const Tensor& target, int64_t reduction) {
    Tensor out = at::empty_like(a);
    return mse_loss_backward_out(grad, a, target, reduction, out);
}
Tensor& smooth_l1_loss_out(const Tensor& a, const Tensor& target, int64_t reduction, double beta, Tensor& out) {
    return pointwise_loss(a, target, reduction, out,
                          "fabs(a - b) < s0 ? (T)0.5 * (a - b) * (a - b) / s0 : fabs(a - b) - (T)0.5 * s0",
                          Scalar(beta));
}
Tensor& smooth_l1_loss_backward_out(const Tensor& grad, const Tensor& a, const Tensor& target, int64_t reduction,
                                    double beta, Tensor& out) {
    return pointwise_loss_backward(grad, a, target, reduction, out,
                                   "s0 * a * (fabs(b - c) < s1 ? (b - c) / s1 : t_sign(b - c))", beta);
}
Tensor& huber_loss_out(const Tensor& a, const Tensor& target, int64_t reduction, double delta, Tensor& out) {
    return pointwise_loss(a, target, reduction, out,
                          "fabs(a - b) <= s0 ? (T)0.5 * (a - b) * (a - b) : s0 * (fabs(a - b) - (T)0.5 * s0)",
                          Scalar(delta));
}
Tensor huber_loss(const Tensor& a, const Tensor& target, int64_t reduction, double delta) {
    TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
    const auto type = at::result_type(a, target);
    TORCH_CHECK(at::canCast(type, a.scalar_type()), "result type ", type, " can't be cast to the desired output type ",
                a.scalar_type());
    Tensor out = reduction == at::Reduction::None ? at::empty(at::infer_size(a.sizes(), target.sizes()), a.options())
                                                  : at::empty({}, a.options());
    return huber_loss_out(a, target, reduction, delta, out);
}
Tensor& huber_loss_backward_out(const Tensor& grad, const Tensor& a, const Tensor& target, int64_t reduction,
                                double delta, Tensor& out) {
    return pointwise_loss_backward(grad, a, target, reduction, out,
                                   "s0 * a * (fabs(b - c) <= s1 ? b - c : s1 * t_sign(b - c))", delta);
}

bool is_there(const std::optional<Tensor>& tensor) { return tensor && tensor->defined(); }

// Logarithms are at least -100, as in PyTorch.
Tensor& cross_entropy_out(const Tensor& a, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                          Tensor& out) {
    check_type(a.scalar_type(), target, is_there(weight) ? *weight : target);
    Tensor elements = at::empty(a.sizes(), a.options());
    apply_floating(elements, {a, target}, "(b - 1) * t_nan_max(log1p(-a), (T)-100) - b * t_nan_max(log(a), (T)-100)");
    if (is_there(weight))
        elements.mul_(*weight);
    at::native::resize_output(out, reduction == at::Reduction::None ? a.sizes() : at::IntArrayRef{});
    return reduction == at::Reduction::None ? out.copy_(elements) : reduce_loss(elements, reduction, out);
}
Tensor cross_entropy(const Tensor& a, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction) {
    Tensor out = at::empty({0}, a.options());
    return cross_entropy_out(a, target, weight, reduction, out);
}
Tensor& cross_entropy_backward_out(const Tensor& grad, const Tensor& a, const Tensor& target,
                                   const std::optional<Tensor>& weight, int64_t reduction, Tensor& out) {
    at::native::resize_output(out, a.sizes());
    pointwise_loss_backward(grad, a, target, reduction, out, "s0 * a * (b - c) / t_nan_max((1 - b) * b, (T)1e-12)");
    return is_there(weight) ? out.mul_(*weight) : out;
}
Tensor cross_entropy_backward(const Tensor& grad, const Tensor& a, const Tensor& target,
                              const std::optional<Tensor>& weight, int64_t reduction) {
    Tensor out = at::empty(a.sizes(), a.options());
    return cross_entropy_backward_out(grad, a, target, weight, reduction, out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("clamp.out", clamp_out));
    m.impl(NATIVE("clamp_min.out", clamp_min_out));
    m.impl(NATIVE("clamp_max.out", clamp_max_out));
    m.impl(NATIVE("clamp.Tensor_out", clamp_tensor_out));
    m.impl(NATIVE("clamp_min.Tensor_out", clamp_min_tensor_out));
    m.impl(NATIVE("clamp_max.Tensor_out", clamp_max_tensor_out));
    m.impl(NATIVE("relu", relu));
    m.impl(NATIVE("relu_", relu_));
    m.impl(NATIVE("hardtanh", hardtanh));
    m.impl(NATIVE("hardtanh_", hardtanh_));
    m.impl(NATIVE("hardtanh.out", hardtanh_out));
    m.impl(NATIVE("hardtanh_backward", hardtanh_backward));
    m.impl(NATIVE("threshold.out", threshold_out));
    m.impl(NATIVE("threshold_backward.grad_input", threshold_backward_out));
    m.impl(NATIVE("leaky_relu.out", leaky_relu_out));
    m.impl(NATIVE("leaky_relu_backward.grad_input", leaky_relu_backward_out));
    m.impl(NATIVE("elu.out", elu_out));
    m.impl(NATIVE("elu_backward.grad_input", elu_backward_out));
    m.impl(NATIVE("softplus.out", softplus_out));
    m.impl(NATIVE("softplus_backward.grad_input", softplus_backward_out));
    m.impl(NATIVE("gelu.out", gelu_out));
    m.impl(NATIVE("gelu_backward.grad_input", gelu_backward_out));
    m.impl(NATIVE("hardswish", hardswish));
    m.impl(NATIVE("hardswish_", hardswish_));
    m.impl(NATIVE("hardswish_backward", hardswish_backward));
    m.impl(NATIVE("log_sigmoid_forward", log_sigmoid));
    m.impl(NATIVE("log_sigmoid_forward.output", log_sigmoid_out));
    m.impl(NATIVE("log_sigmoid_backward", log_sigmoid_backward));
    m.impl(NATIVE("log_sigmoid_backward.grad_input", log_sigmoid_backward_out));
    m.impl(NATIVE("_prelu_kernel", prelu));
    m.impl(NATIVE("_prelu_kernel_backward", prelu_backward));
    m.impl(NATIVE("huber_loss", huber_loss));
    m.impl(NATIVE("huber_loss.out", huber_loss_out));
    m.impl(NATIVE("huber_loss_backward.out", huber_loss_backward_out));
    m.impl(NATIVE("glu.out", glu_out));
    m.impl(NATIVE("glu_backward", glu_backward));
    m.impl(NATIVE("glu_backward.grad_input", glu_backward_out));
    m.impl(NATIVE("binary_cross_entropy", cross_entropy));
    m.impl(NATIVE("binary_cross_entropy.out", cross_entropy_out));
    m.impl(NATIVE("binary_cross_entropy_backward", cross_entropy_backward));
    m.impl(NATIVE("binary_cross_entropy_backward.grad_input", cross_entropy_backward_out));
    m.impl(NATIVE_COMPLEX("where.self", where));
    m.impl(NATIVE_COMPLEX("where.self_out", where_out));
    m.impl(NATIVE_COMPLEX("masked_fill_.Scalar", masked_fill_scalar_));
    m.impl(NATIVE_COMPLEX("masked_fill_.Tensor", masked_fill_tensor_));
    m.impl(NATIVE("lerp.Scalar_out", lerp_scalar_out));
    m.impl(NATIVE("lerp.Tensor_out", lerp_tensor_out));
    m.impl(NATIVE_COMPLEX("addcmul.out", addcmul_out));
    m.impl(NATIVE_COMPLEX("addcdiv.out", addcdiv_out));
    m.impl(NATIVE("mse_loss.out", mse_loss_out));
    m.impl(NATIVE("mse_loss_backward", mse_loss_backward));
    m.impl(NATIVE("mse_loss_backward.grad_input", mse_loss_backward_out));
    m.impl(NATIVE("smooth_l1_loss.out", smooth_l1_loss_out));
    m.impl(NATIVE("smooth_l1_loss_backward.grad_input", smooth_l1_loss_backward_out));
}

}  // namespace torch_opencl
