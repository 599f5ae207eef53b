// Convolutions of three dimensions as products of matrices: the places under the kernel become the columns of a matrix
// [taps][images * places], a few images at a time so that the matrix stays below a bound. One product is over all places of these images,
// so that small images fill tiles too, and over all groups that fit. Two dimensions are images of one layer (PyTorch makes one dimension into two).
#include "convolution_direct.h"
#include "gemm.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <algorithm>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::IntArrayRef;
using at::Tensor;

constexpr int64_t unfolded_bytes_max = 64 << 20;

// n / d for n < 2^31 as a product (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994): processors have
// no division of vectors.
struct Divisor {
    explicit Divisor(int64_t by) : d(static_cast<uint32_t>(by)) {
        while ((uint64_t{1} << shift) < d)
            ++shift;
        magic = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d) / d + 1);
    }
    uint32_t d, magic = 0, shift = 0;
};

// The kernels' structure of the same name. A layer is the y and x of one z.
struct Sizes {
    explicit Sizes(const Window& window)
        : w(window.x.in), layer(window.y.in * window.x.in), voxels(window.voxels()), ow(window.x.out),
          out_layer(window.y.out * window.x.out), places(window.places()), d(static_cast<int32_t>(window.z.in)),
          h(static_cast<int32_t>(window.y.in)), od(static_cast<int32_t>(window.z.out)),
          oh(static_cast<int32_t>(window.y.out)) {}
    Divisor w, layer, voxels, ow, out_layer, places;
    int32_t d, h, od, oh;
};

const char* const window_kernels = R"(
typedef struct { uint d, magic, shift; } Divisor;
typedef struct { Divisor w, layer, voxels, ow, out_layer, places; int d, h, od, oh; } Sizes;
#define DIVIDED(n_, by_) ((mul_hi(n_, by_.magic) + (n_)) >> by_.shift)
// columns[tap][place]. Places outside of the image are 0.
kernel void unfold(global const X_T* image, global X_T* columns, long image_stride, Sizes S) {
  uint place = get_global_id(0), tap = get_global_id(1);
  long c = tap / (KD * KH * KW);
  int k = tap % (KD * KH * KW), first_row = k / KW % KH * DH - PH, first_column = k % KW * DW - PW;
  uint n = DIVIDED(place, S.places), p = place - n * S.places.d, at = n * (uint)image_stride;
  int inside = 1;
#if IS_DEEP
  uint z = DIVIDED(p, S.out_layer);
  int layer = (int)z * SD + k / (KH * KW) * DD - PD;
  p -= z * S.out_layer.d;
  inside = layer >= 0 && layer < S.d;
  at += (uint)clamp(layer, 0, S.d - 1) * S.layer.d;
#endif
  uint y = DIVIDED(p, S.ow), x = p - y * S.ow.d;
  int row = (int)y * SH + first_row, column = (int)x * SW + first_column, w = S.w.d;
  inside = inside && row >= 0 && row < S.h && column >= 0 && column < w;
  // Without a branch, so that items are lanes of vectors.
  at += (uint)(clamp(row, 0, S.h - 1) * w + clamp(column, 0, w - 1));
  image += c * S.voxels.d;
  T v = LOADX(image, at);
  STOREX(columns, tap * (long)get_global_size(0) + place, inside ? v : (T)0);
}
// The sum of all taps that lie on a place of the image.
kernel void fold(global const X_T* columns, global X_T* image, long image_stride, long places, Sizes S) {
  uint voxel = get_global_id(0);
  long c = get_global_id(1);
  uint n = DIVIDED(voxel, S.voxels), in_image = voxel - n * S.voxels.d, p = in_image;
  columns += c * KD * KH * KW * places;
  T sum = 0;
#if IS_DEEP
  uint z = DIVIDED(p, S.layer);
  p -= z * S.layer.d;
  for (int h = 0; h < KD; ++h) {
    int layer = (int)z + PD - h * DD, oz = layer / SD, has_layer = layer >= 0 && layer % SD == 0 && oz < S.od;
    uint layer_begin = n * S.places.d + (uint)clamp(oz, 0, S.od - 1) * S.out_layer.d;
#else
  {
    const int h = 0, has_layer = 1;
    uint layer_begin = n * S.places.d;
#endif
    uint y = DIVIDED(p, S.w), x = p - y * S.w.d;
    for (int i = 0; i < KH; ++i) {
      int row = (int)y + PH - i * DH, oy = row / SH, fits = has_layer && row >= 0 && row % SH == 0 && oy < S.oh;
      uint begin = layer_begin + (uint)clamp(oy, 0, S.oh - 1) * S.ow.d;
      for (int j = 0; j < KW; ++j) {
        int column = (int)x + PW - j * DW, ox = column / SW, ow = S.ow.d;
        T v = LOADX(columns, ((h * KH + i) * KW + j) * places + begin + (uint)clamp(ox, 0, ow - 1));
        sum += fits && column >= 0 && column % SW == 0 && ox < ow ? v : (T)0;
      }
    }
  }
  STOREX(image, n * image_stride + c * S.voxels.d + in_image, sum);
}
)";

