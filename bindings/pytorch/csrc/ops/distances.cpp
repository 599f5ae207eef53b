// Distances between rows (cdist, pdist) in any p-norm, and their gradients: one work-item per pair, or per coordinate of a gradient.
// PyTorch itself computes Euclidean distances of many rows by a product of matrices.
#include "native.h"
#include "pointwise.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

// MODE: the norm, with a formula of its own for 0, 1, 2 and infinity.
const char* const distance_body = R"(
kernel void forward(global const X_T* x, global const X_T* y, global X_T* out, long rows, long others, long width, T p) {
  long j = get_global_id(0), i = get_global_id(1), batch = get_global_id(2);
  long at_x = (batch * rows + i) * width, at_y = (batch * others + j) * width;
  T acc = 0;
  for (long k = 0; k < width; ++k) {
    T d = fabs(LOADX(x, at_x + k) - LOADX(y, at_y + k));
#if MODE == 0
    acc += d != 0;
#elif MODE == 1
    acc += d;
#elif MODE == 2
    acc += d * d;
#elif MODE == 3
    acc = d > acc || d != d ? d : acc;
#else
    acc += pow(d, p);
#endif
  }
#if MODE == 2
  acc = sqrt(acc);
#elif MODE == 4
  acc = pow(acc, 1 / p);
#endif
  STOREX(out, (batch * rows + i) * others + j, acc);
}
// The gradient of x. It is 0 where two rows are equal.
kernel void backward(global const X_T* grad, global const X_T* x, global const X_T* y, global const X_T* distances, global X_T* out, long rows,
                     long others, long width, T p) {
  long k = get_global_id(0), i = get_global_id(1), batch = get_global_id(2), row = batch * rows + i;
  T a = LOADX(x, row * width + k), acc = 0;
  for (long j = 0; j < others; ++j) {
    T d = a - LOADX(y, (batch * others + j) * width + k), size = fabs(d), sign = (T)(d > 0) - (T)(d < 0);
    T distance = LOADX(distances, row * others + j), g = LOADX(grad, row * others + j);
#if MODE == 1
    acc += g * sign;
#elif MODE == 2
    acc += distance == 0 ? (T)0 : g * d / distance;
#elif MODE == 3
    acc += size == distance ? g * sign : (T)0;
#else
    acc += distance == 0 || (d == 0 && p < 1) ? (T)0 : g * sign * pow(size, p - 1) / pow(distance, p - 1);
#endif
  }
  STOREX(out, row * width + k, acc);
}
)";

int mode_of(double p) { return p == 0 ? 0 : p == 1 ? 1 : p == 2 ? 2 : std::isinf(p) ? 3 : 4; }

Kernel& kernel_for(const Device& device, c10::ScalarType type, double p, const char* name) {
    check_supported(type, device.index, "distances");
    const std::string mode = std::to_string(mode_of(p));
    return kernel_of(device, "distances " + mode + short_name(type) + name, name, [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
               "\n#define MODE " + mode + distance_body;
    });
}

// Rows of matrices [batch, rows, width], with the same batch.
struct Rows {
    Tensor x, y;
    at::DimVector batch_sizes;
    int64_t batch = 1;
    int64_t rows() const { return x.size(-2); }
    int64_t others() const { return y.size(-2); }
    int64_t width() const { return x.size(-1); }
    at::DimVector sizes(int64_t a, int64_t b) const {
        at::DimVector all(batch_sizes);
        all.push_back(a);
        all.push_back(b);
        return all;
    }
};
Rows rows_of(const Tensor& x, const Tensor& y) {
    TORCH_CHECK(at::isFloatingType(x.scalar_type()),
                "cdist only supports floating-point dtypes, X1 got: ", x.scalar_type());
    TORCH_CHECK(x.dim() >= 2 && y.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x.dim(),
                "D, X2 got: ", y.dim(), "D");
    TORCH_CHECK(x.size(-1) == y.size(-1), "X1 and X2 must have the same number of columns. X1: ", x.size(-1),
                " X2: ", y.size(-1));
    check_type(x.scalar_type(), y);
    check_same_device(x.device(), y);
    // As on the CPU. In half precision the sums of the gradient would need another type than the results.
    TORCH_CHECK_NOT_IMPLEMENTED(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble,
                                "opencl: cdist has no kernel for ", x.scalar_type());
    Rows rows;
    const auto batch = at::infer_size(x.sizes().slice(0, static_cast<size_t>(x.dim() - 2)),
                                      y.sizes().slice(0, static_cast<size_t>(y.dim() - 2)));
    rows.batch_sizes.assign(batch.begin(), batch.end());
    for (const int64_t size : batch)
        rows.batch *= size;
    const auto expanded = [&](const Tensor& each) {
        return each.expand(rows.sizes(each.size(-2), each.size(-1))).contiguous();
    };
    rows.x = expanded(x);
    rows.y = expanded(y);
    return rows;
}

