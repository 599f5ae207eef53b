// Softmax, its logarithm, and their gradients. The dimension is moved to the end, so that a row is contiguous.
#include "native.h"
#include "rows.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

enum class Kind { plain, logarithm };

// Whether the second loop stores the exponentials in `out` for the third one: only where `out` has the precision of T.
bool keeps_exponentials(c10::ScalarType type, Kind kind) { return kind == Kind::plain && compute_type(type) == type; }

std::string forward_source(c10::ScalarType type, Kind kind) {
    const bool keeps = keeps_exponentials(type, kind);
    return row_macros(type) + row_kernel + R"(softmax(global const X_T* in, global X_T* out, long n) {
  local T shared[ITEMS];
  int lane = get_local_id(0);
  long base = get_group_id(0) * n;
  T m = -INFINITY;
  for (long i = lane; i < n; i += ITEMS) { T x = LOADX(in, base + i); m = MAX_OF(m, x); }
  REDUCE_MAX(m);
  T sum = 0;
  for (long i = lane; i < n; i += ITEMS) { T e = exp(LOADX(in, base + i) - m); sum += e; )" +
           (keeps ? "STOREX(out, base + i, e); " : "") + R"(}
  REDUCE_SUM(sum);
  T shift = m + log(sum), scale = 1 / sum;
  for (long i = lane; i < n; i += ITEMS) STOREX(out, base + i, )" +
           (keeps                 ? "LOADX(out, base + i) * scale"
            : kind == Kind::plain ? "exp(LOADX(in, base + i) - m) * scale"
                                  : "LOADX(in, base + i) - shift") +
           ");\n}\n";
}

std::string backward_source(c10::ScalarType type, Kind kind) {
    const bool plain = kind == Kind::plain;
    return row_macros(type) + row_kernel +
           R"(softmax_grad(global const X_T* grad, global const X_T* out, global X_T* in, long n) {
  local T shared[ITEMS];
  int lane = get_local_id(0);
  long base = get_group_id(0) * n;
  T sum = 0;
  for (long i = lane; i < n; i += ITEMS) sum += )" +
           (plain ? "LOADX(grad, base + i) * LOADX(out, base + i)" : "LOADX(grad, base + i)") + R"(;
  REDUCE_SUM(sum);
  for (long i = lane; i < n; i += ITEMS) { T g = LOADX(grad, base + i), o = LOADX(out, base + i); STOREX(in, base + i, )" +
           (plain ? "o * (g - sum)" : "g - exp(o) * sum") + "); }\n}\n";
}

// The tensor with `dim` last, contiguous; a scalar becomes a vector.
Tensor as_rows(const Tensor& self, int64_t dim) {
    return self.dim() == 0 ? self.reshape({1}) : self.transpose(dim, -1).contiguous();
}

void finish(Tensor& out, const Tensor& rows, int64_t dim) {
    if (!rows.is_alias_of(out))
        out.copy_(out.dim() == 0 ? rows.reshape({}) : rows.transpose(dim, -1));
}

Tensor result_rows(Tensor& out, const Tensor& like, int64_t dim) {
    const bool is_direct = out.is_contiguous() && (out.dim() == 0 || dim == out.dim() - 1);
    return is_direct ? out.view(like.sizes()) : at::empty(like.sizes(), out.options());
}

Tensor& softmax(const Tensor& self, int64_t wrapped, bool half_to_float, Tensor& out, Kind kind) {
    check_result_type(half_to_float ? at::kFloat : self.scalar_type(), out);
    check_floating(out.scalar_type(), "softmax");
    at::native::resize_output(out, self.sizes());
    if (self.numel() == 0)
        return out;
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    const Tensor in = as_rows(self.to(out.scalar_type()), dim);
    const Tensor rows = result_rows(out, in, dim);
    const Device& device = opencl_device(self);
    const auto type = out.scalar_type();
    check_supported(type, device.index, "softmax");
    Kernel& kernel =
        kernel_of(device, std::string(kind == Kind::plain ? "softmax " : "log_softmax ") + short_name(type), "softmax",
                  [&] { return forward_source(type, kind); });
    const int64_t n = in.size(-1);
    Launch launch(device, kernel);
    run_rows(launch.read(in).written(rows).value(n), in.numel() / n);
    finish(out, rows, dim);
    return out;
}

Tensor& softmax_backward(const Tensor& grad, const Tensor& output, int64_t wrapped, Tensor& out, Kind kind) {
    at::native::resize_output(out, grad.sizes());
    if (grad.numel() == 0)
        return out;
    const int64_t dim = at::maybe_wrap_dim(wrapped, grad.dim());
    const Tensor g = as_rows(grad, dim), o = as_rows(output, dim);
    const auto type = grad.scalar_type();
    check_type(type, output);
    Tensor same = out.scalar_type() == type ? out : at::empty(out.sizes(), grad.options());
    const Tensor rows = result_rows(same, g, dim);
    const Device& device = opencl_device(grad);
    check_supported(type, device.index, "softmax");
    Kernel& kernel =
        kernel_of(device, std::string(kind == Kind::plain ? "softmax_grad " : "log_softmax_grad ") + short_name(type),
                  "softmax_grad", [&] { return backward_source(type, kind); });
    const int64_t n = g.size(-1);
    Launch launch(device, kernel);
    run_rows(launch.read(g).read(o).written(rows).value(n), g.numel() / n);
    finish(same, rows, dim);
    return out.is_same(same) ? out : out.copy_(same);
}

Tensor& softmax_out(const Tensor& self, int64_t dim, bool half_to_float, Tensor& out) {
    return softmax(self, dim, half_to_float, out, Kind::plain);
}
Tensor& log_softmax_out(const Tensor& self, int64_t dim, bool half_to_float, Tensor& out) {
    return softmax(self, dim, half_to_float, out, Kind::logarithm);
}
Tensor& softmax_backward_out(const Tensor& grad, const Tensor& output, int64_t dim, at::ScalarType, Tensor& out) {
    return softmax_backward(grad, output, dim, out, Kind::plain);
}
Tensor& log_softmax_backward_out(const Tensor& grad, const Tensor& output, int64_t dim, at::ScalarType, Tensor& out) {
    return softmax_backward(grad, output, dim, out, Kind::logarithm);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_softmax.out", softmax_out));
    m.impl(NATIVE("_log_softmax.out", log_softmax_out));
    m.impl(NATIVE("_softmax_backward_data.out", softmax_backward_out));
    m.impl(NATIVE("_log_softmax_backward_data.out", log_softmax_backward_out));
}

}  // namespace torch_opencl