Kernel& window_kernel(const Tensor& tensor, const char* name, const Window& w) {
    const auto type = tensor.scalar_type();
    check_supported(type, opencl_device(tensor).index, "a convolution");
    std::string constants;
    const auto define = [&constants](const char* constant, int64_t value) {
        constants += std::string("#define ") + constant + " " + std::to_string(value) + "\n";
    };
    const auto define_axis = [&define](const char* axis, const Axis& of) {
        const std::string letter = axis;
        define(("K" + letter).c_str(), of.kernel), define(("S" + letter).c_str(), of.stride);
        define(("P" + letter).c_str(), of.padding), define(("D" + letter).c_str(), of.dilation);
    };
    define_axis("D", w.z), define_axis("H", w.y), define_axis("W", w.x), define("IS_DEEP", w.is_deep());
    return kernel_of(opencl_device(tensor), name + (" " + constants) + short_name(type), name, [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + "\n" +
               constants + window_kernels;
    });
}

// Columns [groups, taps, N * places] for an image [N, groups * C, D, H, W].
Tensor empty_columns(const Tensor& image, const Window& window) {
    return at::empty({image.size(1) / window.c, window.taps(), image.size(0) * window.places()}, image.options());
}
Tensor unfolded(const Tensor& image, const Window& window) {
    const Tensor columns = empty_columns(image, window);
    Launch launch(opencl_device(image), window_kernel(image, "unfold", window));
    launch.read(image).written(columns).value(image.stride(0)).value(Sizes(window));
    launch.run({static_cast<size_t>(columns.size(2)), static_cast<size_t>(columns.size(0) * columns.size(1)), 1});
    return columns;
}

void fold(const Tensor& columns, const Tensor& image, const Window& window) {
    Launch launch(opencl_device(image), window_kernel(image, "fold", window));
    launch.read(columns).written(image).value(image.stride(0)).value(columns.size(2)).value(Sizes(window));
    launch.run({static_cast<size_t>(image.size(0) * window.voxels()), static_cast<size_t>(image.size(1)), 1});
}

// The parameters of three dimensions. All tensors from here on have three, too.
struct Parameters {
    at::DimVector stride, padding, dilation;
    int64_t groups;
};

// image [N, C, D, H, W], weight [O, C / groups, KD, KH, KW], small [N, O, OD, OH, OW]; the window is of one group.
Window window_of(const Tensor& image, const Tensor& weight, const Tensor& small, const Parameters& p) {
    const auto axis = [&](size_t d) -> Axis {
        const auto dim = static_cast<int64_t>(d) + 2;
        return {image.size(dim), weight.size(dim), small.size(dim), p.stride[d], p.padding[d], p.dilation[d]};
    };
    return {weight.size(1), axis(0), axis(1), axis(2)};
}

