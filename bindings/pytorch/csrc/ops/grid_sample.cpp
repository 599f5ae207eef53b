// Images and volumes sampled at places that a grid names (spatial transformers, Jaderberg et al., 2015), and the gradients of both.
//
// In each dimension a sample is a sum of 1, 2 or 4 elements (nearest, linear, cubic). Gradients of images add what their samples are made of in
// one work-item per plane, in the order of the samples, so that results do not change between runs.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

// DIMS: 2 or 3. MODE: 0 linear, 1 nearest, 2 cubic. PADDING: 0 zeros, 1 border, 2 reflection. Dimension 0 is the width, which comes first in the
// grid.
const char* const grid_body = R"(
#if MODE == 0
#define TAPS 2
#elif MODE == 1
#define TAPS 1
#else
#define TAPS 4
#endif
typedef struct { long samples, channels, places, size[3]; } Sizes;
// Elements of one dimension, -1 for zeros; how much of each the sample is, and how much that changes with the coordinate.
typedef struct { long at[TAPS]; T weight[TAPS], slope[TAPS]; } Taps;

// A coordinate within the image, and in *factor its slope.
inline T inside(T x, long size, T* factor) {
#if PADDING == 2
  T low = ALIGNED ? (T)0 : (T)-0.5, span = ALIGNED ? (T)(size - 1) : (T)size;
  if (span == 0) { *factor = 0; return 0; }
  T away = x - low, sign = away < 0 ? (T)-1 : (T)1;
  away = fabs(away);
  T flips = floor(away / span), rest = fmod(away, span);
  int is_turned = fmod(flips, (T)2) != 0;
  x = low + (is_turned ? span - rest : rest);
  *factor *= is_turned ? -sign : sign;
#endif
#if PADDING != 0
  if (!(x > 0)) { *factor = 0; return 0; }
  if (x >= size - 1) { *factor = 0; return size - 1; }
#endif
  return x;
}
inline long element(T x, long size) { return x >= 0 && x < size ? (long)x : -1; }
inline Taps taps_of(T coordinate, long size) {
  Taps taps;
  T factor = ALIGNED ? (T)(size - 1) / 2 : (T)size / 2;
  T x = ALIGNED ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
#if MODE != 2
  x = inside(x, size, &factor);
#endif
  if (!(fabs(x) < (T)2147483647)) x = -100;
#if MODE == 1
  taps.at[0] = element(rint(x), size);
  taps.weight[0] = 1;
  taps.slope[0] = 0;
#else
  T first = floor(x), p = x - first;
#if MODE == 0
  for (int i = 0; i < 2; ++i) taps.at[i] = element(first + i, size);
  taps.weight[0] = 1 - p; taps.weight[1] = p;
  taps.slope[0] = -factor; taps.slope[1] = factor;
#else
  // Keys, "Cubic convolution interpolation" (1981), with -0.75.
  for (int i = 0; i < 4; ++i) {
    T ignored = 1, d = fabs(p + 1 - i), side = p + 1 - i < 0 ? (T)-1 : (T)1;
    taps.at[i] = element(inside(first - 1 + i, size, &ignored), size);
    int is_near = i == 1 || i == 2;
    taps.weight[i] = is_near ? ((T)1.25 * d - (T)2.25) * d * d + 1 : (((T)-0.75 * d + (T)3.75) * d - 6) * d + 3;
    taps.slope[i] = factor * side * (is_near ? ((T)3.75 * d - (T)4.5) * d : ((T)-2.25 * d + (T)7.5) * d - 6);
  }
#endif
#endif
  return taps;
}
#define FOR_TAPS(STATEMENT) \
  for (int k = 0; k < (DIMS == 3 ? TAPS : 1); ++k) for (int j = 0; j < TAPS; ++j) for (int i = 0; i < TAPS; ++i) { \
    long at = x.at[i] < 0 || y.at[j] < 0 || z.at[k] < 0 ? -1L : (z.at[k] * S.size[1] + y.at[j]) * S.size[0] + x.at[i]; \
    if (at >= 0) { STATEMENT } }
