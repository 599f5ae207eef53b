// Losses of classes that must score higher than others by a margin: of one class per sample (multi_margin_loss) and of several
// (multilabel_margin_loss). One work-item per sample. As in loss.cpp, a target outside of the classes makes the loss NaN.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// The losses of samples, or with a gradient in `grads` (one, or one per sample) those of their classes.
const char* const one_class = R"(
kernel void margin(global const X_T* in, global const long* target, global const X_T* weight, global const X_T* grads, global X_T* out,
                   long classes, T limit, T scale, int is_square, int has_weight, int backward, long grad_step) {
  long i = get_global_id(0), t = target[i], row = i * classes;
  int valid = t >= 0 && t < classes;
  T score = valid ? LOADX(in, row + t) : (T)NAN, w = (has_weight && valid ? LOADX(weight, t) : (T)1) / classes, sum = 0;
  if (backward) w *= LOADX(grads, i * grad_step) * scale;
  for (long c = 0; c < classes; ++c) {
    T z = limit - score + LOADX(in, row + c), g = 0;
    if (c == t || z <= 0) z = 0;
    if (backward) {
      g = z == 0 ? (T)0 : (is_square ? 2 * z : (T)1) * w;
      sum += g;
      STOREX(out, row + c, g);
    } else
      sum += is_square ? z * z : z;
  }
  if (!backward) STOREX(out, i, sum * w);
  else if (valid) STOREX(out, row + t, -sum);
}
)";
// The classes of a sample end at the first negative one. A class may be named twice.
const char* const some_classes = R"(
kernel void margin(global const X_T* in, global const long* target, global X_T* is_target, global const X_T* grads, global X_T* out,
                   long classes, T scale, int backward, long grad_step) {
  long i = get_global_id(0), row = i * classes, count = 0;
  T sum = 0, g = backward ? LOADX(grads, i * grad_step) * scale / classes : (T)0;
  for (; count < classes && target[row + count] >= 0; ++count)
    if (target[row + count] >= classes) sum = NAN;
  if (backward) {
    for (long c = 0; c < classes; ++c) STOREX(out, row + c, 0);
  } else {
    for (long c = 0; c < classes; ++c) STOREX(is_target, row + c, 0);
    for (long k = 0; k < count; ++k)
      if (target[row + k] < classes) STOREX(is_target, row + target[row + k], 1);
  }
  for (long k = 0; k < count; ++k) {
    long t = target[row + k];
    if (t >= classes) continue;
    T score = LOADX(in, row + t), of_target = 0;
    for (long c = 0; c < classes; ++c) {
      T z = 1 - score + LOADX(in, row + c);
      if (LOADX(is_target, row + c) != 0 || z <= 0) continue;
      if (!backward) { sum += z; continue; }
      STOREX(out, row + c, LOADX(out, row + c) + g);
      of_target += g;
    }
    if (backward) STOREX(out, row + t, LOADX(out, row + t) - of_target);
  }
  if (!backward) STOREX(out, i, sum / classes);
}
)";

Kernel& kernel_for(const Device& device, c10::ScalarType type, const char* name, const char* source) {
    check_supported(type, device.index, name);
    return kernel_of(device, std::string(name) + short_name(type), "margin", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + source;
    });
}

struct Shape {
    int64_t samples, classes;
    at::DimVector losses;  // of one sample without a batch: no dimensions
};
Shape shape_of(const Tensor& self, const char* name) {
    check_floating(self.scalar_type(), name);
    TORCH_CHECK((self.dim() == 2 && self.size(1) != 0) || (self.dim() == 1 && self.size(0) != 0) || self.dim() == 0,
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", self.sizes());
    if (self.dim() < 2)
        return {1, self.dim() == 0 ? 1 : self.size(0), {}};
    return {self.size(0), self.size(1), {self.size(0)}};
}
Tensor reduced(const Tensor& losses, int64_t reduction) {
    return reduction == at::Reduction::None ? losses : reduction == at::Reduction::Mean ? losses.mean() : losses.sum();
}
// What each loss counts for, and how a gradient is read.
double scale_of(const Shape& shape, int64_t reduction) {
    return reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(shape.samples) : 1.0;
}
struct Gradient {
    Tensor values;
    int64_t step;
};
Gradient gradient_of(const Tensor& grad, int64_t reduction) {
    const Tensor dense = grad.contiguous();
    return {dense, reduction == at::Reduction::None && dense.numel() > 1 ? 1 : 0};
}
Tensor given(const Tensor& made, Tensor& out) {
    check_type(made.scalar_type(), out);
    at::native::resize_output(out, made.sizes());
    return out.copy_(made);
}

struct Margin {
    const Tensor& self;
    const Tensor& target;
    const Scalar& p;
    const Scalar& margin;
    const OptionalTensor& weight;
    int64_t reduction;
};
Tensor multi_margin(const Margin& call, const Tensor& grad) {
    const Shape shape = shape_of(call.self, "multi_margin_loss");
    const auto type = call.self.scalar_type();
    TORCH_CHECK(call.p.toDouble() == 1 || call.p.toDouble() == 2, "only p == 1 and p == 2 supported");
    TORCH_CHECK(call.target.dim() <= 1 && call.target.numel() == shape.samples,
                "inconsistent target size, got: ", call.target.sizes());
    TORCH_CHECK(call.target.scalar_type() == at::kLong, "expected scalar type Long but found ",
                call.target.scalar_type());
    const bool has_weight = call.weight && call.weight->defined();
    if (has_weight) {
        check_type(type, *call.weight);
        TORCH_CHECK(call.weight->numel() == shape.classes, "inconsistent weight size, got: ", call.weight->sizes());
    }
    const bool is_backward = grad.defined();
    const Tensor in = call.self.contiguous(), target = call.target.contiguous();
    const Tensor weight = has_weight ? call.weight->contiguous() : in;
    const Gradient gradient = is_backward ? gradient_of(grad, call.reduction) : Gradient{in, 0};
    Tensor out = at::empty(is_backward ? call.self.sizes() : at::IntArrayRef(shape.losses), call.self.options());
    if (shape.samples > 0) {
        const Device& device = opencl_device(in);
        Launch(device, kernel_for(device, type, "multi_margin_loss", one_class))
            .read(in)
            .read(target)
            .read(weight)
            .read(gradient.values)
            .written(out)
            .value(shape.classes)
            .scalar(scalar_bytes(call.margin, type))
            .scalar(scalar_bytes(scale_of(shape, call.reduction), type))
            .value(call.p.toDouble() == 2 ? 1 : 0)
            .value(has_weight ? 1 : 0)
            .value(is_backward ? 1 : 0)
            .value(gradient.step)
            .run({static_cast<size_t>(shape.samples), 1, 1});
    }
    return is_backward ? out : reduced(out, call.reduction);
}
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                         const OptionalTensor& weight, int64_t reduction) {
    return multi_margin({self, target, p, margin, weight, reduction}, {});
}
Tensor& multi_margin_loss_out(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                              const OptionalTensor& weight, int64_t reduction, Tensor& out) {
    given(multi_margin({self, target, p, margin, weight, reduction}, {}), out);
    return out;
}
Tensor multi_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p,
                                  const Scalar& margin, const OptionalTensor& weight, int64_t reduction) {
    check_type(self.scalar_type(), grad);
    return multi_margin({self, target, p, margin, weight, reduction}, grad);
}
Tensor& multi_margin_loss_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p,
                                       const Scalar& margin, const OptionalTensor& weight, int64_t reduction,
                                       Tensor& out) {
    given(torch_opencl::multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction), out);
    return out;
}