Tensor cdist_forward(const Tensor& x, const Tensor& y, double p, std::optional<int64_t> euclidean) {
    TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
    const int64_t mode = euclidean.value_or(0);
    TORCH_CHECK(mode >= 0 && mode <= 2, "possible modes: 0, 1, 2, but was: ", mode);
    const Rows rows = rows_of(x, y);
    const bool is_product = mode == 1 || (mode == 0 && (rows.rows() > 25 || rows.others() > 25));
    Tensor out = at::empty(rows.sizes(rows.rows(), rows.others()), x.options());
    if (out.numel() == 0)
        return out;
    if (rows.width() == 0)
        return out.zero_();
    if (p == 2 && is_product)
        return at::_euclidean_dist(rows.x, rows.y);
    const Device& device = opencl_device(x);
    Launch(device, kernel_for(device, x.scalar_type(), p, "forward"))
        .read(rows.x)
        .read(rows.y)
        .written(out)
        .value(rows.rows())
        .value(rows.others())
        .value(rows.width())
        .scalar(scalar_bytes(p, x.scalar_type()))
        .run({static_cast<size_t>(rows.others()), static_cast<size_t>(rows.rows()), static_cast<size_t>(rows.batch)});
    return out;
}

Tensor cdist_backward(const Tensor& grad, const Tensor& x, const Tensor& y, double p, const Tensor& distances) {
    const Rows rows = rows_of(x, y);
    check_type(x.scalar_type(), grad, distances);
    Tensor out = at::empty(rows.sizes(rows.rows(), rows.width()), x.options());
    if (out.numel() == 0)
        return out;
    if (p == 0 || rows.others() == 0)
        return out.zero_();
    const auto pairs = rows.sizes(rows.rows(), rows.others());
    const Device& device = opencl_device(x);
    Launch(device, kernel_for(device, x.scalar_type(), p, "backward"))
        .read(grad.expand(pairs).contiguous())
        .read(rows.x)
        .read(rows.y)
        .read(distances.expand(pairs).contiguous())
        .written(out)
        .value(rows.rows())
        .value(rows.others())
        .value(rows.width())
        .scalar(scalar_bytes(p, x.scalar_type()))
        .run({static_cast<size_t>(rows.width()), static_cast<size_t>(rows.rows()), static_cast<size_t>(rows.batch)});
    return out;
}

// The pairs of pdist are those above the diagonal of cdist's matrix, row by row.
Tensor places_of_pairs(const Tensor& self) {
    const int64_t n = self.size(0);
    const Tensor pairs = at::triu_indices(n, n, 1, self.options().dtype(at::kLong));
    return pairs.select(0, 0).mul(n).add_(pairs.select(0, 1));
}
Tensor pdist_forward(const Tensor& self, double p) {
    if (self.size(0) <= 1)
        return at::empty({0}, self.options());
    return cdist_forward(self, self, p, 2).view({-1}).index_select(0, places_of_pairs(self));
}
Tensor pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& distances) {
    const int64_t n = self.size(0);
    if (n <= 1 || p == 0)
        return at::zeros_like(self, at::MemoryFormat::Contiguous);
    const Tensor places = places_of_pairs(self);
    const auto both = [&](const Tensor& each) {
        const Tensor above = at::zeros({n * n}, each.options()).index_copy_(0, places, each.contiguous()).view({n, n});
        return above.add(above.t());
    };
    return cdist_backward(both(grad), self, self, p, both(distances));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_cdist_forward", cdist_forward));
    m.impl(NATIVE("_cdist_backward", cdist_backward));
    m.impl(NATIVE("_pdist_forward", pdist_forward));
    m.impl(NATIVE("_pdist_backward", pdist_backward));
}

}  // namespace torch_opencl
