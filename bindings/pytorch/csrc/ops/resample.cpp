// Images of other sizes: interpolation (nearest, linear, cubic), and padding by reflection or replication. All are the same two
// kernels: a pixel of the result is a sum of up to 4 x 4 pixels, and the gradient of a pixel is the sum over the results that it is
// part of, in a range of rows and columns. A dimension's rule is the choice of `source` and of that range. One dimension is an image
// of one row. Three are two passes: over each layer, and over the images whose rows are the layers.
#include "formats.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <initializer_list>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Scale = std::optional<double>;

enum class Rule { nearest, nearest_exact, linear, cubic, reflect, replicate };

// One dimension. `padding` is before the image; `scale` is source pixels for a pixel.
struct Axis {
    int32_t in, out, padding, aligned;
    double scale;
};

const char* const resample_kernels = R"(
// F: the type of places and weights.
typedef struct { int in, out, padding, aligned; F scale; } Axis;
#define AXIS(n_) int n_##_in, int n_##_out, int n_##_padding, int n_##_aligned, F n_##_scale
#define AXES Axis H = {H_in, H_out, H_padding, H_aligned, H_scale}, W = {W_in, W_out, W_padding, W_aligned, W_scale};
#if RULE == 0 || RULE == 1 || RULE >= 4
#define TAPS 1
#elif RULE == 2
#define TAPS 2
#else
#define TAPS 4
#endif
// Where pixel `to` comes from: the first pixel, and the weights of TAPS pixels from there on (those outside are the border's).
inline int source(int to, Axis A, F* weights) {
#if RULE == 0
  weights[0] = 1;
  return min((int)(to * A.scale), A.in - 1);
#elif RULE == 1
  weights[0] = 1;
  return min((int)((to + (F)0.5) * A.scale), A.in - 1);
#elif RULE == 2 || RULE == 3
  F place = A.aligned ? to * A.scale : (to + (F)0.5) * A.scale - (F)0.5;
#if RULE == 2
  place = max(place, (F)0);
  int first = min((int)place, A.in - 1);
  F part = place - first;
  weights[0] = 1 - part;
  weights[1] = part;
  return first;
#else
  // Keys, "Cubic convolution interpolation" (1981), with -0.75.
  int first = (int)floor(place);
  F p = place - first, q = 1 - p;
#define NEAR(t_) (((F)1.25 * (t_) - (F)2.25) * (t_) * (t_) + 1)
#define FAR(t_) ((((F)-0.75 * (t_) + (F)3.75) * (t_) - 6) * (t_) + 3)
  weights[0] = FAR(p + 1); weights[1] = NEAR(p); weights[2] = NEAR(q); weights[3] = FAR(q + 1);
  return first - 1;
#endif
#elif RULE == 4
  weights[0] = 1;
  int from = abs(to - A.padding);
  return from >= A.in ? 2 * (A.in - 1) - from : from;
#else
  weights[0] = 1;
  return clamp(to - A.padding, 0, A.in - 1);
#endif
}
// The results [first, last] that pixel `from` may be part of.
inline int2 range(int from, Axis A) {
#if RULE < 4
  if (A.scale == 0) return (int2)(0, A.out - 1);
  F low = (from - TAPS - (F)0.5) / A.scale - 1, high = (from + TAPS + (F)0.5) / A.scale + 1;
  int first = low <= 0 ? 0 : (int)low, last = high >= A.out - 1 ? A.out - 1 : (int)high;
  return (int2)(first, from == A.in - 1 ? A.out - 1 : last);
#elif RULE == 4
  int first = from + A.padding, last = first;
  if (from > 0 && from <= A.padding) first = A.padding - from;
  if (from < A.in - 1 && A.padding + 2 * (A.in - 1) - from < A.out) last = A.padding + 2 * (A.in - 1) - from;
  return (int2)(max(first, 0), min(last, A.out - 1));
#else
  return (int2)(from == 0 ? 0 : max(from + A.padding, 0), from == A.in - 1 ? A.out - 1 : min(from + A.padding, A.out - 1));
#endif
}
inline F weight_of(int from, int to, Axis A) {
  F weights[TAPS], sum = 0;
  int first = source(to, A, weights);
  for (int i = 0; i < TAPS; ++i) sum += clamp(first + i, 0, A.in - 1) == from ? weights[i] : 0;
  return sum;
}
kernel void resample(global const X_T* in, global X_T* out, AXIS(H), AXIS(W)) {
  AXES
  int x = get_global_id(0), y = get_global_id(1);
  long plane = get_global_id(2);
  F across[TAPS], down[TAPS];
  int column = source(x, W, across), row = source(y, H, down);
  in += plane * H.in * W.in;
  T sum = 0;
  for (int i = 0; i < TAPS; ++i) {
    T line = 0;
    for (int j = 0; j < TAPS; ++j)
      line += (T)across[j] * LOADX(in, (long)clamp(row + i, 0, H.in - 1) * W.in + clamp(column + j, 0, W.in - 1));
    sum += (T)down[i] * line;
  }
  STOREX(out, (plane * H.out + y) * W.out + x, sum);
}
kernel void resample_grad(global const X_T* grad, global X_T* out, AXIS(H), AXIS(W)) {
  AXES
  int x = get_global_id(0), y = get_global_id(1);
  long plane = get_global_id(2);
  int2 rows = range(y, H), columns = range(x, W);
  grad += plane * H.out * W.out;
  T sum = 0;
  for (int row = rows.x; row <= rows.y; ++row) {
    T down = weight_of(y, row, H);
    if (down == 0) continue;
    for (int column = columns.x; column <= columns.y; ++column) {
      T factor = down * weight_of(x, column, W);
      // Without a branch a NaN would spread to pixels that are not part of its result.
      if (factor != 0) sum += factor * LOADX(grad, (long)row * W.out + column);
    }
  }
  STOREX(out, (plane * H.in + y) * W.in + x, sum);
}
)";

