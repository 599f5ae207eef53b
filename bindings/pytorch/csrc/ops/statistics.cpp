// Reductions that consist of others.
#include "native.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::OptionalIntArrayRef;
using at::Scalar;
using at::Tensor;

Tensor nansum(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, std::optional<at::ScalarType> type) {
    const bool may_be_nan = at::isFloatingType(self.scalar_type());
    return at::sum(may_be_nan ? at::where(at::isnan(self), 0, self) : self, dims, keepdim, type);
}
Tensor& nansum_out(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, std::optional<at::ScalarType> type,
                   Tensor& out) {
    const Tensor made = torch_opencl::nansum(self, dims, keepdim, type.value_or(out.scalar_type()));
    at::native::resize_output(out, made.sizes());
    return out.copy_(made);
}

Tensor count_nonzero(const Tensor& self, at::IntArrayRef dims) {
    return at::sum(at::ne(self, 0), dims, false, at::kLong);
}

std::tuple<Tensor&, Tensor&> aminmax_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& least,
                                         Tensor& greatest) {
    check_type(self.scalar_type(), least, greatest);
    const auto dims = dim && self.dim() > 0 ? at::DimVector{*dim} : at::DimVector{};
    at::amin_out(least, self, dims, keepdim);
    at::amax_out(greatest, self, dims, keepdim);
    return {least, greatest};
}

std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dims,
                                    const std::optional<Scalar>& correction, bool keepdim) {
    auto [variance, mean] = at::var_mean(self, dims, correction, keepdim);
    return {variance.sqrt_(), mean};
}

Tensor trace(const Tensor& self) {
    TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
    return at::sum(at::diagonal(self));
}

// The k-th smallest element, from 1. NaN is the greatest.
std::tuple<Tensor, Tensor> ranked(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
    const auto [sorted, places] = at::sort(self, true, dim, false);
    const auto at_rank = [&](const Tensor& all) {
        return keepdim ? all.narrow(dim, k - 1, 1).clone() : all.select(dim, k - 1).clone();
    };
    return {at_rank(sorted), at_rank(places)};
}
std::tuple<Tensor, Tensor> of_one_number(const Tensor& self, int64_t dim) {
    at::maybe_wrap_dim(dim, 1);  // throws where there is no such dimension
    return {self.clone(), at::zeros({}, self.options().dtype(at::kLong))};
}
std::tuple<Tensor&, Tensor&> given(const std::tuple<Tensor, Tensor>& made, Tensor& values, Tensor& indices) {
    at::native::resize_output(values, std::get<0>(made).sizes());
    at::native::resize_output(indices, std::get<1>(made).sizes());
    values.copy_(std::get<0>(made));
    indices.copy_(std::get<1>(made));
    return {values, indices};
}
std::tuple<Tensor&, Tensor&> kthvalue_out(const Tensor& self, int64_t k, int64_t wrapped, bool keepdim, Tensor& values,
                                          Tensor& indices) {
    check_type(self.scalar_type(), values);
    check_type(at::kLong, indices);
    TORCH_CHECK_NOT_IMPLEMENTED(self.numel() > 0, "opencl: kthvalue of ", self.sizes());
    if (self.dim() == 0)
        return given(of_one_number(self, wrapped), values, indices);
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    TORCH_CHECK(k >= 1 && k <= self.size(dim), "kthvalue(): selected number k out of range for dimension ", dim);
    return given(ranked(self, k, dim, keepdim), values, indices);
}

// The lower one of two in the middle; NaN where there is one, which is sorted last.
std::tuple<Tensor&, Tensor&> median_dim_out(const Tensor& self, int64_t wrapped, bool keepdim, Tensor& values,
                                            Tensor& indices) {
    check_type(self.scalar_type(), values);
    check_type(at::kLong, indices);
    TORCH_CHECK_NOT_IMPLEMENTED(self.numel() > 0, "opencl: median of ", self.sizes());
    if (self.dim() == 0)
        return given(of_one_number(self, wrapped), values, indices);
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim()), n = self.size(dim);
    auto middle = ranked(self, (n + 1) / 2, dim, keepdim);
    if (at::isFloatingType(self.scalar_type())) {
        const auto last = ranked(self, n, dim, keepdim);
        const Tensor has_nan = at::isnan(std::get<0>(last));
        // Of the places of NaN, the first.
        const Tensor first = at::argmax(at::isnan(self).to(at::kByte), dim, keepdim);
        middle = {at::where(has_nan, std::get<0>(last), std::get<0>(middle)),
                  at::where(has_nan, first, std::get<1>(middle))};
    }
    return given(middle, values, indices);
}
Tensor median(const Tensor& self) {
    TORCH_CHECK_NOT_IMPLEMENTED(self.numel() > 0, "opencl: median of no elements");
    return std::get<0>(at::median(self.reshape({-1}), 0, false));
}

// NaN is sorted last: the elements before it are counted.
std::tuple<Tensor&, Tensor&> nanmedian_dim_out(const Tensor& self, int64_t wrapped, bool keepdim, Tensor& values,
                                               Tensor& indices) {
    if (!at::isFloatingType(self.scalar_type()) || self.dim() == 0)
        return median_dim_out(self, wrapped, keepdim, values, indices);
    check_type(self.scalar_type(), values);
    check_type(at::kLong, indices);
    TORCH_CHECK_NOT_IMPLEMENTED(self.numel() > 0, "opencl: nanmedian of ", self.sizes());
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    const auto [sorted, places] = at::sort(self, true, dim, false);
    const Tensor numbers = at::eq(self, self).sum(dim, true, at::kLong);
    const Tensor middle = numbers.sub(1).clamp_min_(0).floor_divide_(2);
    const auto at_middle = [&](const Tensor& all) {
        const Tensor each = all.gather(dim, middle);
        return keepdim ? each : each.squeeze(dim);
    };
    return given({at_middle(sorted), at_middle(places)}, values, indices);
}
Tensor nanmedian(const Tensor& self) {
    TORCH_CHECK_NOT_IMPLEMENTED(self.numel() > 0, "opencl: nanmedian of no elements");
    return std::get<0>(at::nanmedian(self.reshape({-1}), 0, false));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("nansum", torch_opencl::nansum));
    m.impl(NATIVE("nansum.out", nansum_out));
    m.impl(NATIVE("count_nonzero.dim_IntList", torch_opencl::count_nonzero));
    m.impl(NATIVE("aminmax.out", aminmax_out));
    m.impl(NATIVE("std_mean.correction", torch_opencl::std_mean));
    m.impl(NATIVE("trace", torch_opencl::trace));
    m.impl(NATIVE("kthvalue.values", kthvalue_out));
    m.impl(NATIVE("median", torch_opencl::median));
    m.impl(NATIVE("median.dim_values", median_dim_out));
    m.impl(NATIVE("nanmedian", torch_opencl::nanmedian));
    m.impl(NATIVE("nanmedian.dim_values", nanmedian_dim_out));
}

}  // namespace torch_opencl
