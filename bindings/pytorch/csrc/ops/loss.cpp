// The negative log likelihood loss, over [N, C] or [N, C, ...], and its gradient. A target outside of the classes makes the loss NaN:
// finding it would cost a wait for the device at each call.
#include "native.h"
#include "rows.h"

#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

struct Sizes {
    int64_t samples, classes, inner;
};

Sizes sizes_of(const Tensor& self) {
    if (self.dim() == 1)
        return {1, self.size(0), 1};
    int64_t inner = 1;
    for (int64_t d = 2; d < self.dim(); ++d)
        inner *= self.size(d);
    return {self.size(0) * inner, self.size(1), inner};
}

const char* const at_target = R"(
#define WEIGHT(t) (has_weight ? LOADX(weight, t) : (T)1)
#define PLACE(i, t) ((i) / inner * classes * inner + (t) * inner + (i) % inner)
)";

const char* const parameters =
    "global const X_T* in, global const long* target, global const X_T* weight, int has_weight, "
    "global X_T* out, global X_T* total, long samples, long classes, long inner, long ignored, int mean";

// Meta functions check the sizes of vectors of samples, but not of images.
void check_target(const Tensor& self, const Tensor& target) {
    TORCH_CHECK(target.scalar_type() == at::kLong || target.scalar_type() == at::kByte,
                "expected scalar type Long but found ", target.scalar_type());
    const bool is_image = self.dim() > 2;
    TORCH_CHECK(!is_image || (target.dim() == self.dim() - 1 && target.size(0) == self.size(0) &&
                              target.sizes().slice(1) == self.sizes().slice(2)),
                "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes());
}
void check_weight(const Tensor& self, const std::optional<Tensor>& weight) {
    if (!weight || !weight->defined())
        return;
    check_type(self.scalar_type(), *weight);
    const int64_t classes = sizes_of(self).classes;
    TORCH_CHECK(weight->numel() == classes, "weight tensor should be defined either for all ", classes,
                " classes or no classes but got weight tensor of shape: ", weight->sizes());
}

Kernel& kernel_for(const Device& device, c10::ScalarType type, const char* name) {
    return kernel_of(device, std::string("nll ") + name + short_name(type), name, [&] {
        return row_macros(type) + at_target + "kernel void each(" + parameters + R"() {
  long i = get_global_id(0), t = target[i];
  STOREX(out, i, t == ignored ? (T)0 : t < 0 || t >= classes ? (T)NAN : -LOADX(in, PLACE(i, t)) * WEIGHT(t));
}
)" + row_kernel +
               "all_samples(" + parameters + R"() {
  local T shared[ITEMS];
  int lane = get_local_id(0);
  T loss = 0, weights = 0;
  // Sums of sums, which are more accurate than long sums.
  for (long begin = lane; begin < samples; begin += 128 * ITEMS) {
    T part = 0, part_weights = 0;
    for (long i = begin, end = min(samples, begin + 128 * ITEMS); i < end; i += ITEMS) {
      long t = target[i];
      if (t == ignored) continue;
      if (t < 0 || t >= classes) { part = NAN; continue; }
      part -= LOADX(in, PLACE(i, t)) * WEIGHT(t);
      part_weights += WEIGHT(t);
    }
    loss += part;
    weights += part_weights;
  }
  REDUCE_SUM(loss);
  REDUCE_SUM(weights);
  if (lane == 0) { STOREX(out, 0, mean ? loss / weights : loss); STOREX(total, 0, weights); }
}
kernel void gradient(global const X_T* grad, global const long* target, global const X_T* weight, int has_weight, global X_T* out,
                     global const X_T* total, long samples, long classes, long inner, long ignored, int reduction) {
  long i = get_global_id(0), t = target[i];
  if (t == ignored || t < 0 || t >= classes) return;
  T g = LOADX(grad, reduction == 0 ? i : 0);
  if (reduction == 1) g /= LOADX(total, 0);
  STOREX(out, PLACE(i, t), -g * WEIGHT(t));
}
)";
    });
}

