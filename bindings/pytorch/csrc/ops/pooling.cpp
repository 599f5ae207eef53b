// Pooling over two and three dimensions; two are planes of one layer. A gradient is collected by each place of the image from the
// windows that it lies in, so that no two work-items add to one place.
#include "formats.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Pool.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::IntArrayRef;
using at::Tensor;

// The kernels' structures of the same names. One dimension: `in` places, `out` windows.
struct Axis {
    int64_t in, out, kernel, stride, padding, dilation;
};
struct Pool {
    Axis z, y, x;
    int64_t include_pad, divisor;  // of averages; 0: none given
};

const char* const kernels = R"(
typedef struct { long in, out, kernel_, stride, padding, dilation; } Axis;
typedef struct { Axis z, y, x; long include_pad, divisor; } Pool;
// Where the work-item is: of the windows (out) or of the image's places (in).
#define WHERE(side) long x = get_global_id(0), y = get_global_id(1), z = get_global_id(2) % P.z.side, \
  channel = get_global_id(2) / P.z.side;
#define WINDOW(c_, z_, y_, x_) ((((c_) * P.z.out + (z_)) * P.y.out + (y_)) * P.x.out + (x_))
#define PLACE(c_, z_, y_, x_) ((((c_) * P.z.in + (z_)) * P.y.in + (y_)) * P.x.in + (x_))
#define FOR(v_, range_) for (long v_ = range_.x; v_ < range_.y; ++v_)
#define FOR_ALL(l_, r_, c_, RANGE, z_, y_, x_) \
  long2 layers = RANGE(z_, P.z), rows = RANGE(y_, P.y), columns = RANGE(x_, P.x); \
  FOR(l_, layers) FOR(r_, rows) FOR(c_, columns)
// The windows [first, end) that contain the place r: they begin at most (kernel - 1) * dilation before it.
inline long2 windows_of(long r, Axis A) {
  return (long2)(max(0L, (r + A.padding - (A.kernel_ - 1) * A.dilation + A.stride - 1) / A.stride),
                 min(A.out, (r + A.padding) / A.stride + 1));
}
// The image's places in window w of an average.
inline long2 places_of(long w, Axis A) {
  long begin = w * A.stride - A.padding;
  return (long2)(max(0L, begin), min(A.in, begin + A.kernel_));
}
// The places of windows of an adaptive pool: [floor(i in / out), ceil((i + 1) in / out)), and the windows that may have place r.
inline long2 adaptive_places(long w, Axis A) { return (long2)(w * A.in / A.out, ((w + 1) * A.in + A.out - 1) / A.out); }
inline long2 adaptive_windows(long r, Axis A) {
  return (long2)(r * A.out / A.in, min(A.out, ((r + 1) * A.out + A.in - 1) / A.in));
}
inline int is_in(long r, long2 range) { return r >= range.x && r < range.y; }
inline long length(long2 range) { return range.y - range.x; }
#define IF_BETTER(v_, place_) { T v = v_; if (place < 0 || v > best || v != v) { best = v; place = place_; } }

kernel void max_pool(global const X_T* in, global X_T* out, global long* indices, Pool P) {
  WHERE(out)
  T best = TMIN;
  long place = -1;
  for (long h = 0; h < P.z.kernel_; ++h)
    for (long i = 0; i < P.y.kernel_; ++i)
      for (long j = 0; j < P.x.kernel_; ++j) {
        long l = z * P.z.stride - P.z.padding + h * P.z.dilation, r = y * P.y.stride - P.y.padding + i * P.y.dilation,
             c = x * P.x.stride - P.x.padding + j * P.x.dilation;
        if (l < 0 || l >= P.z.in || r < 0 || r >= P.y.in || c < 0 || c >= P.x.in) continue;
        IF_BETTER(LOADX(in, PLACE(channel, l, r, c)), PLACE(0, l, r, c))
      }
  STOREX(out, WINDOW(channel, z, y, x), best);
  indices[WINDOW(channel, z, y, x)] = place;
}
kernel void adaptive_max_pool(global const X_T* in, global X_T* out, global long* indices, Pool P) {
  WHERE(out)
  T best = TMIN;
  long place = -1;
  FOR_ALL(l, r, c, adaptive_places, z, y, x) IF_BETTER(LOADX(in, PLACE(channel, l, r, c)), PLACE(0, l, r, c))
  STOREX(out, WINDOW(channel, z, y, x), best);
  indices[WINDOW(channel, z, y, x)] = place;
}
#define SUM_OF_CHOSEN(RANGE) WHERE(in) \
  T sum = 0; \
  FOR_ALL(l, r, c, RANGE, z, y, x) { \
    long at = WINDOW(channel, l, r, c); \
    if (indices[at] == PLACE(0, z, y, x)) sum += LOADX(grad, at); \
  } \
  STOREX(out, PLACE(channel, z, y, x), sum);
