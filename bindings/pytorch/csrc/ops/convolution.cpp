// Convolutions of two dimensions (PyTorch makes those of one dimension into these) as products of matrices: the places under the
// kernel become the columns of a matrix [taps][images * places], a few images at a time so that the matrix stays below a bound. One
// product is over all places of these images, so that small images fill tiles too.
#include "fallback.h"
#include "gemm.h"
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

// h, w: of the larger image, c its channels; oh, ow: of the smaller. A tap is a channel and a place in the kernel.
struct Window {
    int64_t c, h, w, kh, kw, oh, ow, sh, sw, ph, pw, dh, dw;
    [[nodiscard]] int64_t taps() const { return c * kh * kw; }
    [[nodiscard]] int64_t places() const { return oh * ow; }
};

// The kernels' structure of the same name.
struct Sizes {
    explicit Sizes(const Window& window)
        : w(window.w), pixels(window.h * window.w), ow(window.ow), places(window.places()),
          h(static_cast<int32_t>(window.h)), oh(static_cast<int32_t>(window.oh)) {}
    Divisor w, pixels, ow, places;
    int32_t h, oh;
};

const char* const window_kernels = R"(
typedef struct { uint d, magic, shift; } Divisor;
typedef struct { Divisor w, pixels, ow, places; int h, oh; } Sizes;
#define DIVIDED(n_, by_) ((mul_hi(n_, by_.magic) + (n_)) >> by_.shift)
// columns[tap][place]. Places outside of the image are 0.
kernel void unfold(global const X_T* image, global X_T* columns, long image_stride, Sizes S) {
  uint place = get_global_id(0), tap = get_global_id(1);
  long c = tap / (KH * KW);
  int k = tap % (KH * KW), first_row = k / KW * DH - PH, first_column = k % KW * DW - PW;
  uint n = DIVIDED(place, S.places), p = place - n * S.places.d, y = DIVIDED(p, S.ow), x = p - y * S.ow.d;
  int row = (int)y * SH + first_row, column = (int)x * SW + first_column, w = S.w.d;
  int inside = row >= 0 && row < S.h && column >= 0 && column < w;
  // Without a branch, so that items are lanes of vectors.
  uint at = n * (uint)image_stride + (uint)(clamp(row, 0, S.h - 1) * w + clamp(column, 0, w - 1));
  image += c * S.pixels.d;
  T v = LOADX(image, at);
  STOREX(columns, tap * (long)get_global_size(0) + place, inside ? v : (T)0);
}
// The sum of all taps that lie on a pixel.
kernel void fold(global const X_T* columns, global X_T* image, long image_stride, long places, Sizes S) {
  uint pixel = get_global_id(0);
  long c = get_global_id(1);
  uint n = DIVIDED(pixel, S.pixels), p = pixel - n * S.pixels.d, y = DIVIDED(p, S.w), x = p - y * S.w.d;
  columns += c * KH * KW * places;
  T sum = 0;
  for (int i = 0; i < KH; ++i) {
    int row = (int)y + PH - i * DH, oy = row / SH, fits = row >= 0 && row % SH == 0 && oy < S.oh;
    uint begin = n * S.places.d + (uint)clamp(oy, 0, S.oh - 1) * S.ow.d;
    for (int j = 0; j < KW; ++j) {
      int column = (int)x + PW - j * DW, ox = column / SW, ow = S.ow.d;
      T v = LOADX(columns, (i * KW + j) * places + begin + (uint)clamp(ox, 0, ow - 1));
      sum += fits && column >= 0 && column % SW == 0 && ox < ow ? v : (T)0;
    }
  }
  STOREX(image, n * image_stride + c * S.pixels.d + p, sum);
}
)";

Kernel& window_kernel(const Tensor& tensor, const char* name, const Window& w) {
    const auto type = tensor.scalar_type();
    check_supported(type, opencl_device(tensor).index, "a convolution");
    std::string constants;
    const auto define = [&constants](const char* constant, int64_t value) {
        constants += std::string("#define ") + constant + " " + std::to_string(value) + "\n";
    };
    define("KH", w.kh), define("KW", w.kw), define("SH", w.sh), define("SW", w.sw), define("PH", w.ph);
    define("PW", w.pw), define("DH", w.dh), define("DW", w.dw);
    return kernel_of(opencl_device(tensor), name + (" " + constants) + short_name(type), name, [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + "\n" +
               constants + window_kernels;
    });
}