#define TAPS_OF_PLACE(place) \
  Taps x = taps_of(LOADX(grid, (place) * DIMS), S.size[0]), y = taps_of(LOADX(grid, (place) * DIMS + 1), S.size[1]), z; \
  if (DIMS == 3) z = taps_of(LOADX(grid, (place) * DIMS + DIMS - 1), S.size[2]); \
  else { z.at[0] = 0; z.weight[0] = 1; z.slope[0] = 0; }
#define PLANE (S.size[0] * S.size[1] * S.size[2])
kernel void sample(global const X_T* image, global const X_T* grid, global X_T* out, Sizes S) {
  long p = get_global_id(0), n = get_global_id(1);
  TAPS_OF_PLACE(n * S.places + p)
  for (long c = 0; c < S.channels; ++c) {
    global const X_T* from = image + (n * S.channels + c) * PLANE;
    T sum = 0;
    FOR_TAPS(sum += x.weight[i] * y.weight[j] * z.weight[k] * LOADX(from, at);)
    STOREX(out, (n * S.channels + c) * S.places + p, sum);
  }
}
// `out` is of the compute type, and 0.
kernel void image_gradient(global const X_T* grad, global const X_T* grid, global T* out, Sizes S) {
  long plane = get_global_id(0), n = plane / S.channels;
  global T* to = out + plane * PLANE;
  for (long p = 0; p < S.places; ++p) {
    TAPS_OF_PLACE(n * S.places + p)
    T g = LOADX(grad, plane * S.places + p);
    FOR_TAPS(to[at] += x.weight[i] * y.weight[j] * z.weight[k] * g;)
  }
}
kernel void grid_gradient(global const X_T* grad, global const X_T* image, global const X_T* grid, global X_T* out, Sizes S) {
  long p = get_global_id(0), n = get_global_id(1), place = n * S.places + p;
  TAPS_OF_PLACE(place)
  T sx = 0, sy = 0, sz = 0;
  for (long c = 0; c < S.channels; ++c) {
    global const X_T* from = image + (n * S.channels + c) * PLANE;
    T g = LOADX(grad, (n * S.channels + c) * S.places + p);
    FOR_TAPS(T v = g * LOADX(from, at); sx += x.slope[i] * y.weight[j] * z.weight[k] * v;
             sy += x.weight[i] * y.slope[j] * z.weight[k] * v; sz += x.weight[i] * y.weight[j] * z.slope[k] * v;)
  }
  STOREX(out, place * DIMS, sx);
  STOREX(out, place * DIMS + 1, sy);
  if (DIMS == 3) STOREX(out, place * DIMS + DIMS - 1, sz);
}
)";

struct Rule {
    int64_t mode, padding;
    bool is_aligned;
};

// The kernels' structure of the same name.
struct Sizes {
    int64_t samples, channels, places, size[3];
};

template <int64_t dims>
Sizes check(const Tensor& image, const Tensor& grid, const Rule& rule) {
    check_floating(image.scalar_type(), "grid_sampler");
    TORCH_CHECK(image.scalar_type() == grid.scalar_type(),
                "grid_sampler(): expected input and grid to have same dtype, but input has ", image.scalar_type(),
                " and grid has ", grid.scalar_type());
    check_same_device(image.device(), grid);
    TORCH_CHECK(
        image.dim() == dims + 2 && grid.dim() == dims + 2 && image.size(0) == grid.size(0) && grid.size(-1) == dims,
        "grid_sampler(): expected grid to have size ", dims, " in last dimension, and the input's batch, but got ",
        grid.sizes(), " for an input of ", image.sizes());
    TORCH_CHECK(dims == 2 || rule.mode != 2, "grid_sampler(): bicubic interpolation only supports 4D input");
    Sizes sizes{image.size(0), image.size(1), grid.numel() / std::max<int64_t>(1, image.size(0) * dims), {1, 1, 1}};
    for (int64_t d = 0; d < dims; ++d) {
        sizes.size[d] = image.size(-1 - d);
        TORCH_CHECK(sizes.size[d] > 0, "grid_sampler(): expected input to have non-empty spatial dimensions, but got ",
                    image.sizes());
    }
    return sizes;
}

