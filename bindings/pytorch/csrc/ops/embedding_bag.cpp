// nn.EmbeddingBag: sums, means and greatest elements of rows that an index names, bag by bag. Forward is one kernel with a work-item per bag and
// column; gradients are additions of rows (index.cpp), so that results do not change between runs.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/ops/_embedding_bag_backward_native.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Bags = std::tuple<Tensor, Tensor, Tensor, Tensor>;

enum class Mode : int64_t { sum = 0, mean = 1, greatest = 2 };

// Elements of the padding's row, and indices outside of the weight, count for nothing.
const char* const bags_kernel = R"(
kernel void bags(global const X_T* weight, global const long* indices, global const long* offsets, global const X_T* scales,
                 global X_T* out, global long* bag_of, global long* sizes, global long* greatest, long n, long width, long rows,
                 long offset_count, long padding, int mode, int has_scales) {
  long c = get_global_id(0), bag = get_global_id(1);
  long begin = offsets[bag], end = bag + 1 < offset_count ? offsets[bag + 1] : n;
  T acc = 0;
  long count = 0, place = 0;
  for (long i = begin; i < end; ++i) {
    long at = indices[i];
    if (c == 0) bag_of[i] = bag;
    if (at == padding || at < 0 || at >= rows) continue;
    T x = LOADX(weight, at * width + c);
    if (mode != 2) acc += has_scales ? x * LOADX(scales, i) : x;
    else if (count == 0 || x > acc || x != x) { acc = x; place = at; }
    ++count;
  }
  if (mode == 1 && count > 0) acc /= count;
  STOREX(out, bag * width + c, acc);
  if (mode == 2) greatest[bag * width + c] = place;
  if (c == 0) sizes[bag] = count;
}
)";

Bags embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                   const OptionalTensor& scales, bool include_last_offset, int64_t padding) {
    TORCH_CHECK(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1, "embedding_bag: a weight of ",
                weight.dim(), ", indices of ", indices.dim(), " and offsets of ", offsets.dim(), " dimensions");
    TORCH_CHECK(!include_last_offset || offsets.size(0) >= 1,
                "include_last_offset: number of offset should be at least 1");
    const bool has_scales = scales && scales->defined();
    TORCH_CHECK(!has_scales || static_cast<Mode>(mode) == Mode::sum,
                "embedding_bag: per_sample_weights only supported with mode='sum'");
    const auto type = weight.scalar_type();
    TORCH_CHECK(at::isIntegralType(indices.scalar_type(), false) && at::isIntegralType(offsets.scalar_type(), false),
                "embedding_bag: indices and offsets are integers, not ", indices.scalar_type(), " and ",
                offsets.scalar_type());
    if (has_scales)
        check_type(type, *scales);
    const Device& device = opencl_device(weight);
    check_supported(type, device.index, "embedding_bag");
    const Tensor rows = weight.contiguous(), places = indices.to(at::kLong).contiguous(),
                 begins = offsets.to(at::kLong).contiguous();
    const Tensor factors = has_scales ? scales->to(type).contiguous() : rows;
    const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0), width = weight.size(1);
    const bool has_greatest = static_cast<Mode>(mode) == Mode::greatest;
    const Tensor out = at::empty({bags, width}, weight.options()), bag_of = at::zeros_like(places),
                 sizes = at::zeros({bags}, places.options()),
                 greatest = at::zeros({has_greatest ? bags : 0, width}, places.options());
    Kernel& kernel = kernel_of(device, std::string("bags ") + short_name(type), "bags", [type] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + bags_kernel;
    });
    {
        Launch launch(device, kernel);
        launch.read(rows).read(places).read(begins).read(factors).written(out).written(bag_of).written(sizes);
        launch.written(has_greatest ? greatest : sizes).value(places.numel()).value(width).value(weight.size(0));
        launch.value(begins.numel()).value(padding).value(static_cast<int32_t>(mode)).value<int32_t>(has_scales);
        launch.run({static_cast<size_t>(width), static_cast<size_t>(bags), 1});
    }
    const auto index_type = indices.scalar_type();
    return {out, bag_of.to(index_type), sizes.to(index_type), greatest.to(index_type)};
}

// 1 divided by how often each index occurs.
Tensor inverse_frequencies(const Tensor& places, int64_t count, const at::TensorOptions& options) {
    const Tensor counts = at::zeros({count}, options).index_add_(0, places, at::ones({places.numel()}, options));
    return at::reciprocal(counts.index_select(0, places));
}

Tensor dense_backward(const Tensor& grad, const Tensor& indices, const Tensor& bag_of, const Tensor& sizes,
                      const Tensor& greatest, int64_t count, bool scale_by_frequency, int64_t mode,
                      const OptionalTensor& scales, int64_t padding) {
    const Tensor out = at::zeros({count, grad.size(1)}, grad.options());
    if (indices.numel() == 0)
        return out;
    if (static_cast<Mode>(mode) == Mode::greatest)
        return out.scatter_add_(0, greatest.to(at::kLong), at::mul(grad, at::ne(sizes, 0).unsqueeze(1)));
    const Tensor places = indices.to(at::kLong), bags = bag_of.to(at::kLong);
    Tensor rows = grad.index_select(0, bags);
    if (static_cast<Mode>(mode) == Mode::mean)
        rows.div_(sizes.index_select(0, bags).unsqueeze(1));
    if (scales && scales->defined())
        rows.mul_(scales->unsqueeze(1));
    if (scale_by_frequency)
        rows.mul_(inverse_frequencies(places, count, grad.options()).unsqueeze(1));
    if (padding >= 0)
        rows.masked_fill_(at::eq(places, padding).unsqueeze(1), 0);
    return out.index_add_(0, places, rows);
}

Tensor scales_backward(const Tensor& grad, const Tensor& weight, const Tensor& indices, const Tensor&,
                       const Tensor& bag_of, int64_t, int64_t padding) {
    const Tensor places = indices.to(at::kLong);
    const Tensor products = at::mul(grad.index_select(0, bag_of.to(at::kLong)), weight.index_select(0, places)).sum(1);
    return padding >= 0 ? products.masked_fill_(at::eq(places, padding), 0) : products;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_embedding_bag", embedding_bag));
    m.impl(NATIVE("_embedding_bag_forward_only", embedding_bag));
    m.impl("_embedding_bag_backward", at::native::_embedding_bag_backward_symint);
    m.impl(NATIVE("_embedding_bag_dense_backward", dense_backward));
    m.impl(NATIVE("_embedding_bag_per_sample_weights_backward", scales_backward));
}

}  // namespace torch_opencl