// A kernel of one place with stride 1 needs no unfolding.
bool is_plain(const Window& w) { return w.z.is_plain() && w.y.is_plain() && w.x.is_plain(); }

// How many images and groups one product is over.
struct Step {
    int64_t images, groups;
};
// Their columns stay below the bound; many groups are better than many images, because each group has few rows. Offsets in these images are
// numbers of 31 bits.
Step step_of(const Window& window, const Tensor& image, int64_t groups) {
    const int64_t bytes = window.taps() * window.places() * static_cast<int64_t>(image.element_size());
    const int64_t columns_max = std::max<int64_t>(1, unfolded_bytes_max / std::max<int64_t>(1, bytes));
    const int64_t of_offsets = (int64_t{1} << 31) / std::max<int64_t>(1, image.stride(0)) - 1;
    const int64_t groups_at_once = std::clamp<int64_t>(columns_max, 1, groups);
    return {std::clamp<int64_t>(std::min(columns_max / groups_at_once, of_offsets), 1, image.size(0)), groups_at_once};
}

// Some groups of some images: the parts of the images and of the weight, and where the part's outputs and images begin.
struct Part {
    Tensor image, small, weight;
    int64_t groups, outputs;  // outputs of one group
    int64_t first_output, first_image;

    // [groups, outputs, taps]
    [[nodiscard]] Tensor weights() const { return weight.reshape({groups, outputs, -1}); }
};

template <typename Work>
void for_each_part(const Tensor& image, const Tensor& weight, const Tensor& small, const Parameters& p,
                   const Window& window, const Step& step, const Work& work) {
    const int64_t outputs = weight.size(0) / p.groups;
    for (int64_t n = 0; n < image.size(0); n += step.images) {
        const int64_t count = std::min(step.images, image.size(0) - n);
        for (int64_t g = 0; g < p.groups; g += step.groups) {
            const int64_t groups = std::min(step.groups, p.groups - g), first = g * outputs, all = groups * outputs;
            work(Part{image.narrow(0, n, count).narrow(1, g * window.c, groups * window.c),
                      small.narrow(0, n, count).narrow(1, first, all), weight.narrow(0, first, all), groups, outputs,
                      first, n});
        }
    }
}

// A part of images [n, groups * c, d, h, w] as matrices [n, groups, c, d * h * w].
Tensor as_matrices(const Tensor& part, int64_t groups) {
    const int64_t channels = part.size(1) / groups;
    return part.as_strided({part.size(0), groups, channels, part.size(2) * part.size(3) * part.size(4)},
                           {part.stride(0), channels * part.stride(1), part.stride(1), 1});
}
// The same as matrices of all images, [groups, c, n * d * h * w].
Tensor as_matrices_of_places(const Tensor& part, int64_t groups) {
    return as_matrices(part, groups).permute({1, 2, 0, 3}).reshape({groups, part.size(1) / groups, -1});
}

// Whether one product per image fills its tiles.
bool has_many_places(const Window& window) { return window.places() % 16 == 0 || window.places() >= 128; }

// The weights of groups as the kernels without unfolding read them.
Taps taps_of(const Tensor& weight, int64_t groups) {
    return {weight, groups, weight.size(0) / groups * weight.stride(0), weight.stride(0), weight.stride(1), false};
}
// For the gradient of the image, whose channels are the outputs.
Taps turned_taps_of(const Tensor& weight, int64_t groups) {
    return {weight, groups, weight.size(0) / groups * weight.stride(0), weight.stride(1), weight.stride(0), true};
}