// The places of image [N, C, H, W] as columns [taps, N * places].
Tensor unfolded(const Tensor& image, const Window& window) {
    const Tensor columns = at::empty({window.taps(), image.size(0) * window.places()}, image.options());
    Launch launch(opencl_device(image), window_kernel(image, "unfold", window));
    launch.read(image).written(columns).value(image.stride(0)).value(Sizes(window));
    launch.run({static_cast<size_t>(columns.size(1)), static_cast<size_t>(columns.size(0)), 1});
    return columns;
}

void fold(const Tensor& columns, const Tensor& image, const Window& window) {
    Launch launch(opencl_device(image), window_kernel(image, "fold", window));
    launch.read(columns).written(image).value(image.stride(0)).value(columns.size(1)).value(Sizes(window));
    launch.run({static_cast<size_t>(image.size(0) * window.h * window.w), static_cast<size_t>(window.c), 1});
}

struct Parameters {
    IntArrayRef stride, padding, dilation;
    int64_t groups;
};

// image [N, C, H, W], weight [O, C / groups, KH, KW], small [N, O, OH, OW]; the window is of one group.
Window window_of(const Tensor& image, const Tensor& weight, const Tensor& small, const Parameters& p) {
    return {weight.size(1), image.size(2), image.size(3), weight.size(2), weight.size(3), small.size(2), small.size(3),
            p.stride[0],    p.stride[1],   p.padding[0],  p.padding[1],   p.dilation[0],  p.dilation[1]};
}

// A kernel of one place with stride 1 needs no unfolding.
bool is_plain(const Window& w) { return w.kh == 1 && w.kw == 1 && w.sh == 1 && w.sw == 1 && w.ph == 0 && w.pw == 0; }

// Offsets in these images are numbers of 31 bits.
int64_t images_at_once(const Window& window, const Tensor& image) {
    const int64_t bytes = window.taps() * window.places() * static_cast<int64_t>(image.element_size());
    const int64_t of_offsets = (int64_t{1} << 31) / std::max<int64_t>(1, image.stride(0)) - 1;
    const int64_t images = std::min(unfolded_bytes_max / std::max<int64_t>(1, bytes), of_offsets);
    return std::clamp<int64_t>(images, 1, image.size(0));
}

// Calls work(image part, small part, weight part) for each part of the batch and each group.
template <typename Work>
void for_each_part(const Tensor& image, const Tensor& weight, const Tensor& small, const Parameters& p,
                   const Window& window, const Work& work) {
    const int64_t step = images_at_once(window, image), outputs = weight.size(0) / p.groups;
    for (int64_t n = 0; n < image.size(0); n += step) {
        const int64_t count = std::min(step, image.size(0) - n);
        for (int64_t g = 0; g < p.groups; ++g)
            work(image.narrow(0, n, count).narrow(1, g * window.c, window.c),
                 small.narrow(0, n, count).narrow(1, g * outputs, outputs), weight.narrow(0, g * outputs, outputs));
    }
}

// A part of images [n, c, h, w] as matrices [n, c, h * w].
Tensor as_matrices(const Tensor& part) {
    return part.as_strided({part.size(0), part.size(1), part.size(2) * part.size(3)},
                           {part.stride(0), part.stride(1), 1});
}
// The same as one matrix [c, n * h * w].
Tensor as_matrix_of_places(const Tensor& part) { return as_matrices(part).transpose(0, 1).reshape({part.size(1), -1}); }
Tensor as_matrix(const Tensor& weight) { return weight.reshape({weight.size(0), -1}); }

// Whether one product per image fills its tiles.
bool has_many_places(const Window& window) { return window.places() % 16 == 0 || window.places() >= 128; }

void forward(const Tensor& image, const Tensor& weight, const Tensor& bias, const Tensor& out, const Parameters& p) {
    const Window window = window_of(image, weight, out, p);
    const int64_t outputs = weight.size(0) / p.groups;
    int64_t first_output = 0;
    for_each_part(image, weight, out, p, window, [&](const Tensor& in, const Tensor& part, const Tensor& w) {
        Tensor added;
        if (bias.defined())
            added = bias.narrow(0, first_output, outputs).reshape({outputs, 1});
        first_output = (first_output + outputs) % weight.size(0);
        const c10::Scalar beta = bias.defined() ? 1 : 0;
        if (is_plain(window) && has_many_places(window)) {
            multiply({as_matrix(w).unsqueeze(0), as_matrices(in), as_matrices(part), added, 1, beta});
            return;
        }
        const Tensor first = as_matrices(part.narrow(0, 0, 1)).squeeze(0);
        multiply({as_matrix(w), unfolded(in, window), first, added, 1, beta, window.places(), part.stride(0)});
    });
}