struct Axes {
    Rule rule;
    Axis height, width;
};

void run(const char* name, const Tensor& from, const Tensor& to, const Axes& axes) {
    if (to.numel() == 0)
        return;
    const Device& device = opencl_device(from);
    const auto type = from.scalar_type();
    check_supported(type, device.index, name);
    check_type(type, to);
    const auto rule = std::to_string(static_cast<int>(axes.rule));
    Kernel& kernel = kernel_of(device, name + (" " + rule) + short_name(type), name, [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
               "\n#define RULE " + rule + "\n#define F " + (type == at::kDouble ? "double" : "float") +
               resample_kernels;
    });
    const bool is_row = to.dim() == 2 || (to.dim() == 3 && axes.height.in == 1 && axes.height.out == 1);
    const int64_t width = to.size(-1), height = is_row ? 1 : to.size(-2);
    Launch launch(device, kernel);
    launch.read(from).written(to);
    for (const Axis& axis : {axes.height, axes.width}) {
        launch.value(axis.in).value(axis.out).value(axis.padding).value(axis.aligned);
        launch.scalar(scalar_bytes(axis.scale, type == at::kDouble ? at::kDouble : at::kFloat));
    }
    launch.run(
        {static_cast<size_t>(width), static_cast<size_t>(height), static_cast<size_t>(to.numel() / (width * height))});
}

// Of the integers PyTorch interpolates uint8 only.
void check_interpolation(Rule rule, c10::ScalarType type) {
    if (rule != Rule::reflect && rule != Rule::replicate && type != at::kByte)
        check_floating(type, "interpolation");
}

