// Windows of images as columns and back, and pools undone: copies and sums of views.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/im2col_shape_check.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::IntArrayRef;
using at::Tensor;

// How often a window fits.
int64_t windows(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
    return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

Tensor im2col(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
    for (const IntArrayRef each : {kernel, dilation, padding, stride})
        TORCH_CHECK(each.size() == 2, "It is expected that each parameter of im2col has 2 elements, but got ",
                    each.size());
    at::native::im2col_shape_check(self, Tensor(), kernel[0], kernel[1], dilation[0], dilation[1], padding[0],
                                   padding[1], stride[0], stride[1]);
    const Tensor images = self.dim() == 4 ? self : self.unsqueeze(0);
    const int64_t rows = windows(images.size(2), kernel[0], dilation[0], padding[0], stride[0]);
    const int64_t columns = windows(images.size(3), kernel[1], dilation[1], padding[1], stride[1]);
    const Tensor padded = at::constant_pad_nd(images, {padding[1], padding[1], padding[0], padding[0]}).contiguous();
    const auto step = padded.strides();
    const Tensor view = padded.as_strided(
        {images.size(0), images.size(1), kernel[0], kernel[1], rows, columns},
        {step[0], step[1], step[2] * dilation[0], step[3] * dilation[1], step[2] * stride[0], step[3] * stride[1]});
    const Tensor out = view.reshape({images.size(0), images.size(1) * kernel[0] * kernel[1], rows * columns});
    return self.dim() == 4 ? out : out.squeeze(0);
}

// Each place of the kernel adds to every place that it covers once.
Tensor col2im(const Tensor& self, IntArrayRef size, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
              IntArrayRef stride) {
    for (const IntArrayRef each : {size, kernel, dilation, padding, stride})
        TORCH_CHECK(each.size() == 2, "It is expected that each parameter of col2im has 2 elements, but got ",
                    each.size());
    at::native::col2im_shape_check(self, Tensor(), size[0], size[1], kernel[0], kernel[1], dilation[0], dilation[1],
                                   padding[0], padding[1], stride[0], stride[1]);
    const Tensor all = self.dim() == 3 ? self : self.unsqueeze(0);
    const int64_t rows = windows(size[0], kernel[0], dilation[0], padding[0], stride[0]);
    const int64_t columns = windows(size[1], kernel[1], dilation[1], padding[1], stride[1]);
    const int64_t channels = all.size(1) / (kernel[0] * kernel[1]);
    const Tensor parts = all.reshape({all.size(0), channels, kernel[0], kernel[1], rows, columns});
    // Sums have the precision that they are computed in.
    const Tensor sums = at::zeros({all.size(0), channels, size[0] + 2 * padding[0], size[1] + 2 * padding[1]},
                                  self.options().dtype(compute_type(self.scalar_type())));
    for (int64_t y = 0; y < kernel[0]; ++y)
        for (int64_t x = 0; x < kernel[1]; ++x) {
            const int64_t top = y * dilation[0], left = x * dilation[1];
            sums.slice(2, top, top + (rows - 1) * stride[0] + 1, stride[0])
                .slice(3, left, left + (columns - 1) * stride[1] + 1, stride[1])
                .add_(parts.select(2, y).select(2, x));
        }
    const Tensor out =
        sums.narrow(2, padding[0], size[0]).narrow(3, padding[1], size[1]).to(self.scalar_type()).contiguous();
    return self.dim() == 3 ? out : out.squeeze(0);
}

Tensor max_unpool(const Tensor& self, const Tensor& indices, IntArrayRef size) {
    TORCH_CHECK(indices.scalar_type() == at::kLong,
                "elements in indices should be type int64 but got: ", indices.scalar_type());
    TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
                self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
    const auto dims = static_cast<int64_t>(size.size());
    TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Input to max_unpool should have ", dims + 1, " or ",
                dims + 2, " dimensions, but got a tensor with dim ", self.dim());
    at::DimVector sizes(self.sizes().slice(0, static_cast<size_t>(self.dim() - dims)));
    at::DimVector flat = sizes, in = sizes;
    flat.push_back(c10::multiply_integers(size));
    in.push_back(-1);
    sizes.append(size.begin(), size.end());
    if (self.numel() == 0)
        return at::zeros(sizes, self.options());
    return at::zeros(flat, self.options()).scatter_(-1, indices.reshape(in), self.reshape(in)).view(sizes);
}
Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef size) {
    TORCH_CHECK(size.size() == 2, "There should be exactly two elements (height, width) in output_size, but got ",
                size.size(), " elements.");
    return max_unpool(self, indices, size);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef size, IntArrayRef stride, IntArrayRef) {
    TORCH_CHECK(size.size() == 3,
                "There should be exactly three elements (depth, height, width) in output_size, but got ", size.size(),
                " elements.");
    for (const int64_t each : stride)
        TORCH_CHECK(each > 0, "strides should be greater than zero, but got stride: ", stride);
    return max_unpool(self, indices, size);
}

// The gradient of Tensor.unfold, whose windows are of one dimension: each element of the input adds its places in the windows that have it.
const char* const windows_gradient = R"(
kernel void add_windows(global const X_T* grad, global X_T* out, long length, long inner, long windows, long size, long step) {
  long j = get_global_id(0), i = get_global_id(1), o = get_global_id(2);
  long first = i < size ? 0 : (i - size) / step + 1, last = min(i / step, windows - 1);
  T sum = 0;
  for (long w = first; w <= last; ++w) sum += LOADX(grad, ((o * windows + w) * inner + j) * size + i - w * step);
  STOREX(out, (o * length + i) * inner + j, sum);
}
)";
Tensor unfold_backward(const Tensor& grad, IntArrayRef sizes, int64_t wrapped, int64_t size, int64_t step) {
    Tensor out = at::empty(sizes, grad.options());
    if (sizes.empty() || out.numel() == 0 || grad.numel() == 0)
        return sizes.empty() && size > 0 ? out.copy_(grad.select(0, 0)) : out.zero_();
    const int64_t dim = at::maybe_wrap_dim(wrapped, static_cast<int64_t>(sizes.size()));
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(dim) + 1; d < sizes.size(); ++d)
        inner *= sizes[d];
    const int64_t length = out.size(dim);
    const Device& device = opencl_device(grad);
    const auto type = grad.scalar_type();
    check_supported(type, device.index, "unfold_backward");
    Kernel& kernel = kernel_of(device, std::string("add windows ") + short_name(type), "add_windows", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
               windows_gradient;
    });
    Launch(device, kernel)
        .read(grad.contiguous())
        .written(out)
        .value(length)
        .value(inner)
        .value(grad.size(dim))
        .value(size)
        .value(step)
        .run({static_cast<size_t>(inner), static_cast<size_t>(length),
              static_cast<size_t>(out.numel() / length / inner)});
    return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("im2col", im2col));
    m.impl(NATIVE("unfold_backward", torch_opencl::unfold_backward));
    m.impl(NATIVE("col2im", col2im));
    m.impl(NATIVE("max_unpool2d", max_unpool2d));
    m.impl(NATIVE("max_unpool3d", max_unpool3d));
}

}  // namespace torch_opencl