void forward(const Tensor& image, const Tensor& weight, const Tensor& bias, const Tensor& out, const Parameters& p) {
    const Window window = window_of(image, weight, out, p);
    if (!is_plain(window) && suits_direct(opencl_device(image), image.scalar_type(), window, p.groups)) {
        convolve_directly(image, taps_of(weight, p.groups), bias, out, window);
        return;
    }
    const c10::Scalar beta = bias.defined() ? 1 : 0;
    for_each_part(image, weight, out, p, window, step_of(window, image, p.groups), [&](const Part& part) {
        Tensor added;
        if (bias.defined())
            added = bias.narrow(0, part.first_output, part.groups * part.outputs).view({part.groups, part.outputs, 1});
        const Tensor to = as_matrices(part.small, part.groups);
        if (is_plain(window) && has_many_places(window)) {
            multiply({part.weights().unsqueeze(0), as_matrices(part.image, part.groups), to, added, 1, beta});
            return;
        }
        multiply({part.weights(), unfolded(part.image, window), to.select(0, 0), added, 1, beta, window.places(),
                  part.small.stride(0)});
    });
}

// The gradient of the image is the convolution of the gradient with the kernel turned, for as many outputs as the image has channels.
Window turned(const Window& window, int64_t outputs) {
    const auto turned = [](const Axis& axis) -> Axis {
        return {axis.out,      axis.kernel, axis.in, 1, axis.dilation * (axis.kernel - 1) - axis.padding,
                axis.dilation, axis.stride};
    };
    return {outputs, turned(window.z), turned(window.y), turned(window.x)};
}

// image = the gradient of the image: the transpose of forward.
void backward_image(const Tensor& small, const Tensor& weight, const Tensor& image, const Parameters& p) {
    const Window window = window_of(image, weight, small, p), back = turned(window, weight.size(0) / p.groups);
    const auto type = image.scalar_type(), exact = compute_type(type);
    // With a larger stride most taps are of zeros, which takes less time than unfolding each group.
    const bool is_small_step = window.y.stride * window.x.stride == 1 || p.groups > 1;
    if (!is_plain(window) && is_small_step && back.y.padding >= 0 && back.x.padding >= 0 &&
        suits_direct(opencl_device(image), type, back, p.groups)) {
        convolve_directly(small, turned_taps_of(weight, p.groups), {}, image, back);
        return;
    }
    // Taps that were each rounded to half precision would make their sum inaccurate.
    if (type != exact && !is_plain(window)) {
        const Tensor sums = at::empty(image.sizes(), image.options().dtype(exact));
        backward_image(small.to(exact), weight.to(exact), sums, p);
        image.copy_(sums);
        return;
    }
    for_each_part(image, weight, small, p, window, step_of(window, image, p.groups), [&](const Part& part) {
        const Tensor transposed = part.weights().transpose(1, 2);
        if (is_plain(window) && has_many_places(window)) {
            multiply(
                {transposed.unsqueeze(0), as_matrices(part.small, part.groups), as_matrices(part.image, part.groups)});
            return;
        }
        const Tensor columns = empty_columns(part.image, window);
        multiply({transposed, as_matrices_of_places(part.small, part.groups), columns});
        fold(columns, part.image, window);
    });
}

void backward_weight(const Tensor& small, const Tensor& image, const Tensor& grad_weight, const Parameters& p) {
    const Window window = window_of(image, grad_weight, small, p);
    const Device& device = opencl_device(image);
    if (suits_depthwise(device, image.scalar_type(), window, p.groups, grad_weight.size(0) / p.groups)) {
        weight_gradient_depthwise(image, small, grad_weight, window);
        return;
    }
    const bool is_direct = suits_direct_weights(device, image.scalar_type(), window, image.size(0));
    const Step step = is_direct ? Step{image.size(0), 1} : step_of(window, image, p.groups);
    for_each_part(image, grad_weight, small, p, window, step, [&](const Part& part) {
        if (is_direct) {
            weight_gradient_directly(part.image, part.small, part.weight, window);
            return;
        }
        const Tensor out = part.weight.view({part.groups, part.outputs, window.taps()});
        multiply({as_matrices_of_places(part.small, part.groups), unfolded(part.image, window).transpose(1, 2), out,
                  out, 1, part.first_image == 0 ? 0 : 1});
    });
}

int64_t output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