// Runs a kernel into a tensor that may have another order than the kernel's.
Tensor& run_into(const char* name, const Tensor& given, IntArrayRef sizes, Tensor& out, const Axes& axes) {
    check_interpolation(axes.rule, given.scalar_type());
    at::native::resize_output(out, sizes);
    if ((axes.rule == Rule::linear || axes.rule == Rule::cubic) && !is_floating(out.scalar_type())) {
        Tensor exact = at::empty({0}, out.options().dtype(at::kFloat));
        run_into(name, given.to(at::kFloat), sizes, exact, axes);
        return out.copy_(exact.round_().clamp_(0, 255));
    }
    const Tensor from = given.contiguous();
    if (out.is_contiguous()) {
        run(name, from, out, axes);
        return out;
    }
    const Tensor dense = at::empty(sizes, out.options().memory_format(at::MemoryFormat::Contiguous));
    run(name, from, dense, axes);
    return out.copy_(dense);
}

// PyTorch's rules for the factor between the sizes.
Axis interpolated(Rule rule, int64_t in, int64_t out, bool aligned, Scale scale) {
    double factor = scale && *scale > 0 ? 1 / *scale : static_cast<double>(in) / static_cast<double>(out);
    const bool is_aligned = aligned && (rule == Rule::linear || rule == Rule::cubic);
    if (is_aligned)
        factor = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    return {static_cast<int32_t>(in), static_cast<int32_t>(out), 0, is_aligned, factor};
}
constexpr Axis one_row{1, 1, 0, 0, 1};

template <Rule rule>
Tensor& interpolate(const Tensor& self, IntArrayRef size, bool aligned, Scale h, Scale w, Tensor& out) {
    const Axes axes{rule, interpolated(rule, self.size(2), size[0], aligned, h),
                    interpolated(rule, self.size(3), size[1], aligned, w)};
    return run_into("resample", self, {self.size(0), self.size(1), size[0], size[1]}, out, axes);
}
template <Rule rule>
Tensor& interpolate_grad(const Tensor& grad, IntArrayRef size, IntArrayRef in, bool aligned, Scale h, Scale w,
                         Tensor& out) {
    const Axes axes{rule, interpolated(rule, in[2], size[0], aligned, h),
                    interpolated(rule, in[3], size[1], aligned, w)};
    return run_into("resample_grad", grad, in, out, axes);
}
template <Rule rule>
Tensor& interpolate_plain(const Tensor& self, IntArrayRef size, Scale h, Scale w, Tensor& out) {
    return interpolate<rule>(self, size, false, h, w, out);
}
template <Rule rule>
Tensor& interpolate_plain_grad(const Tensor& grad, IntArrayRef size, IntArrayRef in, Scale h, Scale w, Tensor& out) {
    return interpolate_grad<rule>(grad, size, in, false, h, w, out);
}
template <Rule rule>
Tensor& interpolate_row(const Tensor& self, IntArrayRef size, bool aligned, Scale w, Tensor& out) {
    return run_into("resample", self, {self.size(0), self.size(1), size[0]}, out,
                    {rule, one_row, interpolated(rule, self.size(2), size[0], aligned, w)});
}
template <Rule rule>
Tensor& interpolate_row_grad(const Tensor& grad, IntArrayRef size, IntArrayRef in, bool aligned, Scale w, Tensor& out) {
    return run_into("resample_grad", grad, in, out, {rule, one_row, interpolated(rule, in[2], size[0], aligned, w)});
}
template <Rule rule>
Tensor& interpolate_plain_row(const Tensor& self, IntArrayRef size, Scale w, Tensor& out) {
    return interpolate_row<rule>(self, size, false, w, out);
}
template <Rule rule>
Tensor& interpolate_plain_row_grad(const Tensor& grad, IntArrayRef size, IntArrayRef in, Scale w, Tensor& out) {
    return interpolate_row_grad<rule>(grad, size, in, false, w, out);
}

// The dimension `dim` (counted from the end), whose padding before and after is at `place`.
Axis padded_axis(Rule rule, const Tensor& self, IntArrayRef padding, int64_t dim, size_t place) {
    const int64_t in = self.size(dim), out = in + padding[place] + padding[place + 1];
    TORCH_CHECK(rule != Rule::reflect || (padding[place] < in && padding[place + 1] < in),
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
                padding[place], ", ", padding[place + 1], ") at dimension ", self.dim() + dim, " of input ",
                self.sizes());
    TORCH_CHECK(out >= 1 && in >= 1, "padding: the result of input ", self.sizes(), " and padding ", padding,
                " has no elements");
    return {static_cast<int32_t>(in), static_cast<int32_t>(out), static_cast<int32_t>(padding[place]), 0, 1};
}