Tensor multilabel_margin(const Tensor& self, const Tensor& target, const Tensor& is_target, int64_t reduction,
                         const Tensor& grad) {
    const Shape shape = shape_of(self, "multilabel_margin_loss");
    const auto type = self.scalar_type();
    TORCH_CHECK(target.sizes() == self.sizes() || (self.dim() < 2 && target.numel() == self.numel()),
                "inconsistent target size: ", target.sizes(), " for self of size: ", self.sizes());
    TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
    const bool is_backward = grad.defined();
    const Tensor in = self.contiguous(), targets = target.contiguous(), flags = is_target.contiguous();
    const Gradient gradient = is_backward ? gradient_of(grad, reduction) : Gradient{in, 0};
    Tensor out = at::empty(is_backward ? self.sizes() : at::IntArrayRef(shape.losses), self.options());
    if (shape.samples > 0) {
        const Device& device = opencl_device(in);
        Launch(device, kernel_for(device, type, "multilabel_margin_loss", some_classes))
            .read(in)
            .read(targets)
            .written(flags)
            .read(gradient.values)
            .written(out)
            .value(shape.classes)
            .scalar(scalar_bytes(scale_of(shape, reduction), type))
            .value(is_backward ? 1 : 0)
            .value(gradient.step)
            .run({static_cast<size_t>(shape.samples), 1, 1});
    }
    return is_backward ? out : reduced(out, reduction);
}
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, int64_t reduction) {
    Tensor is_target = at::empty(target.sizes(), self.options());
    const Tensor loss = multilabel_margin(self, target, is_target, reduction, {});
    return {loss, is_target};
}
std::tuple<Tensor&, Tensor&> multilabel_margin_loss_forward_out(const Tensor& self, const Tensor& target,
                                                                int64_t reduction, Tensor& out, Tensor& is_target) {
    const auto [loss, flags] = torch_opencl::multilabel_margin_loss_forward(self, target, reduction);
    given(loss, out);
    given(flags, is_target);
    return {out, is_target};
}
Tensor multilabel_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                                       const Tensor& is_target) {
    check_type(self.scalar_type(), grad, is_target);
    return multilabel_margin(self, target, is_target, reduction, grad);
}
Tensor& multilabel_margin_loss_backward_out(const Tensor& grad, const Tensor& self, const Tensor& target,
                                            int64_t reduction, const Tensor& is_target, Tensor& out) {
    given(torch_opencl::multilabel_margin_loss_backward(grad, self, target, reduction, is_target), out);
    return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("multi_margin_loss", torch_opencl::multi_margin_loss));
    m.impl(NATIVE("multi_margin_loss.out", multi_margin_loss_out));
    m.impl(NATIVE("multi_margin_loss_backward", torch_opencl::multi_margin_loss_backward));
    m.impl(NATIVE("multi_margin_loss_backward.grad_input", multi_margin_loss_backward_out));
    m.impl(NATIVE("multilabel_margin_loss_forward", torch_opencl::multilabel_margin_loss_forward));
    m.impl(NATIVE("multilabel_margin_loss_forward.output", multilabel_margin_loss_forward_out));
    m.impl(NATIVE("multilabel_margin_loss_backward", torch_opencl::multilabel_margin_loss_backward));
    m.impl(NATIVE("multilabel_margin_loss_backward.grad_input", multilabel_margin_loss_backward_out));
}

}  // namespace torch_opencl