// image = the gradient of the image: the transpose of forward.
void backward_image(const Tensor& small, const Tensor& weight, const Tensor& image, const Parameters& p) {
    const Window window = window_of(image, weight, small, p);
    for_each_part(image, weight, small, p, window, [&](const Tensor& to, const Tensor& from, const Tensor& w) {
        const Tensor transposed = as_matrix(w).t();
        if (is_plain(window) && has_many_places(window)) {
            multiply({transposed.unsqueeze(0), as_matrices(from), as_matrices(to)});
            return;
        }
        const Tensor columns = at::empty({window.taps(), to.size(0) * window.places()}, to.options());
        multiply({transposed, as_matrix_of_places(from), columns});
        fold(columns, to, window);
    });
}

void backward_weight(const Tensor& small, const Tensor& image, const Tensor& grad_weight, const Parameters& p) {
    const Window window = window_of(image, grad_weight, small, p);
    int64_t parts_done = 0;
    for_each_part(image, grad_weight, small, p, window, [&](const Tensor& in, const Tensor& from, const Tensor& to) {
        const Tensor out = to.view({to.size(0), window.taps()});
        const bool is_first = parts_done++ < p.groups;
        multiply({as_matrix_of_places(from), unfolded(in, window).t(), out, out, 1, is_first ? 0 : 1});
    });
}

int64_t output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

// Three dimensions have no kernels.
bool is_two_dimensional(const Tensor& input) { return input.dim() == 4; }

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
    const Tensor added = bias ? *bias : Tensor();
    if (!is_two_dimensional(input)) {
        count_fallback("aten::convolution_overrideable");
        const auto host_bias = added.defined() ? std::optional<Tensor>(added.cpu()) : std::nullopt;
        return at::convolution(input.cpu(), weight.cpu(), host_bias, stride, padding, dilation, transposed,
                               output_padding, groups)
            .to(input.device());
    }
    const Parameters p{stride, padding, dilation, groups};
    const Tensor in = input.contiguous(), w = weight.contiguous();
    if (!transposed) {
        Tensor out =
            at::empty({in.size(0), w.size(0), output_size(in.size(2), w.size(2), stride[0], padding[0], dilation[0]),
                       output_size(in.size(3), w.size(3), stride[1], padding[1], dilation[1])},
                      in.options());
        if (out.numel() > 0)
            forward(in, w, added, out, p);
        return out;
    }
    const auto size = [&](size_t d) {
        return (in.size(2 + static_cast<int64_t>(d)) - 1) * stride[d] - 2 * padding[d] +
               dilation[d] * (w.size(2 + static_cast<int64_t>(d)) - 1) + output_padding[d] + 1;
    };
    Tensor out = at::empty({in.size(0), w.size(1) * groups, size(0), size(1)}, in.options());
    if (out.numel() > 0)
        backward_image(in, w, out, p);
    return added.defined() ? out.add_(added.reshape({1, -1, 1, 1})) : out;
}

using Gradients = std::tuple<Tensor, Tensor, Tensor>;

Gradients on_host(const Tensor& grad, const Tensor& input, const Tensor& weight, const Parameters& p, bool transposed,
                  IntArrayRef output_padding, std::array<bool, 3> mask) {
    count_fallback("aten::convolution_backward_overrideable");
    auto [a, b, c] =
        at::convolution_backward(grad.cpu(), input.cpu(), weight.cpu(), at::OptionalIntArrayRef(), p.stride, p.padding,
                                 p.dilation, transposed, output_padding, p.groups, {mask[0], mask[1], false});
    Tensor bias;
    if (mask[2])
        bias = at::sum(grad, at::IntArrayRef{0, 2, 3, 4});
    return {a.defined() ? a.to(grad.device()) : a, b.defined() ? b.to(grad.device()) : b, bias};
}

Gradients convolution_backward(const Tensor& grad_out, const Tensor& input, const Tensor& weight, IntArrayRef stride,
                               IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                               int64_t groups, std::array<bool, 3> mask) {
    const Parameters p{stride, padding, dilation, groups};
    if (!is_two_dimensional(input))
        return on_host(grad_out, input, weight, p, transposed, output_padding, mask);
    const Tensor grad = grad_out.contiguous(), in = input.contiguous(), w = weight.contiguous();
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
        grad_bias = at::sum(grad, at::IntArrayRef{0, 2, 3});
    return {grad_in, grad_weight, grad_bias};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("convolution_overrideable", convolution);
    m.impl("convolution_backward_overrideable", convolution_backward);
}

}  // namespace torch_opencl