// padding: left, right, and for images top, bottom. The last dimensions of `self` are padded.
Axes padded(Rule rule, const Tensor& self, IntArrayRef padding) {
    const Axis width = padded_axis(rule, self, padding, -1, 0);
    return {rule, padding.size() == 4 ? padded_axis(rule, self, padding, -2, 2) : one_row, width};
}

template <Rule rule>
Tensor& pad_out(const Tensor& self, IntArrayRef padding, Tensor& out) {
    const Axes axes = padded(rule, self, padding);
    at::DimVector sizes(self.sizes());
    sizes[sizes.size() - 1] = axes.width.out;
    if (padding.size() == 4)
        sizes[sizes.size() - 2] = axes.height.out;
    return run_into("resample", self, sizes, out, axes);
}
template <Rule rule>
Tensor& pad_grad_out(const Tensor& grad, const Tensor& self, IntArrayRef padding, Tensor& out) {
    return run_into("resample_grad", grad, self.sizes(), out, padded(rule, self, padding));
}
template <Rule rule>
Tensor pad(const Tensor& self, IntArrayRef padding) {
    Tensor out = at::empty({0}, self.options());
    return in_format_of(self, pad_out<rule>(self, padding, out));
}
template <Rule rule>
Tensor pad_grad(const Tensor& grad, const Tensor& self, IntArrayRef padding) {
    Tensor out = at::empty({0}, self.options());
    return pad_grad_out<rule>(grad, self, padding, out);
}

// Three dimensions: sizes of the larger and the smaller side, and the rule of each.
struct Volume {
    Rule rule;
    Axis depth, height, width;
};

Axis unchanged(Rule rule, int64_t size) {
    const auto n = static_cast<int32_t>(size);
    return {n, n, 0, rule == Rule::linear, 1};
}
// The layers of a tensor [..., depth, height, width] as rows of images.
Tensor layers_as_rows(const Tensor& t) { return t.reshape({-1, 1, t.size(-3), t.size(-1) * t.size(-2)}); }

// Kernels compute places in a layer with a float.
void check_layer(int64_t layer) {
    TORCH_CHECK(layer < int64_t{1} << 23, "opencl: interpolation and padding of layers of ", layer, " elements");
}

Tensor& run_volume(const Tensor& self, const Volume& v, Tensor& out) {
    // Results are rounded once, and not after each pass.
    const auto type = self.scalar_type();
    check_interpolation(v.rule, type);
    if (v.rule == Rule::linear && (!is_floating(type) || compute_type(type) != type)) {
        Tensor exact = at::empty({0}, self.options().dtype(at::kFloat));
        run_volume(self.to(at::kFloat), v, exact);
        at::native::resize_output(out, exact.sizes());
        return out.copy_(is_floating(type) ? exact : exact.round_().clamp_(0, 255));
    }
    at::DimVector all(self.sizes());
    all[all.size() - 3] = v.depth.out;
    all[all.size() - 2] = v.height.out;
    all[all.size() - 1] = v.width.out;
    at::native::resize_output(out, all);
    if (out.numel() == 0)
        return out;
    at::DimVector sizes(all);
    sizes[sizes.size() - 3] = v.depth.in;
    Tensor flat = at::empty({0}, self.options());
    run_into("resample", self, sizes, flat, {v.rule, v.height, v.width});
    const int64_t layer = int64_t{v.height.out} * v.width.out;
    check_layer(layer);
    Tensor deep = at::empty({0}, self.options());
    run_into("resample", layers_as_rows(flat), {flat.numel() / (layer * v.depth.in), 1, v.depth.out, layer}, deep,
             {v.rule, v.depth, unchanged(v.rule, layer)});
    return out.copy_(deep.view(all));
}
Tensor& run_volume_grad(const Tensor& grad, IntArrayRef sizes, const Volume& v, Tensor& out) {
    at::native::resize_output(out, sizes);
    if (grad.numel() == 0)
        return out.zero_();
    const auto type = grad.scalar_type();
    if (is_floating(type) && compute_type(type) != type) {
        Tensor exact = at::empty({0}, grad.options().dtype(at::kFloat));
        return out.copy_(run_volume_grad(grad.to(at::kFloat), sizes, v, exact));
    }
    const int64_t layer = int64_t{v.height.out} * v.width.out;
    check_layer(layer);
    Tensor flat = at::empty({0}, grad.options());
    run_into("resample_grad", layers_as_rows(grad), {grad.numel() / (layer * v.depth.out), 1, v.depth.in, layer}, flat,
             {v.rule, v.depth, unchanged(v.rule, layer)});
    at::DimVector of_layers(grad.sizes());
    of_layers[of_layers.size() - 3] = v.depth.in;
    return run_into("resample_grad", flat.view(of_layers), sizes, out, {v.rule, v.height, v.width});
}

