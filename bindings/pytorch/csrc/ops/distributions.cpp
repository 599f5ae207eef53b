// Random numbers that are computed from others, of random.cpp. Results depend on the generator alone, whatever the device.
#include "native.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <algorithm>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using OptionalGenerator = std::optional<at::Generator>;

// As many numbers in [0, 1), in the precision that `self` is computed in.
Tensor uniform_for(const Tensor& self, const OptionalGenerator& generator) {
    const auto type = self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return at::empty(self.sizes(), self.options().dtype(type)).uniform_(0, 1, generator);
}

Tensor& log_normal_(Tensor& self, double mean, double std, OptionalGenerator generator) {
    check_floating(self.scalar_type(), "log_normal_");
    TORCH_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
    return self.normal_(mean, std, std::move(generator)).exp_();
}
Tensor& geometric_(Tensor& self, double p, OptionalGenerator generator) {
    TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
    return self.copy_(uniform_for(self, generator).neg_().log1p_().div_(std::log1p(-p)).ceil_().clamp_min_(1));
}
Tensor& cauchy_(Tensor& self, double median, double sigma, OptionalGenerator generator) {
    check_floating(self.scalar_type(), "cauchy_");
    TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
    // Between the 2^24 numbers that u may be, so that the tangent is never infinite.
    const Tensor angles = uniform_for(self, generator).add_(0x1p-25 - 0.5).mul_(3.14159265358979323846);
    return self.copy_(angles.tan_().mul_(sigma).add_(median));
}

void check_deviations(const Tensor& std) {
    TORCH_CHECK(std.numel() == 0 || at::ge(std, 0).all().item().toBool(), "normal expects all elements of std >= 0.0");
}
Tensor& normal_of_tensors_out(const Tensor& mean, const Tensor& std, OptionalGenerator generator, Tensor& out) {
    check_deviations(std);
    check_floating(out.scalar_type(), "normal");
    at::native::resize_output(out, at::infer_size(mean.sizes(), std.sizes()));
    return out.normal_(0, 1, std::move(generator)).mul_(std).add_(mean);
}
Tensor& normal_of_means_out(const Tensor& mean, double std, OptionalGenerator generator, Tensor& out) {
    check_floating(out.scalar_type(), "normal");
    TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
    at::native::resize_output(out, mean.sizes());
    return out.normal_(0, std, std::move(generator)).add_(mean);
}
Tensor& normal_of_deviations_out(double mean, const Tensor& std, OptionalGenerator generator, Tensor& out) {
    check_deviations(std);
    check_floating(out.scalar_type(), "normal");
    at::native::resize_output(out, std.sizes());
    return out.normal_(0, 1, std::move(generator)).mul_(std).add_(mean);
}
Tensor normal_of_tensors(const Tensor& mean, const Tensor& std, OptionalGenerator generator) {
    Tensor out = at::empty({0}, mean.options().dtype(at::result_type(mean, std)));
    return normal_of_tensors_out(mean, std, std::move(generator), out);
}
Tensor normal_of_means(const Tensor& mean, double std, OptionalGenerator generator) {
    Tensor out = at::empty({0}, mean.options());
    return normal_of_means_out(mean, std, std::move(generator), out);
}
Tensor normal_of_deviations(double mean, const Tensor& std, OptionalGenerator generator) {
    Tensor out = at::empty({0}, std.options());
    return normal_of_deviations_out(mean, std, std::move(generator), out);
}

// The class of a number below the sum of all weights is the count of the running sums that it has reached. A part of the draws at once: they are
// compared with each of the sums.
Tensor draw_with_replacement(const Tensor& weights, int64_t count, OptionalGenerator generator) {
    constexpr int64_t compared_max = 1 << 22;
    const auto type = weights.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const Tensor ends = at::cumsum(weights, -1, type);
    const Tensor total = ends.narrow(-1, ends.size(-1) - 1, 1);
    // A number may be rounded to the sum itself.
    const Tensor last = at::lt(ends, total).sum(at::IntArrayRef{-1}, true);
    at::DimVector sizes(weights.sizes());
    sizes.back() = count;
    const Tensor draws = at::empty(sizes, ends.options()).uniform_(0, 1, std::move(generator)).mul_(total);
    const int64_t part = std::max<int64_t>(1, compared_max / std::max<int64_t>(1, ends.numel()));
    std::vector<Tensor> parts;
    for (int64_t begin = 0; begin < count; begin += part) {
        const Tensor some = draws.narrow(-1, begin, std::min(part, count - begin));
        parts.push_back(at::le(ends.unsqueeze(-2), some.unsqueeze(-1)).sum(at::IntArrayRef{-1}));
    }
    return at::minimum(at::cat(parts, -1), last);
}

// Without replacement each class gets its probability divided by an exponentially distributed number; the greatest quotients are drawn.
Tensor multinomial(const Tensor& weights, int64_t count, bool with_replacement, OptionalGenerator generator) {
    TORCH_CHECK_NOT_IMPLEMENTED(weights.dim() == 1 || weights.dim() == 2, "opencl: multinomial of ", weights.sizes());
    TORCH_CHECK_NOT_IMPLEMENTED(count > 0 && (with_replacement || count <= weights.size(-1)) && weights.numel() > 0,
                                "opencl: multinomial with ", count, " draws of ", weights.sizes());
    check_floating(weights.scalar_type(), "multinomial");
    const Tensor valid = at::logical_and(at::isfinite(weights), at::ge(weights, 0)).all();
    TORCH_CHECK(valid.item().toBool(), "probability tensor contains either `inf`, `nan` or element < 0");
    TORCH_CHECK(at::gt(at::sum(weights, at::IntArrayRef{-1}), 0).all().item().toBool(),
                "invalid multinomial distribution (sum of probabilities <= 0)");
    if (with_replacement && count > 1)
        return draw_with_replacement(weights, count, std::move(generator));
    // In half precision a number may become 0.
    Tensor quotients = at::empty_like(weights, weights.options().dtype(compute_type(weights.scalar_type())));
    quotients.exponential_(1, std::move(generator));
    at::div_out(quotients, weights, quotients);
    return count == 1 ? at::argmax(quotients, -1, true) : std::get<1>(at::topk(quotients, count));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("log_normal_", log_normal_));
    m.impl(NATIVE("geometric_", geometric_));
    m.impl(NATIVE("cauchy_", cauchy_));
    m.impl(NATIVE("normal.Tensor_Tensor", normal_of_tensors));
    m.impl(NATIVE("normal.Tensor_Tensor_out", normal_of_tensors_out));
    m.impl(NATIVE("normal.Tensor_float", normal_of_means));
    m.impl(NATIVE("normal.Tensor_float_out", normal_of_means_out));
    m.impl(NATIVE("normal.float_Tensor", normal_of_deviations));
    m.impl(NATIVE("normal.float_Tensor_out", normal_of_deviations_out));
    m.impl(NATIVE("multinomial", torch_opencl::multinomial));
}

}  // namespace torch_opencl
