// Places of values in sorted sequences, by a binary search for each value.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using OptionalSide = std::optional<c10::string_view>;

// NaN is after all numbers.
const char* const search_body = R"(
kernel void search(global const X_T* sequences, global const X_T* values, global const long* sorter, global O_T* out, long size, long per_row,
                   int shared, int sorted, int right) {
  long i = get_global_id(0), base = shared ? 0 : i / per_row * size, low = 0, high = size;
  T x = LOADX(values, i);
  while (low < high) {
    long middle = low + (high - low) / 2;
    T y = LOADX(sequences, base + (sorted ? sorter[base + middle] : middle));
    if (right ? !(y > x) : !(y >= x)) low = middle + 1; else high = middle;
  }
  out[i] = low;
}
)";

Tensor& searchsorted_out(const Tensor& sequences, const Tensor& self, bool out_int32, bool right, OptionalSide side,
                         const OptionalTensor& given_sorter, Tensor& out) {
    const Tensor sorter = given_sorter.value_or(Tensor());
    at::native::searchsorted_pre_check(sequences, self, out, out_int32, right, side, sorter);
    at::native::resize_output(out, self.sizes());
    if (self.numel() == 0)
        return out;
    const bool is_after = side ? *side == "right" : right;
    const auto type = at::result_type(sequences, self);
    const Device& device = opencl_device(sequences);
    check_supported(type, device.index, "searchsorted");
    const Tensor sorted = sequences.to(type).contiguous(), values = self.to(type).contiguous();
    const Tensor order = sorter.defined() ? sorter.contiguous() : sorter;
    const Tensor result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    Kernel& kernel =
        kernel_of(device, std::string("search ") + short_name(type) + short_name(out.scalar_type()), "search", [&] {
            return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
                   "\n#define O_T " + storage_name(out.scalar_type()) + search_body;
        });
    Launch(device, kernel)
        .read(sorted)
        .read(values)
        .read(order.defined() ? order : sorted)
        .written(result)
        .value(sorted.size(-1))
        .value(self.dim() == 0 ? int64_t{1} : self.size(-1))
        .value(sorted.dim() == 1 ? 1 : 0)
        .value(order.defined() ? 1 : 0)
        .value(is_after ? 1 : 0)
        .run({static_cast<size_t>(values.numel()), 1, 1});
    return result.is_same(out) ? out : out.copy_(result);
}
Tensor searchsorted(const Tensor& sequences, const Tensor& self, bool out_int32, bool right, OptionalSide side,
                    const OptionalTensor& sorter) {
    Tensor out = at::empty({0}, sequences.options().dtype(out_int32 ? at::kInt : at::kLong));
    return searchsorted_out(sequences, self, out_int32, right, side, sorter, out);
}
// Numbers take part in the choice of the type as numbers, and not as tensors.
Tensor searchsorted_scalar(const Tensor& sequences, const Scalar& self, bool out_int32, bool right, OptionalSide side,
                           const OptionalTensor& sorter) {
    const Tensor value = at::native::searchsorted_scalar_tensor(self, sequences.device());
    return torch_opencl::searchsorted(sequences, value, out_int32, right, side, sorter);
}
Tensor& searchsorted_scalar_out(const Tensor& sequences, const Scalar& self, bool out_int32, bool right,
                                OptionalSide side, const OptionalTensor& sorter, Tensor& out) {
    const Tensor value = at::native::searchsorted_scalar_tensor(self, sequences.device());
    return searchsorted_out(sequences, value, out_int32, right, side, sorter, out);
}

void check_boundaries(const Tensor& boundaries) {
    TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
}
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
    check_boundaries(boundaries);
    return torch_opencl::searchsorted(boundaries, self, out_int32, right, {}, {});
}
Tensor& bucketize_out(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right, Tensor& out) {
    check_boundaries(boundaries);
    return searchsorted_out(boundaries, self, out_int32, right, {}, {}, out);
}
Tensor bucketize_scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
    check_boundaries(boundaries);
    return searchsorted_scalar(boundaries, self, out_int32, right, {}, {});
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("searchsorted.Tensor", torch_opencl::searchsorted));
    m.impl(NATIVE("searchsorted.Tensor_out", searchsorted_out));
    m.impl(NATIVE("searchsorted.Scalar", searchsorted_scalar));
    m.impl(NATIVE("searchsorted.Scalar_out", searchsorted_scalar_out));
    m.impl(NATIVE("bucketize.Tensor", torch_opencl::bucketize));
    m.impl(NATIVE("bucketize.Tensor_out", bucketize_out));
    m.impl(NATIVE("bucketize.Scalar", bucketize_scalar));
}

}  // namespace torch_opencl