template <Rule rule>
Tensor& interpolate_volume(const Tensor& self, IntArrayRef size, bool aligned, Scale d, Scale h, Scale w, Tensor& out) {
    return run_volume(self,
                      {rule, interpolated(rule, self.size(2), size[0], aligned, d),
                       interpolated(rule, self.size(3), size[1], aligned, h),
                       interpolated(rule, self.size(4), size[2], aligned, w)},
                      out);
}
template <Rule rule>
Tensor& interpolate_volume_grad(const Tensor& grad, IntArrayRef size, IntArrayRef in, bool aligned, Scale d, Scale h,
                                Scale w, Tensor& out) {
    return run_volume_grad(grad, in,
                           {rule, interpolated(rule, in[2], size[0], aligned, d),
                            interpolated(rule, in[3], size[1], aligned, h),
                            interpolated(rule, in[4], size[2], aligned, w)},
                           out);
}
template <Rule rule>
Tensor& interpolate_plain_volume(const Tensor& self, IntArrayRef size, Scale d, Scale h, Scale w, Tensor& out) {
    return interpolate_volume<rule>(self, size, false, d, h, w, out);
}
template <Rule rule>
Tensor& interpolate_plain_volume_grad(const Tensor& grad, IntArrayRef size, IntArrayRef in, Scale d, Scale h, Scale w,
                                      Tensor& out) {
    return interpolate_volume_grad<rule>(grad, size, in, false, d, h, w, out);
}

