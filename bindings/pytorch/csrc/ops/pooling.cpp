// Pooling over two dimensions. A gradient is collected by each pixel from the windows that it lies in, so that no two work-items
// add to one place.
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Pool.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::IntArrayRef;
using at::Tensor;

// The kernels' structure of the same name: planes of h x w pixels, oh x ow windows.
struct Pool {
    int64_t h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
    int64_t include_pad, divisor;  // of averages; 0: none given
};

const char* const kernels = R"(
typedef struct { long h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, include_pad, divisor; } Pool;
kernel void max_pool(global const X_T* in, global X_T* out, global long* indices, Pool P) {
  long x = get_global_id(0), y = get_global_id(1), plane = get_global_id(2);
  T best = TMIN;
  long place = -1;
  for (long i = 0; i < P.kh; ++i)
    for (long j = 0; j < P.kw; ++j) {
      long r = y * P.sh - P.ph + i * P.dh, c = x * P.sw - P.pw + j * P.dw;
      if (r < 0 || r >= P.h || c < 0 || c >= P.w) continue;
      T v = LOADX(in, (plane * P.h + r) * P.w + c);
      if (place < 0 || v > best || v != v) { best = v; place = r * P.w + c; }
    }
  STOREX(out, (plane * P.oh + y) * P.ow + x, best);
  indices[(plane * P.oh + y) * P.ow + x] = place;
}
// Windows that contain row r begin at most (kernel - 1) * dilation before it.
#define FIRST(r, k, d, s, p) max(0L, ((r) + (p) - ((k) - 1) * (d) + (s) - 1) / (s))
#define LAST(r, s, p, n) min((n) - 1, ((r) + (p)) / (s))
kernel void max_pool_grad(global const X_T* grad, global const long* indices, global X_T* out, Pool P) {
  long c = get_global_id(0), r = get_global_id(1), plane = get_global_id(2);
  T sum = 0;
  for (long y = FIRST(r, P.kh, P.dh, P.sh, P.ph); y <= LAST(r, P.sh, P.ph, P.oh); ++y)
    for (long x = FIRST(c, P.kw, P.dw, P.sw, P.pw); x <= LAST(c, P.sw, P.pw, P.ow); ++x) {
      long at = (plane * P.oh + y) * P.ow + x;
      if (indices[at] == r * P.w + c) sum += LOADX(grad, at);
    }
  STOREX(out, (plane * P.h + r) * P.w + c, sum);
}
inline long count_of(Pool P, long y, long x) {
  if (P.divisor) return P.divisor;
  long r0 = y * P.sh - P.ph, c0 = x * P.sw - P.pw, r1 = min(r0 + P.kh, P.h + P.ph), c1 = min(c0 + P.kw, P.w + P.pw);
  if (P.include_pad) return (r1 - r0) * (c1 - c0);
  return (min(r1, P.h) - max(r0, 0L)) * (min(c1, P.w) - max(c0, 0L));
}
kernel void average_pool(global const X_T* in, global X_T* out, Pool P) {
  long x = get_global_id(0), y = get_global_id(1), plane = get_global_id(2);
  T sum = 0;
  for (long r = max(0L, y * P.sh - P.ph); r < min(P.h, y * P.sh - P.ph + P.kh); ++r)
    for (long c = max(0L, x * P.sw - P.pw); c < min(P.w, x * P.sw - P.pw + P.kw); ++c)
      sum += LOADX(in, (plane * P.h + r) * P.w + c);
  STOREX(out, (plane * P.oh + y) * P.ow + x, sum / (T)count_of(P, y, x));
}
kernel void average_pool_grad(global const X_T* grad, global X_T* out, Pool P) {
  long c = get_global_id(0), r = get_global_id(1), plane = get_global_id(2);
  T sum = 0;
  for (long y = FIRST(r, P.kh, 1, P.sh, P.ph); y <= LAST(r, P.sh, P.ph, P.oh); ++y)
    for (long x = FIRST(c, P.kw, 1, P.sw, P.pw); x <= LAST(c, P.sw, P.pw, P.ow); ++x)
      sum += LOADX(grad, (plane * P.oh + y) * P.ow + x) / (T)count_of(P, y, x);
  STOREX(out, (plane * P.h + r) * P.w + c, sum);
}
// Windows of an adaptive pool: [floor(i h / oh), ceil((i + 1) h / oh)).
kernel void adaptive_pool(global const X_T* in, global X_T* out, Pool P) {
  long x = get_global_id(0), y = get_global_id(1), plane = get_global_id(2);
  long r0 = y * P.h / P.oh, r1 = ((y + 1) * P.h + P.oh - 1) / P.oh, c0 = x * P.w / P.ow, c1 = ((x + 1) * P.w + P.ow - 1) / P.ow;
  T sum = 0;
  for (long r = r0; r < r1; ++r)
    for (long c = c0; c < c1; ++c) sum += LOADX(in, (plane * P.h + r) * P.w + c);
  STOREX(out, (plane * P.oh + y) * P.ow + x, sum / (T)((r1 - r0) * (c1 - c0)));
}
kernel void adaptive_pool_grad(global const X_T* grad, global X_T* out, Pool P) {
  long c = get_global_id(0), r = get_global_id(1), plane = get_global_id(2);
  T sum = 0;
  for (long y = r * P.oh / P.h; y < min(P.oh, ((r + 1) * P.oh + P.h - 1) / P.h); ++y)
    for (long x = c * P.ow / P.w; x < min(P.ow, ((c + 1) * P.ow + P.w - 1) / P.w); ++x) {
      long r0 = y * P.h / P.oh, r1 = ((y + 1) * P.h + P.oh - 1) / P.oh, c0 = x * P.w / P.ow, c1 = ((x + 1) * P.w + P.ow - 1) / P.ow;
      if (r >= r0 && r < r1 && c >= c0 && c < c1) sum += LOADX(grad, (plane * P.oh + y) * P.ow + x) / (T)((r1 - r0) * (c1 - c0));
    }
  STOREX(out, (plane * P.h + r) * P.w + c, sum);
}
)";

