// Fractional max pooling (Graham, 2014): windows of one size whose distances are chosen from random numbers, one per plane and dimension.
// Images are volumes of depth 1.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::IntArrayRef;
using at::Tensor;

// Sizes are {depth, height, width}. The random numbers of an image are those of width and height, those of a volume of depth, height and width.
const char* const pool_body = R"(
inline long begin_of(T sample, long at, long size, long outputs, long window) {
  if (at + 1 == outputs) return size - window;
  T step = (T)(size - window) / (T)(outputs - 1);
  return (long)(int)(((T)at + sample) * step) - (long)(int)(sample * step);
}
typedef struct { long in[3], out[3], window[3]; } Sizes;
kernel void pool(global const X_T* in, global const X_T* samples, global X_T* out, global long* places, Sizes sizes, int is_image) {
  long w = get_global_id(0), rest = get_global_id(1), plane = get_global_id(2), h = rest % sizes.out[1], d = rest / sizes.out[1];
#define SAMPLE(image, volume) LOADX(samples, is_image ? plane * 2 + image : plane * 3 + volume)
  long d0 = is_image ? 0 : begin_of(SAMPLE(0, 0), d, sizes.in[0], sizes.out[0], sizes.window[0]);
  long h0 = begin_of(SAMPLE(1, 1), h, sizes.in[1], sizes.out[1], sizes.window[1]);
  long w0 = begin_of(SAMPLE(0, 2), w, sizes.in[2], sizes.out[2], sizes.window[2]);
  global const X_T* from = in + plane * sizes.in[0] * sizes.in[1] * sizes.in[2];
  T best = -INFINITY;
  long place = (d0 * sizes.in[1] + h0) * sizes.in[2] + w0;
  for (long z = d0; z < d0 + sizes.window[0]; ++z)
    for (long y = h0; y < h0 + sizes.window[1]; ++y)
      for (long x = w0; x < w0 + sizes.window[2]; ++x) {
        long at = (z * sizes.in[1] + y) * sizes.in[2] + x;
        T v = LOADX(from, at);
        if (v > best || v != v) { best = v; place = at; }
      }
  long to = ((plane * sizes.out[0] + d) * sizes.out[1] + h) * sizes.out[2] + w;
  STOREX(out, to, best);
  places[to] = place;
}
)";

struct Sizes {
    std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, window{1, 1, 1};
};

// The planes of [planes…] or [samples, planes…], and the size of each dimension of a plane.
template <size_t dims>
Sizes check(const Tensor& self, IntArrayRef window, IntArrayRef out, const Tensor& samples) {
    constexpr auto ndim = static_cast<int64_t>(dims);
    check_floating(self.scalar_type(), "fractional_max_pool");
    TORCH_CHECK(self.dim() == ndim + 1 || self.dim() == ndim + 2, "fractional_max_pool", ndim,
                "d(): Expected a tensor of ", ndim + 1, " or ", ndim + 2, " dimensions, but got: ", self.sizes());
    TORCH_CHECK(window.size() == dims && out.size() == dims, "fractional_max_pool", ndim,
                "d: kernel_size and output_size must be one number or one per dimension");
    const int64_t batch = self.dim() == ndim + 2 ? self.size(0) : 1;
    check_type(self.scalar_type(), samples);
    TORCH_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
    TORCH_CHECK(samples.size(0) >= batch, "Expect _random_samples.size(0) no less then input batch size.");
    TORCH_CHECK(samples.size(1) == self.size(-ndim - 1),
                "Expect _random_samples.size(1) equals to input channel size.");
    TORCH_CHECK(samples.size(2) == ndim, "Expect _random_samples.size(2) equals to ", ndim, "; got ", samples.size(2),
                ".");
    Sizes sizes;
    for (size_t d = 0; d < dims; ++d) {
        const size_t to = d + 3 - dims;
        sizes.in[to] = self.size(self.dim() - ndim + static_cast<int64_t>(d));
        sizes.out[to] = out[d];
        sizes.window[to] = window[d];
        TORCH_CHECK(out[d] >= 1 && out[d] + window[d] - 1 <= sizes.in[to], "fractional_max_pool", ndim,
                    "d(): pool size ", window[d], " is too large relative to the input size ", sizes.in[to]);
    }
    return sizes;
}

template <size_t dims>
std::tuple<Tensor&, Tensor&> pool_out(const Tensor& self, IntArrayRef window, IntArrayRef output_size,
                                      const Tensor& samples, Tensor& out, Tensor& indices) {
    const Sizes sizes = check<dims>(self, window, output_size, samples);
    check_type(self.scalar_type(), out);
    check_type(at::kLong, indices);
    at::DimVector result(self.sizes().slice(0, self.sizes().size() - dims));
    result.insert(result.end(), output_size.begin(), output_size.end());
    at::native::resize_output(out, result);
    at::native::resize_output(indices, result);
    if (out.numel() == 0)
        return {out, indices};
    const Device& device = opencl_device(self);
    const auto type = self.scalar_type();
    check_supported(type, device.index, "fractional_max_pool");
    const Tensor in = self.contiguous(), numbers = samples.contiguous();
    const Tensor found = at::empty(result, self.options()), places = at::empty(result, indices.options());
    Kernel& kernel = kernel_of(device, std::string("fractional pool ") + short_name(type), "pool", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + pool_body;
    });
    const int64_t plane = sizes.out[0] * sizes.out[1] * sizes.out[2];
    Launch(device, kernel)
        .read(in)
        .read(numbers)
        .written(found)
        .written(places)
        .value(sizes)
        .value(dims == 2 ? 1 : 0)
        .run({static_cast<size_t>(sizes.out[2]), static_cast<size_t>(sizes.out[0] * sizes.out[1]),
              static_cast<size_t>(found.numel() / plane)});
    out.copy_(found);
    indices.copy_(places);
    return {out, indices};
}

template <size_t dims>
Tensor pool_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef output_size,
                     const Tensor& indices) {
    check_type(self.scalar_type(), grad);
    TORCH_CHECK(grad.sizes() == indices.sizes() && grad.dim() == self.dim(), "fractional_max_pool: gradients of ",
                grad.sizes(), " and indices of ", indices.sizes());
    int64_t plane = 1, outputs = 1;
    for (size_t d = 0; d < dims; ++d) {
        plane *= self.size(-1 - static_cast<int64_t>(d));
        outputs *= output_size[d];
    }
    Tensor out = at::zeros(self.sizes(), self.options());
    if (grad.numel() > 0)
        out.view({-1, plane}).scatter_add_(1, indices.reshape({-1, outputs}), grad.reshape({-1, outputs}));
    return out;
}
template <size_t dims>
Tensor& pool_backward_out(const Tensor& grad, const Tensor& self, IntArrayRef window, IntArrayRef output_size,
                          const Tensor& indices, Tensor& out) {
    check_type(self.scalar_type(), out);
    at::native::resize_output(out, self.sizes());
    return out.copy_(pool_backward<dims>(grad, self, window, output_size, indices));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("fractional_max_pool2d.output", pool_out<2>));
    m.impl(NATIVE("fractional_max_pool3d.output", pool_out<3>));
    m.impl(NATIVE("fractional_max_pool2d_backward.grad_input", pool_backward_out<2>));
    m.impl(NATIVE("fractional_max_pool3d_backward", pool_backward<3>));
    m.impl(NATIVE("fractional_max_pool3d_backward.grad_input", pool_backward_out<3>));
}

}  // namespace torch_opencl
