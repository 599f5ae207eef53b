// Convolutions of two dimensions on processors, without the matrix of all places under the kernel: for images with so few channels that unfolding
// costs more than the product. float32 and the types that are computed in it.
#pragma once

#include "../platform.h"

#include <ATen/core/Tensor.h>

namespace torch_opencl {

// One dimension: `in` is the larger image's size, `out` the smaller one's. spread: the distance at which the places of `in` are, with zeros between them; so the
// gradient of an image is a convolution of stride 1.
struct Axis {
    int64_t in, kernel, out, stride, padding, dilation, spread = 1;
    [[nodiscard]] bool is_plain() const { return kernel == 1 && stride == 1 && padding == 0; }
};
// c: the channels of the larger image. A tap is a channel and a place in the kernel.
struct Window {
    int64_t c;
    Axis z, y, x;
    [[nodiscard]] int64_t taps() const { return c * z.kernel * y.kernel * x.kernel; }
    [[nodiscard]] int64_t places() const { return z.out * y.out * x.out; }
    [[nodiscard]] int64_t voxels() const { return z.in * y.in * x.in; }
    [[nodiscard]] bool is_deep() const { return z.in != 1 || z.out != 1 || z.kernel != 1; }
};

// The weights as the kernels read them: strides of groups, of a group's outputs and of its channels, and whether the kernel is turned by
// 180 degrees, as in the gradient of the image.
struct Taps {
    const at::Tensor& weight;
    int64_t groups, group_stride, output_stride, channel_stride;
    bool is_turned;
};

// Whether these kernels are the faster ones. The window is of one group.
bool suits_direct(const Device& device, c10::ScalarType type, const Window& window, int64_t groups);
bool suits_direct_weights(const Device& device, c10::ScalarType type, const Window& window, int64_t images);
// One channel and one output in each group, in two dimensions.
bool suits_depthwise(const Device& device, c10::ScalarType type, const Window& window, int64_t groups, int64_t outputs);

// image [N, groups * C, 1, H, W], out [N, groups * O, 1, OH, OW]: each image dense, with any distance between images. bias [groups * O] or
// undefined.
void convolve_directly(const at::Tensor& image, const Taps& taps, const at::Tensor& bias, const at::Tensor& out,
                       const Window& window);
// Of one group: grad_weight [O, C, 1, KH, KW] is contiguous.
void weight_gradient_directly(const at::Tensor& image, const at::Tensor& grad_out, const at::Tensor& grad_weight,
                              const Window& window);
// Of all groups: grad_weight [groups, 1, 1, KH, KW] is contiguous.
void weight_gradient_depthwise(const at::Tensor& image, const at::Tensor& grad_out, const at::Tensor& grad_weight,
                               const Window& window);

}  // namespace torch_opencl