kernel void max_pool_grad(global const X_T* grad, global const long* indices, global X_T* out, Pool P) {
  SUM_OF_CHOSEN(windows_of)
}
kernel void adaptive_max_pool_grad(global const X_T* grad, global const long* indices, global X_T* out, Pool P) {
  SUM_OF_CHOSEN(adaptive_windows)
}
// The same on a processor, for each channel: a window adds to the place that it chose, one window after another.
kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void chosen_grad(global const X_T* grad, global const long* indices, global X_T* out, int windows, int places) {
  int lane = get_local_id(0);
  out += get_group_id(0) * places;
  grad += get_group_id(0) * windows;
  indices += get_group_id(0) * windows;
  for (int place = lane; place < places; place += 16) STOREX(out, place, (T)0);
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (lane == 0)
    for (int window = 0; window < windows; ++window) {
      long place = indices[window];
      if (place >= 0 && place < places) STOREX(out, place, LOADX(out, place) + LOADX(grad, window));
    }
}
// What a window's sum is divided by.
inline long padded_length(long w, Axis A) {
  long begin = w * A.stride - A.padding;
  return min(begin + A.kernel_, A.in + A.padding) - begin;
}
inline long count_of(Pool P, long z, long y, long x) {
  if (P.divisor) return P.divisor;
  if (P.include_pad) return padded_length(z, P.z) * padded_length(y, P.y) * padded_length(x, P.x);
  return length(places_of(z, P.z)) * length(places_of(y, P.y)) * length(places_of(x, P.x));
}
inline long adaptive_count(Pool P, long z, long y, long x) {
  return length(adaptive_places(z, P.z)) * length(adaptive_places(y, P.y)) * length(adaptive_places(x, P.x));
}
kernel void average_pool(global const X_T* in, global X_T* out, Pool P) {
  WHERE(out)
  T sum = 0;
  FOR_ALL(l, r, c, places_of, z, y, x) sum += LOADX(in, PLACE(channel, l, r, c));
  STOREX(out, WINDOW(channel, z, y, x), sum / (T)count_of(P, z, y, x));
}
kernel void average_pool_grad(global const X_T* grad, global X_T* out, Pool P) {
  WHERE(in)
  T sum = 0;
  FOR_ALL(l, r, c, windows_of, z, y, x) sum += LOADX(grad, WINDOW(channel, l, r, c)) / (T)count_of(P, l, r, c);
  STOREX(out, PLACE(channel, z, y, x), sum);
}
kernel void adaptive_pool(global const X_T* in, global X_T* out, Pool P) {
  WHERE(out)
  T sum = 0;
  FOR_ALL(l, r, c, adaptive_places, z, y, x) sum += LOADX(in, PLACE(channel, l, r, c));
  STOREX(out, WINDOW(channel, z, y, x), sum / (T)adaptive_count(P, z, y, x));
}
kernel void adaptive_pool_grad(global const X_T* grad, global X_T* out, Pool P) {
  WHERE(in)
  T sum = 0;
  FOR_ALL(l, r, c, adaptive_windows, z, y, x)
    if (is_in(z, adaptive_places(l, P.z)) && is_in(y, adaptive_places(r, P.y)) && is_in(x, adaptive_places(c, P.x)))
      sum += LOADX(grad, WINDOW(channel, l, r, c)) / (T)adaptive_count(P, l, r, c);
  STOREX(out, PLACE(channel, z, y, x), sum);
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

// One work-item for each window, or for each place of an image.
void run_windows(Launch& launch, const Pool& pool, const Tensor& out) {
    launch.value(pool).run({static_cast<size_t>(pool.x.out), static_cast<size_t>(pool.y.out),
                            static_cast<size_t>(out.numel() / (pool.x.out * pool.y.out))});
}
void run_places(Launch& launch, const Pool& pool, const Tensor& image) {
    launch.value(pool).run({static_cast<size_t>(pool.x.in), static_cast<size_t>(pool.y.in),
                            static_cast<size_t>(image.numel() / (pool.x.in * pool.y.in))});
}

int64_t at_or(IntArrayRef values, size_t index, int64_t fallback) {
    return values.empty() ? fallback : values.size() == 1 ? values[0] : values[index];
}

// The last `dims` dimensions of the image are pooled.
Pool pool_of(size_t dims, const Tensor& image, const Tensor& out, IntArrayRef kernel, IntArrayRef stride,
             IntArrayRef padding, IntArrayRef dilation) {
    const auto axis = [&](size_t d) -> Axis {
        const int64_t dim = static_cast<int64_t>(d) - static_cast<int64_t>(dims), k = at_or(kernel, d, 1);
        return {image.size(dim), out.size(dim), k, at_or(stride, d, k), at_or(padding, d, 0), at_or(dilation, d, 1)};
    };
    const Axis one{1, 1, 1, 1, 0, 1};
    return {dims == 3 ? axis(0) : one, axis(dims - 2), axis(dims - 1), 0, 0};
}

// The shape of the result, by PyTorch's own rule; the structured operators have checked the arguments.
at::DimVector result_sizes(size_t dims, const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
    at::DimVector sizes(image.sizes());
    for (size_t d = 0; d < dims; ++d) {
        const int64_t k = at_or(kernel, d, 1);
        int64_t& size = sizes[sizes.size() - dims + d];
        size = at::native::pooling_output_shape<int64_t>(size, k, at_or(padding, d, 0), at_or(stride, d, k),
                                                         at_or(dilation, d, 1), ceil_mode);
    }
    return sizes;
}

Tensor dense_like(const Tensor& out) {
    return out.is_contiguous() ? out
                               : at::empty(out.sizes(), out.options().memory_format(at::MemoryFormat::Contiguous));
}
void give(const Tensor& out, const Tensor& dense) {
    if (!dense.is_same(out))
        out.copy_(dense);
}

void check_gradient(const Tensor& grad, const Tensor& image, const Tensor& indices, const Tensor& out) {
    check_type(image.scalar_type(), grad, out);
    check_type(at::kLong, indices);
    TORCH_CHECK(indices.sizes() == grad.sizes(), "Expected a tensor of sizes ", grad.sizes(), ", but got ",
                indices.sizes(), " for indices");
}

template <size_t dims>
std::tuple<Tensor&, Tensor&> max_pool_out(const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                                          IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, Tensor& out,
                                          Tensor& indices) {
    check_type(image.scalar_type(), out);
    check_type(at::kLong, indices);
    const auto sizes = result_sizes(dims, image, kernel, stride, padding, dilation, ceil_mode);
    at::native::resize_output(out, sizes);
    at::native::resize_output(indices, sizes);
    const Tensor in = image.contiguous(), values = dense_like(out), places = dense_like(indices);
    if (out.numel() > 0) {
        Launch launch = launch_of(in, "max_pool");
        launch.read(in).written(values).written(places);
        run_windows(launch, pool_of(dims, in, out, kernel, stride, padding, dilation), out);
    }
    give(out, values);
    give(indices, places);
    return {out, indices};
}
// The gradient of pools that keep the place of each window's element; `kernel` is the kernel of devices that have an item for each place. Sums in a type of
// less precision would be rounded after each window.
void sum_of_chosen(const char* kernel, const Tensor& grad, const Tensor& indices, const Tensor& out, const Pool& pool) {
    const int64_t windows = pool.z.out * pool.y.out * pool.x.out, places = pool.z.in * pool.y.in * pool.x.in;
    const bool is_small = places < INT32_MAX && windows < INT32_MAX;
    if (!opencl_device(grad).is_gpu && is_small && compute_type(grad.scalar_type()) == grad.scalar_type()) {
        Launch launch = launch_of(grad, "chosen_grad");
        launch.read(grad).read(indices).written(out);
        launch.value(static_cast<int32_t>(windows)).value(static_cast<int32_t>(places));
        launch.run({16 * static_cast<size_t>(out.numel() / places), 1, 1}, {16, 1, 1});
        return;
    }
    Launch launch = launch_of(grad, kernel);
    launch.read(grad).read(indices).written(out);
    run_places(launch, pool, out);
}
template <size_t dims>
Tensor& max_pool_backward_out(const Tensor& grad, const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                              IntArrayRef padding, IntArrayRef dilation, bool, const Tensor& indices, Tensor& out) {
    check_gradient(grad, image, indices, out);
    at::native::resize_output(out, image.sizes());
    const Tensor g = grad.contiguous(), places = indices.contiguous(), result = dense_like(out);
    if (g.numel() == 0)
        return out.zero_();
    sum_of_chosen("max_pool_grad", g, places, result, pool_of(dims, image, g, kernel, stride, padding, dilation));
    give(out, result);
    return out;
}
// Unlike that of two dimensions, max_pool3d has no meta function: what it takes is checked here.
void check_volumes(const Tensor& image) {
    TORCH_CHECK(image.dim() == 4 || image.dim() == 5, "max_pool3d(): Expected 4D or 5D tensor, but got ",
                image.sizes());
}
std::tuple<Tensor&, Tensor&> max_pool3d_out(const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                                            IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, Tensor& out,
                                            Tensor& indices) {
    check_volumes(image);
    return max_pool_out<3>(image, kernel, stride, padding, dilation, ceil_mode, out, indices);
}
std::tuple<Tensor, Tensor> max_pool3d(const Tensor& image, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                      IntArrayRef dilation, bool ceil_mode) {
    Tensor out = at::empty({0}, image.options()), indices = at::empty({0}, image.options().dtype(at::kLong));
    torch_opencl::max_pool3d_out(image, kernel, stride, padding, dilation, ceil_mode, out, indices);
    return {in_format_of(image, out), in_format_of(image, indices)};
}
Tensor max_pool3d_backward(const Tensor& grad, const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
    Tensor out = at::empty({0}, image.options());
    return max_pool_backward_out<3>(grad, image, kernel, stride, padding, dilation, ceil_mode, indices, out);
}

template <size_t dims>
Tensor& avg_pool_out(const Tensor& image, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                     bool include_pad, std::optional<int64_t> divisor, Tensor& out) {
    check_type(image.scalar_type(), out);
    at::native::resize_output(out, result_sizes(dims, image, kernel, stride, padding, {}, ceil_mode));
    if (out.numel() == 0)
        return out;
    const Tensor in = image.contiguous(), result = dense_like(out);
    Pool pool = pool_of(dims, in, out, kernel, stride, padding, {});
    pool.include_pad = include_pad;
    pool.divisor = divisor.value_or(0);
    Launch launch = launch_of(in, "average_pool");
    run_windows(launch.read(in).written(result), pool, out);
    give(out, result);
    return out;
}
template <size_t dims>
Tensor& avg_pool_backward_out(const Tensor& grad, const Tensor& image, IntArrayRef kernel, IntArrayRef stride,
                              IntArrayRef padding, bool, bool include_pad, std::optional<int64_t> divisor,
                              Tensor& out) {
    check_type(image.scalar_type(), grad, out);
    at::native::resize_output(out, image.sizes());
    if (grad.numel() == 0)
        return out.zero_();
    const Tensor g = grad.contiguous(), result = dense_like(out);
    Pool pool = pool_of(dims, image, g, kernel, stride, padding, {});
    pool.include_pad = include_pad;
    pool.divisor = divisor.value_or(0);
    Launch launch = launch_of(g, "average_pool_grad");
    run_places(launch.read(g).written(result), pool, image);
    give(out, result);
    return out;
}

template <size_t dims>
at::DimVector adaptive_sizes(const Tensor& image, IntArrayRef output_size) {
    TORCH_CHECK(output_size.size() == dims, "adaptive_pool", dims, "d: output_size must be ", dims);
    TORCH_CHECK(image.dim() == dims + 1 || image.dim() == dims + 2, "adaptive_pool", dims, "d(): Expected ", dims + 1,
                "D or ", dims + 2, "D tensor, but got ", image.sizes());
    at::DimVector sizes(image.sizes());
    std::copy(output_size.begin(), output_size.end(), sizes.end() - dims);
    return sizes;
}
template <size_t dims>
Tensor adaptive_avg_pool(const Tensor& image, IntArrayRef output_size) {
    check_floating(image.scalar_type(), "adaptive_avg_pool");
    Tensor out = at::empty(adaptive_sizes<dims>(image, output_size), image.options());
    if (out.numel() == 0)
        return out;
    const Tensor in = image.contiguous();
    Launch launch = launch_of(in, "adaptive_pool");
    run_windows(launch.read(in).written(out), pool_of(dims, in, out, {1}, {}, {}, {}), out);
    // Of volumes the CPU's results are contiguous.
    return dims == 2 ? in_format_of(image, out) : out;
}
template <size_t dims>
Tensor adaptive_avg_pool_backward(const Tensor& grad, const Tensor& image) {
    check_type(image.scalar_type(), grad);
    Tensor out = at::empty(image.sizes(), image.options().memory_format(at::MemoryFormat::Contiguous));
    if (grad.numel() == 0)
        return out.zero_();
    const Tensor g = grad.contiguous();
    Launch launch = launch_of(g, "adaptive_pool_grad");
    run_places(launch.read(g).written(out), pool_of(dims, image, g, {1}, {}, {}, {}), image);
    return out;
}
template <size_t dims>
std::tuple<Tensor&, Tensor&> adaptive_max_pool_out(const Tensor& image, IntArrayRef output_size, Tensor& out,
                                                   Tensor& indices) {
    check_type(image.scalar_type(), out);
    check_type(at::kLong, indices);
    const auto sizes = adaptive_sizes<dims>(image, output_size);
    at::native::resize_output(out, sizes);
    at::native::resize_output(indices, sizes);
    const Tensor in = image.contiguous(), values = dense_like(out), places = dense_like(indices);
    if (out.numel() > 0) {
        Launch launch = launch_of(in, "adaptive_max_pool");
        launch.read(in).written(values).written(places);
        run_windows(launch, pool_of(dims, in, out, {1}, {}, {}, {}), out);
    }
    give(out, values);
    give(indices, places);
    return {out, indices};
}
template <size_t dims>
Tensor& adaptive_max_pool_backward_out(const Tensor& grad, const Tensor& image, const Tensor& indices, Tensor& out) {
    check_gradient(grad, image, indices, out);
    at::native::resize_output(out, image.sizes());
    if (grad.numel() == 0)
        return out.zero_();
    const Tensor g = grad.contiguous(), places = indices.contiguous(), result = dense_like(out);
    sum_of_chosen("adaptive_max_pool_grad", g, places, result, pool_of(dims, image, g, {1}, {}, {}, {}));
    give(out, result);
    return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("max_pool2d_with_indices.out", max_pool_out<2>));
    m.impl(NATIVE("max_pool2d_with_indices_backward.grad_input", max_pool_backward_out<2>));
    m.impl(NATIVE("max_pool3d_with_indices", max_pool3d));
    m.impl(NATIVE("max_pool3d_with_indices.out", max_pool3d_out));
    m.impl(NATIVE("max_pool3d_with_indices_backward", max_pool3d_backward));
    m.impl(NATIVE("max_pool3d_with_indices_backward.grad_input", max_pool_backward_out<3>));
    m.impl(NATIVE("avg_pool2d.out", avg_pool_out<2>));
    m.impl(NATIVE("avg_pool2d_backward.grad_input", avg_pool_backward_out<2>));
    m.impl(NATIVE("avg_pool3d.out", avg_pool_out<3>));
    m.impl(NATIVE("avg_pool3d_backward.grad_input", avg_pool_backward_out<3>));
    m.impl(NATIVE("_adaptive_avg_pool2d", adaptive_avg_pool<2>));
    m.impl(NATIVE("_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward<2>));
    m.impl(NATIVE("_adaptive_avg_pool3d", adaptive_avg_pool<3>));
    m.impl(NATIVE("_adaptive_avg_pool3d_backward", adaptive_avg_pool_backward<3>));
    m.impl(NATIVE("adaptive_max_pool2d.out", adaptive_max_pool_out<2>));
    m.impl(NATIVE("adaptive_max_pool2d_backward.grad_input", adaptive_max_pool_backward_out<2>));
    m.impl(NATIVE("adaptive_max_pool3d.out", adaptive_max_pool_out<3>));
    m.impl(NATIVE("adaptive_max_pool3d_backward.grad_input", adaptive_max_pool_backward_out<3>));
}

}  // namespace torch_opencl