Launch launch_of(const Tensor& tensor, const char* name) {
    const Device& device = opencl_device(tensor);
    const auto type = tensor.scalar_type();
    check_supported(type, device.index, "pooling");
    return Launch(device, kernel_of(device, std::string(name) + " " + short_name(type), name, [&] {
                      return compute_type_macros(type) + access_macros("X", type) + "#define X_T " +
                             storage_name(type) + "\n" + kernels;
                  }));
}

size_t planes(const Tensor& image) {
    return static_cast<size_t>(image.numel() / std::max<int64_t>(1, image.size(-1) * image.size(-2)));
}
void run_windows(Launch& launch, const Pool& pool, const Tensor& image) {
    launch.value(pool).run({static_cast<size_t>(pool.ow), static_cast<size_t>(pool.oh), planes(image)});
}
void run_pixels(Launch& launch, const Pool& pool, const Tensor& image) {
    launch.value(pool).run({static_cast<size_t>(pool.w), static_cast<size_t>(pool.h), planes(image)});
}

int64_t at_or(IntArrayRef values, size_t index, int64_t fallback) {
    return values.empty() ? fallback : values.size() == 1 ? values[0] : values[index];
}

Pool pool_of(const Tensor& image, const Tensor& out, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
             IntArrayRef dilation) {
    const int64_t kh = at_or(kernel, 0, 1), kw = at_or(kernel, 1, 1);
    return {image.size(-2),
            image.size(-1),
            out.size(-2),
            out.size(-1),
            kh,
            kw,
            at_or(stride, 0, kh),
            at_or(stride, 1, kw),
            at_or(padding, 0, 0),
            at_or(padding, 1, 0),
            at_or(dilation, 0, 1),
            at_or(dilation, 1, 1),
            0,
            0};
}

// The shape of the result, by PyTorch's own rule; the structured operators have checked the arguments.
at::DimVector result_sizes(const Tensor& image, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                           IntArrayRef dilation, bool ceil_mode) {
    at::DimVector sizes(image.sizes());
    for (size_t d = 0; d < 2; ++d) {
        const int64_t k = at_or(kernel, d, 1);
        int64_t& size = sizes[sizes.size() - 2 + d];
        size = at::native::pooling_output_shape<int64_t>(size, k, at_or(padding, d, 0), at_or(stride, d, k),
                                                         at_or(dilation, d, 1), ceil_mode);
    }
    return sizes;
}

Tensor dense_like(const Tensor& out) { return out.is_contiguous() ? out : at::empty(out.sizes(), out.options()); }
void give(const Tensor& out, const Tensor& dense) {
    if (!dense.is_same(out))
        out.copy_(dense);
}