// Two dimensions become three, of which the first has size 1.
Tensor deep(const Tensor& images) { return images.dim() == 4 ? images.unsqueeze(2) : images; }
at::DimVector deep(IntArrayRef values, int64_t of_first) {
    at::DimVector all;
    if (values.size() == 2)
        all.push_back(of_first);
    all.append(values.begin(), values.end());
    return all;
}
Parameters deep_parameters(IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
    return {deep(stride, 1), deep(padding, 0), deep(dilation, 1), groups};
}
// The result in the dimensions of the input.
Tensor shallow(const Tensor& images, const Tensor& input) {
    return images.defined() && input.dim() == 4 ? images.squeeze(2) : images;
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
    const Tensor added = bias && bias->defined() ? bias->contiguous() : Tensor();
    const Parameters p = deep_parameters(stride, padding, dilation, groups);
    TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "Input type (", input.scalar_type(), ") and weight type (",
                weight.scalar_type(), ") should be the same");
    TORCH_CHECK(!added.defined() || input.scalar_type() == added.scalar_type(), "Input type (", input.scalar_type(),
                ") and bias type (", added.scalar_type(), ") should be the same");
    const at::DimVector more = deep(output_padding, 0);
    const Tensor in = deep(input.contiguous()), w = deep(weight.contiguous());
    at::DimVector sizes{in.size(0), transposed ? w.size(1) * groups : w.size(0)};
    for (size_t d = 0; d < 3; ++d) {
        const int64_t size = in.size(static_cast<int64_t>(d) + 2), kernel = w.size(static_cast<int64_t>(d) + 2);
        const int64_t of_transposed = (size - 1) * p.stride[d] - 2 * p.padding[d] + p.dilation[d] * (kernel - 1) + 1;
        sizes.push_back(transposed ? of_transposed + more[d]
                                   : output_size(size, kernel, p.stride[d], p.padding[d], p.dilation[d]));
    }
    const Tensor out = at::empty(sizes, in.options());
    if (out.numel() > 0 && transposed)
        backward_image(in, w, out, p);
    else if (out.numel() > 0)
        forward(in, w, added, out, p);
    if (transposed && added.defined())
        out.add_(added.reshape({1, -1, 1, 1, 1}));
    // Contiguous, whatever the order of the input: PyTorch has decided so for all devices whose convolutions it does not know, and compiled
    // code checks it (decision 304).
    return shallow(out, input);
}

using Gradients = std::tuple<Tensor, Tensor, Tensor>;

Gradients convolution_backward(const Tensor& grad_out, const Tensor& input, const Tensor& weight, IntArrayRef stride,
                               IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef, int64_t groups,
                               std::array<bool, 3> mask) {
    const Parameters p = deep_parameters(stride, padding, dilation, groups);
    const Tensor grad = deep(grad_out.contiguous()), in = deep(input.contiguous()), w = deep(weight.contiguous());
    Tensor grad_in, grad_weight, grad_bias;
    const bool is_empty = grad.numel() == 0;
    if (mask[0]) {
        grad_in = at::empty(in.sizes(), in.options());
        if (is_empty)
            grad_in.zero_();
        else if (transposed)
            forward(grad, w, {}, grad_in, p);
        else
            backward_image(grad, w, grad_in, p);
    }
    if (mask[1]) {
        grad_weight = is_empty ? at::zeros(w.sizes(), w.options()) : at::empty(w.sizes(), w.options());
        if (!is_empty && transposed)
            backward_weight(in, grad, grad_weight, p);
        else if (!is_empty)
            backward_weight(grad, in, grad_weight, p);
    }
    if (mask[2])
        grad_bias = at::sum(grad, at::IntArrayRef{0, 2, 3, 4});
    return {shallow(grad_in, input), shallow(grad_weight, input), grad_bias};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("convolution_overrideable", convolution));
    m.impl(NATIVE("convolution_backward_overrideable", convolution_backward));
}

}  // namespace torch_opencl
