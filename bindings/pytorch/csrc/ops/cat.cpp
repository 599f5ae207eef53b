// Tensors one after another.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

Tensor& cat_out(const at::ITensorListRef& tensors, int64_t wrapped, Tensor& out) {
    const auto parts = tensors.materialize();
    // A vector without elements fits everything, for historical reasons.
    const auto is_skipped = [](const Tensor& part) { return part.dim() == 1 && part.size(0) == 0; };
    int64_t dim = 0, length = 0;
    at::DimVector sizes;
    for (const Tensor& part : parts) {
        check_same_device(out.device(), part);
        if (is_skipped(part))
            continue;
        if (sizes.empty()) {
            dim = at::maybe_wrap_dim(wrapped, part.dim());
            sizes = at::DimVector(part.sizes());
        }
        length += part.size(dim);
    }
    if (sizes.empty()) {
        at::native::resize_output(out, {0});
        return out;
    }
    sizes[static_cast<size_t>(dim)] = length;
    at::native::resize_output(out, sizes);
    int64_t begin = 0;
    for (const Tensor& part : parts) {
        if (is_skipped(part))
            continue;
        out.narrow(dim, begin, part.size(dim)).copy_(part);
        begin += part.size(dim);
    }
    return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("cat.out", cat_out); }

}  // namespace torch_opencl