std::tuple<Tensor&, Tensor&> max_pool2d_out(const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                                            IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, Tensor& out,
                                            Tensor& indices) {
    const auto sizes = result_sizes(image, kernel, stride, padding, dilation, ceil_mode);
    at::native::resize_output(out, sizes);
    at::native::resize_output(indices, sizes);
    const Tensor in = image.contiguous(), values = dense_like(out), places = dense_like(indices);
    if (out.numel() > 0) {
        Launch launch = launch_of(in, "max_pool");
        launch.read(in).written(values).written(places);
        run_windows(launch, pool_of(in, out, kernel, stride, padding, dilation), in);
    }
    give(out, values);
    give(indices, places);
    return {out, indices};
}
Tensor& max_pool2d_backward_out(const Tensor& grad, const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                                IntArrayRef padding, IntArrayRef dilation, bool, const Tensor& indices, Tensor& out) {
    at::native::resize_output(out, image.sizes());
    const Tensor g = grad.contiguous(), places = indices.contiguous(), result = dense_like(out);
    if (g.numel() == 0)
        return out.zero_();
    Launch launch = launch_of(g, "max_pool_grad");
    launch.read(g).read(places).written(result);
    run_pixels(launch, pool_of(image, g, kernel, stride, padding, dilation), image);
    give(out, result);
    return out;
}

Tensor& avg_pool2d_out(const Tensor& image, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                       bool include_pad, std::optional<int64_t> divisor, Tensor& out) {
    at::native::resize_output(out, result_sizes(image, kernel, stride, padding, {}, ceil_mode));
    if (out.numel() == 0)
        return out;
    const Tensor in = image.contiguous(), result = dense_like(out);
    Pool pool = pool_of(in, out, kernel, stride, padding, {});
    pool.include_pad = include_pad;
    pool.divisor = divisor.value_or(0);
    Launch launch = launch_of(in, "average_pool");
    run_windows(launch.read(in).written(result), pool, in);
    give(out, result);
    return out;
}
Tensor& avg_pool2d_backward_out(const Tensor& grad, const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                                IntArrayRef padding, bool, bool include_pad, std::optional<int64_t> divisor,
                                Tensor& out) {
    at::native::resize_output(out, image.sizes());
    if (grad.numel() == 0)
        return out.zero_();
    const Tensor g = grad.contiguous(), result = dense_like(out);
    Pool pool = pool_of(image, g, kernel, stride, padding, {});
    pool.include_pad = include_pad;
    pool.divisor = divisor.value_or(0);
    Launch launch = launch_of(g, "average_pool_grad");
    run_pixels(launch.read(g).written(result), pool, image);
    give(out, result);
    return out;
}

Tensor adaptive_avg_pool2d(const Tensor& image, IntArrayRef output_size) {
    TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
    TORCH_CHECK(image.dim() == 3 || image.dim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ",
                image.sizes());
    at::DimVector sizes(image.sizes());
    sizes[sizes.size() - 2] = output_size[0];
    sizes[sizes.size() - 1] = output_size[1];
    Tensor out = at::empty(sizes, image.options());
    if (out.numel() == 0)
        return out;
    const Tensor in = image.contiguous();
    Launch launch = launch_of(in, "adaptive_pool");
    run_windows(launch.read(in).written(out), pool_of(in, out, {1}, {}, {}, {}), in);
    return out;
}
Tensor adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& image) {
    Tensor out = at::empty(image.sizes(), image.options().memory_format(at::MemoryFormat::Contiguous));
    if (grad.numel() == 0)
        return out.zero_();
    const Tensor g = grad.contiguous();
    Launch launch = launch_of(g, "adaptive_pool_grad");
    run_pixels(launch.read(g).written(out), pool_of(image, g, {1}, {}, {}, {}), image);
    return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("max_pool2d_with_indices.out", max_pool2d_out);
    m.impl("max_pool2d_with_indices_backward.grad_input", max_pool2d_backward_out);
    m.impl("avg_pool2d.out", avg_pool2d_out);
    m.impl("avg_pool2d_backward.grad_input", avg_pool2d_backward_out);
    m.impl("_adaptive_avg_pool2d", adaptive_avg_pool2d);
    m.impl("_adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward);
}

}  // namespace torch_opencl