// padding: left, right, top, bottom, front, back.
Volume padded_volume(Rule rule, const Tensor& self, IntArrayRef padding) {
    return {rule, padded_axis(rule, self, padding, -3, 4), padded_axis(rule, self, padding, -2, 2),
            padded_axis(rule, self, padding, -1, 0)};
}
template <Rule rule>
Tensor& pad_volume_out(const Tensor& self, IntArrayRef padding, Tensor& out) {
    return run_volume(self, padded_volume(rule, self, padding), out);
}
template <Rule rule>
Tensor& pad_volume_grad_out(const Tensor& grad, const Tensor& self, IntArrayRef padding, Tensor& out) {
    return run_volume_grad(grad, self.sizes(), padded_volume(rule, self, padding), out);
}
template <Rule rule>
Tensor pad_volume_grad(const Tensor& grad, const Tensor& self, IntArrayRef padding) {
    Tensor out = at::empty({0}, self.options());
    return pad_volume_grad_out<rule>(grad, self, padding, out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("upsample_nearest2d.out", interpolate_plain<Rule::nearest>));
    m.impl(NATIVE("upsample_nearest2d_backward.grad_input", interpolate_plain_grad<Rule::nearest>));
    m.impl(NATIVE("_upsample_nearest_exact2d.out", interpolate_plain<Rule::nearest_exact>));
    m.impl(NATIVE("_upsample_nearest_exact2d_backward.grad_input", interpolate_plain_grad<Rule::nearest_exact>));
    m.impl(NATIVE("upsample_bilinear2d.out", interpolate<Rule::linear>));
    m.impl(NATIVE("upsample_bilinear2d_backward.grad_input", interpolate_grad<Rule::linear>));
    m.impl(NATIVE("upsample_bicubic2d.out", interpolate<Rule::cubic>));
    m.impl(NATIVE("upsample_bicubic2d_backward.grad_input", interpolate_grad<Rule::cubic>));
    m.impl(NATIVE("upsample_nearest1d.out", interpolate_plain_row<Rule::nearest>));
    m.impl(NATIVE("upsample_nearest1d_backward.grad_input", interpolate_plain_row_grad<Rule::nearest>));
    m.impl(NATIVE("_upsample_nearest_exact1d.out", interpolate_plain_row<Rule::nearest_exact>));
    m.impl(NATIVE("_upsample_nearest_exact1d_backward.grad_input", interpolate_plain_row_grad<Rule::nearest_exact>));
    m.impl(NATIVE("upsample_linear1d.out", interpolate_row<Rule::linear>));
    m.impl(NATIVE("upsample_linear1d_backward.grad_input", interpolate_row_grad<Rule::linear>));
    m.impl(NATIVE("upsample_nearest3d.out", interpolate_plain_volume<Rule::nearest>));
    m.impl(NATIVE("upsample_nearest3d_backward.grad_input", interpolate_plain_volume_grad<Rule::nearest>));
    m.impl(NATIVE("_upsample_nearest_exact3d.out", interpolate_plain_volume<Rule::nearest_exact>));
    m.impl(NATIVE("_upsample_nearest_exact3d_backward.grad_input", interpolate_plain_volume_grad<Rule::nearest_exact>));
    m.impl(NATIVE("upsample_trilinear3d.out", interpolate_volume<Rule::linear>));
    m.impl(NATIVE("upsample_trilinear3d_backward.grad_input", interpolate_volume_grad<Rule::linear>));
    m.impl(NATIVE("reflection_pad3d.out", pad_volume_out<Rule::reflect>));
    m.impl(NATIVE("reflection_pad3d_backward.grad_input", pad_volume_grad_out<Rule::reflect>));
    m.impl(NATIVE("replication_pad3d.out", pad_volume_out<Rule::replicate>));
    m.impl(NATIVE("replication_pad3d_backward", pad_volume_grad<Rule::replicate>));
    m.impl(NATIVE("replication_pad3d_backward.grad_input", pad_volume_grad_out<Rule::replicate>));
    m.impl(NATIVE("reflection_pad1d.out", pad_out<Rule::reflect>));
    m.impl(NATIVE("reflection_pad1d_backward.grad_input", pad_grad_out<Rule::reflect>));
    m.impl(NATIVE("reflection_pad2d", pad<Rule::reflect>));
    m.impl(NATIVE("reflection_pad2d.out", pad_out<Rule::reflect>));
    m.impl(NATIVE("reflection_pad2d_backward", pad_grad<Rule::reflect>));
    m.impl(NATIVE("reflection_pad2d_backward.grad_input", pad_grad_out<Rule::reflect>));
    m.impl(NATIVE("replication_pad1d.out", pad_out<Rule::replicate>));
    m.impl(NATIVE("replication_pad1d_backward.grad_input", pad_grad_out<Rule::replicate>));
    m.impl(NATIVE("replication_pad2d", pad<Rule::replicate>));
    m.impl(NATIVE("replication_pad2d.out", pad_out<Rule::replicate>));
    m.impl(NATIVE("replication_pad2d_backward", pad_grad<Rule::replicate>));
    m.impl(NATIVE("replication_pad2d_backward.grad_input", pad_grad_out<Rule::replicate>));
}

}  // namespace torch_opencl
