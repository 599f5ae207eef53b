// Convolutions of two dimensions (PyTorch makes those of one dimension into these) as products of matrices: the places under the
// kernel become the columns (or rows) of a matrix, a few images at a time so that the matrix stays below a bound.
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

// The kernels' structure of the same name. c, h, w: of the larger image; oh, ow: of the smaller.
struct Window {
    int64_t c, h, w, kh, kw, oh, ow, sh, sw, ph, pw, dh, dw;
    [[nodiscard]] int64_t taps() const { return c * kh * kw; }
    [[nodiscard]] int64_t places() const { return oh * ow; }
};

const char* const window_kernels = R"(
typedef struct { long c, h, w, kh, kw, oh, ow, sh, sw, ph, pw, dh, dw; } Window;
// columns[n][tap][place], a tap being a channel and a place in the kernel. Places outside of the image are 0.
kernel void unfold_columns(global const X_T* image, global X_T* columns, long image_stride, Window W) {
  long x = get_global_id(0), rest = get_global_id(1), y = rest % W.oh, tap = rest / W.oh, n = get_global_id(2);
  long k = tap % (W.kh * W.kw), c = tap / (W.kh * W.kw);
  long row = y * W.sh - W.ph + k / W.kw * W.dh, column = x * W.sw - W.pw + k % W.kw * W.dw;
  int inside = row >= 0 && row < W.h && column >= 0 && column < W.w;
  T v = inside ? LOADX(image, n * image_stride + (c * W.h + row) * W.w + column) : (T)0;
  STOREX(columns, ((n * W.c * W.kh * W.kw + tap) * W.oh + y) * W.ow + x, v);
}
// rows[n][place][tap]
kernel void unfold_rows(global const X_T* image, global X_T* rows, long image_stride, Window W) {
  long tap = get_global_id(0), place = get_global_id(1), n = get_global_id(2);
  long k = tap % (W.kh * W.kw), c = tap / (W.kh * W.kw);
  long row = place / W.ow * W.sh - W.ph + k / W.kw * W.dh, column = place % W.ow * W.sw - W.pw + k % W.kw * W.dw;
  int inside = row >= 0 && row < W.h && column >= 0 && column < W.w;
  T v = inside ? LOADX(image, n * image_stride + (c * W.h + row) * W.w + column) : (T)0;
  STOREX(rows, (n * W.oh * W.ow + place) * W.c * W.kh * W.kw + tap, v);
}
// The sum of all taps that lie on a pixel.
kernel void fold_columns(global const X_T* columns, global X_T* image, long image_stride, Window W) {
  long x = get_global_id(0), rest = get_global_id(1), y = rest % W.h, c = rest / W.h, n = get_global_id(2);
  T sum = 0;
  for (long i = 0; i < W.kh; ++i) {
    long row = y + W.ph - i * W.dh;
    if (row < 0 || row % W.sh != 0 || row / W.sh >= W.oh) continue;
    for (long j = 0; j < W.kw; ++j) {
      long column = x + W.pw - j * W.dw;
      if (column >= 0 && column % W.sw == 0 && column / W.sw < W.ow)
        sum += LOADX(columns, ((n * W.c * W.kh * W.kw + (c * W.kh + i) * W.kw + j) * W.oh + row / W.sh) * W.ow + column / W.sw);
    }
  }
  STOREX(image, n * image_stride + (c * W.h + y) * W.w + x, sum);
}
)";

void run_window(const char* name, const Tensor& from, const Tensor& to, int64_t image_stride, const Window& window,
                int64_t images) {
    const Device& device = opencl_device(from);
    const auto type = from.scalar_type();
    check_supported(type, device.index, "a convolution");
    Kernel& kernel = kernel_of(device, std::string(name) + " " + short_name(type), name, [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + "\n" +
               window_kernels;
    });
    Launch launch(device, kernel);
    launch.read(from).written(to).value(image_stride).value(window);
    const auto n = static_cast<size_t>(images);
    const std::string which = name;
    if (which == "unfold_rows")
        launch.run({static_cast<size_t>(window.taps()), static_cast<size_t>(window.places()), n});
    else if (which == "unfold_columns")
        launch.run({static_cast<size_t>(window.ow), static_cast<size_t>(window.taps() * window.oh), n});
    else
        launch.run({static_cast<size_t>(window.w), static_cast<size_t>(window.c * window.h), n});
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

int64_t images_at_once(const Window& window, const Tensor& image) {
    const int64_t bytes = window.taps() * window.places() * static_cast<int64_t>(image.element_size());
    return std::clamp<int64_t>(unfolded_bytes_max / std::max<int64_t>(1, bytes), 1, image.size(0));
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

// A part of an image [n, c, h, w] as matrices [n, c, h * w].
Tensor as_matrices(const Tensor& part) {
    return part.as_strided({part.size(0), part.size(1), part.size(2) * part.size(3)},
                           {part.stride(0), part.stride(1), 1});
}
Tensor as_matrix(const Tensor& weight) { return weight.reshape({weight.size(0), -1}); }

void forward(const Tensor& image, const Tensor& weight, const Tensor& bias, const Tensor& out, const Parameters& p) {
    const Window window = window_of(image, weight, out, p);
    const int64_t outputs = weight.size(0) / p.groups;
    int64_t first_output = 0;
    for_each_part(image, weight, out, p, window, [&](const Tensor& in, const Tensor& part, const Tensor& w) {
        Tensor columns;
        if (is_plain(window)) {
            columns = as_matrices(in);
        } else {
            columns = at::empty({in.size(0), window.taps(), window.places()}, in.options());
            run_window("unfold_columns", in, columns, in.stride(0), window, in.size(0));
        }
        Product product{as_matrix(w).unsqueeze(0), columns, as_matrices(part)};
        Tensor added;
        if (bias.defined()) {
            product.c = bias.narrow(0, first_output, outputs).reshape({1, outputs, 1});
            product.beta = 1;
        }
        multiply(product);
        first_output = (first_output + outputs) % weight.size(0);
    });
}

// image = the gradient of the image: the transpose of forward.
void backward_image(const Tensor& small, const Tensor& weight, const Tensor& image, const Parameters& p) {
    const Window window = window_of(image, weight, small, p);
    for_each_part(image, weight, small, p, window, [&](const Tensor& to, const Tensor& from, const Tensor& w) {
        const Tensor transposed = as_matrix(w).t().unsqueeze(0);
        if (is_plain(window)) {
            multiply({transposed, as_matrices(from), as_matrices(to)});
            return;
        }
        const Tensor columns = at::empty({to.size(0), window.taps(), window.places()}, to.options());
        multiply({transposed, as_matrices(from), columns});
        run_window("fold_columns", columns, to, to.stride(0), window, to.size(0));
    });
}

void backward_weight(const Tensor& small, const Tensor& image, const Tensor& grad_weight, const Parameters& p) {
    const Window window = window_of(image, grad_weight, small, p);
    int64_t parts_done = 0;
    for_each_part(image, grad_weight, small, p, window, [&](const Tensor& in, const Tensor& from, const Tensor& to) {
        const Tensor rows = at::empty({in.size(0) * window.places(), window.taps()}, in.options());
        run_window("unfold_rows", in, rows, in.stride(0), window, in.size(0));
        const Tensor left = as_matrices(from).transpose(0, 1).reshape({from.size(1), rows.size(0)});
        const Tensor out = to.view({to.size(0), window.taps()});
        const bool is_first = parts_done++ < p.groups;
        multiply({left, rows, out, out, 1, is_first ? 0 : 1});
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