template <int64_t dims>
Kernel& kernel_for(const Tensor& image, const Rule& rule, const char* name) {
    const auto type = image.scalar_type();
    const Device& device = opencl_device(image);
    check_supported(type, device.index, "grid_sampler");
    std::string constants;
    for (const auto& [constant, value] : {std::pair<const char*, int64_t>{"DIMS", dims},
                                          {"MODE", rule.mode},
                                          {"PADDING", rule.padding},
                                          {"ALIGNED", rule.is_aligned ? 1 : 0}})
        constants += std::string("#define ") + constant + " " + std::to_string(value) + "\n";
    return kernel_of(device, name + (" " + constants) + short_name(type), name, [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + "\n" +
               constants + grid_body;
    });
}

template <int64_t dims>
Tensor grid_sampler(const Tensor& image, const Tensor& grid, int64_t mode, int64_t padding, bool aligned) {
    const Rule rule{mode, padding, aligned};
    const Sizes sizes = check<dims>(image, grid, rule);
    at::DimVector result{image.size(0), image.size(1)};
    for (int64_t d = 1; d <= dims; ++d)
        result.push_back(grid.size(d));
    Tensor out = at::empty(result, image.options());
    if (out.numel() == 0)
        return out;
    Launch(opencl_device(image), kernel_for<dims>(image, rule, "sample"))
        .read(image.contiguous())
        .read(grid.contiguous())
        .written(out)
        .value(sizes)
        .run({static_cast<size_t>(sizes.places), static_cast<size_t>(sizes.samples), 1});
    return out;
}

template <int64_t dims>
std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor& grad, const Tensor& image, const Tensor& grid,
                                                 int64_t mode, int64_t padding, bool aligned,
                                                 std::array<bool, 2> mask) {
    const Rule rule{mode, padding, aligned};
    const Sizes sizes = check<dims>(image, grid, rule);
    check_type(image.scalar_type(), grad);
    const Tensor seeds = grad.contiguous(), from = image.contiguous(), places = grid.contiguous();
    const Device& device = opencl_device(image);
    Tensor image_gradient, grid_gradient;
    if (mask[0]) {
        const Tensor sums = at::zeros(image.sizes(), image.options().dtype(compute_type(image.scalar_type())));
        if (grad.numel() > 0)
            Launch(device, kernel_for<dims>(image, rule, "image_gradient"))
                .read(seeds)
                .read(places)
                .written(sums)
                .value(sizes)
                .run({static_cast<size_t>(sizes.samples * sizes.channels), 1, 1});
        image_gradient = sums.to(image.scalar_type());
    }
    if (mask[1]) {
        grid_gradient = at::zeros(grid.sizes(), grid.options());
        if (grad.numel() > 0)
            Launch(device, kernel_for<dims>(image, rule, "grid_gradient"))
                .read(seeds)
                .read(from)
                .read(places)
                .written(grid_gradient)
                .value(sizes)
                .run({static_cast<size_t>(sizes.places), static_cast<size_t>(sizes.samples), 1});
    }
    return {image_gradient, grid_gradient};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("grid_sampler_2d", grid_sampler<2>));
    m.impl(NATIVE("grid_sampler_3d", grid_sampler<3>));
    m.impl(NATIVE("grid_sampler_2d_backward", grid_sampler_backward<2>));
    m.impl(NATIVE("grid_sampler_3d_backward", grid_sampler_backward<3>));
}

}  // namespace torch_opencl