std::tuple<Tensor&, Tensor&> forward_out(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                         int64_t reduction, int64_t ignored, Tensor& out, Tensor& total) {
    check_weight(self, weight);
    check_target(self, target);
    check_type(self.scalar_type(), out, total);
    const Sizes sizes = sizes_of(self);
    const Tensor in = self.contiguous(), to = target.to(at::kLong).contiguous();
    const bool has_weight = weight && weight->defined();
    const Tensor factors = has_weight ? weight->contiguous() : in;
    const bool is_each = reduction == at::Reduction::None && self.dim() > 1;
    at::native::resize_output(out, is_each ? target.sizes() : at::IntArrayRef{});
    at::native::resize_output(total, at::IntArrayRef{});
    if (is_each)
        total.zero_();
    if (out.numel() == 0)
        return {out, total};
    const Device& device = opencl_device(self);
    check_supported(self.scalar_type(), device.index, "nll_loss");
    Launch launch(device, kernel_for(device, self.scalar_type(), is_each ? "each" : "all_samples"));
    const Tensor result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    launch.read(in).read(to).read(factors).value<int32_t>(has_weight);
    launch.written(result).written(total).value(sizes.samples).value(sizes.classes).value(sizes.inner);
    launch.value(ignored).value<int32_t>(reduction == at::Reduction::Mean);
    if (is_each)
        launch.run({static_cast<size_t>(sizes.samples), 1, 1});
    else
        run_rows(launch, 1);
    if (!result.is_same(out))
        out.copy_(result);
    return {out, total};
}

Tensor& backward_out(const Tensor& grad, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                     int64_t reduction, int64_t ignored, const Tensor& total, Tensor& out) {
    check_weight(self, weight);
    check_target(self, target);
    check_type(self.scalar_type(), grad, total, out);
    const Sizes sizes = sizes_of(self);
    const Tensor g = grad.contiguous(), to = target.to(at::kLong).contiguous();
    const bool has_weight = weight && weight->defined();
    const Tensor factors = has_weight ? weight->contiguous() : self;
    at::native::resize_output(out, self.sizes());
    Tensor result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    result.zero_();
    const Device& device = opencl_device(self);
    check_supported(self.scalar_type(), device.index, "nll_loss");
    if (result.numel() > 0) {
        Launch launch(device, kernel_for(device, self.scalar_type(), "gradient"));
        launch.read(g).read(to).read(factors);
        launch.value<int32_t>(has_weight).written(result).read(total).value(sizes.samples);
        launch.value(sizes.classes).value(sizes.inner).value(ignored).value(static_cast<int32_t>(reduction));
        launch.run({static_cast<size_t>(sizes.samples), 1, 1});
    }
    return result.is_same(out) ? out : out.copy_(result);
}

std::tuple<Tensor, Tensor> forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                   int64_t reduction, int64_t ignored) {
    Tensor out = at::empty({0}, self.options()), total = at::empty({}, self.options());
    forward_out(self, target, weight, reduction, ignored, out, total);
    return {out, total};
}

Tensor backward(const Tensor& grad, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                int64_t reduction, int64_t ignored, const Tensor& total) {
    Tensor out = at::empty(self.sizes(), self.options());
    return backward_out(grad, self, target, weight, reduction, ignored, total, out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("nll_loss_forward.output", forward_out));
    m.impl(NATIVE("nll_loss_backward.grad_input", backward_out));
    m.impl(NATIVE("nll_loss2d_forward.output", forward_out));
    m.impl(NATIVE("nll_loss2d_backward.grad_input", backward_out));
    m.impl(NATIVE("nll_loss2d_forward", forward));
    m.impl(NATIVE("nll_loss2d_backward", backward));
}

}  // namespace torch_opencl
