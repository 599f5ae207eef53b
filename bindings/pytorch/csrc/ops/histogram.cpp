// Counts of elements: histc and bincount.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <cmath>
#include <limits>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

// How often each place occurs in `places`, which are int64; others than 0 to bins - 1 are not counted. Sums of integers do not depend on the
// order of atomic additions.
Tensor counts_of(const Tensor& places, int64_t bins) {
    TORCH_CHECK_NOT_IMPLEMENTED(places.numel() < std::numeric_limits<int32_t>::max(), "opencl: counts of ",
                                places.numel(), " elements");
    const Tensor counts = at::zeros({bins}, places.options().dtype(at::kInt));
    const Device& device = opencl_device(places);
    Kernel& kernel = kernel_of(device, "counts", "count", [] {
        return std::string("kernel void count(global const long* places, volatile global int* counts, long bins) {\n"
                           "  long at = places[get_global_id(0)];\n"
                           "  if (at >= 0 && at < bins) atomic_inc(counts + at);\n}\n");
    });
    Launch(device, kernel).read(places).written(counts).value(bins).run({static_cast<size_t>(places.numel()), 1, 1});
    return counts;
}

// The bin of each element in [low, high], the greatest belongs to the last bin; -1 for others. Floating-point numbers are placed in their own
// type, as on the CPU, so that the same elements fall on the same side of an edge. The CPU has no histc of integers.
Tensor bins_of(const Tensor& flat, int64_t bins, const Scalar& low, const Scalar& high) {
    const bool is_real = at::isFloatingType(flat.scalar_type());
    Tensor places = at::empty({flat.numel()}, flat.options().dtype(at::kLong));
    auto iter = at::TensorIteratorConfig().add_output(places).add_const_input(flat).check_all_same_dtype(false).build();
    const Scalar scalars[] = {low, high, is_real ? Scalar(static_cast<double>(bins)) : Scalar(bins)};
    pointwise(iter,
              "!(a >= s0 && a <= s1) ? (T)-1 : a == s1 ? s2 - 1 : min((T)((a - s0) * s2 / (s1 - s0)), (T)(s2 - 1))",
              is_real ? compute_type(flat.scalar_type()) : at::kLong, scalars);
    return places;
}

template <typename Number>
Tensor counted(const Tensor& flat, int64_t bins, Number low, Number high) {
    if (low == high && flat.numel() > 0) {
        low = flat.min().item().to<Number>();
        high = flat.max().item().to<Number>();
    }
    if (low == high) {
        low -= 1;
        high += 1;
    }
    TORCH_CHECK(std::isfinite(static_cast<double>(low)) && std::isfinite(static_cast<double>(high)),
                "histc: range of [", low, ", ", high, "] is not finite");
    TORCH_CHECK(low < high, "histc: max must be larger than min");
    return counts_of(bins_of(flat, bins, low, high), bins).to(flat.scalar_type());
}
Tensor histc(const Tensor& self, int64_t bins, const Scalar& least, const Scalar& greatest) {
    TORCH_CHECK(bins > 0, "histc: bins must be > 0, but got ", bins);
    TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() != at::kBool, "opencl: histc of bool");
    const Tensor flat = self.reshape({-1});
    if (at::isFloatingType(self.scalar_type()))
        return counted(flat, bins, least.toDouble(), greatest.toDouble());
    return counted(flat, bins, least.toLong(), greatest.toLong());
}
Tensor& histc_out(const Tensor& self, int64_t bins, const Scalar& least, const Scalar& greatest, Tensor& out) {
    check_type(self.scalar_type(), out);
    const Tensor made = torch_opencl::histc(self, bins, least, greatest);
    at::native::resize_output(out, made.sizes());
    return out.copy_(made);
}

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
    TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
    TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 1 && self.numel() > 0 && at::isIntegralType(self.scalar_type(), false),
                                "opencl: bincount of ", self.sizes());
    const bool has_weights = weights && weights->defined();
    TORCH_CHECK(!has_weights || weights->sizes() == self.sizes(),
                "weights should be 1-d and have the same length as input");
    TORCH_CHECK(self.min().item().toLong() >= 0, "bincount only supports 1-d non-negative integral inputs.");
    const int64_t bins = std::max(minlength, self.max().item().toLong() + 1);
    const Tensor places = self.to(at::kLong).contiguous();
    if (!has_weights)
        return counts_of(places, bins).to(at::kLong);
    const auto type = weights->scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
    return at::zeros({bins}, self.options().dtype(type)).index_add(0, places, weights->to(type));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("histc", torch_opencl::histc));
    m.impl(NATIVE("histc.out", histc_out));
    m.impl(NATIVE("bincount", torch_opencl::bincount));
}

}  // namespace torch_opencl
