// Operators that reduce.
#include "native.h"
#include "pointwise.h"
#include "reduce.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::OptionalIntArrayRef;
using at::Scalar;
using at::Tensor;

constexpr Reduction sum_of{"sum", "0", "x", "acc + v", "acc"};
constexpr Reduction mean_of{"mean", "0", "x", "acc + v", "acc / (A)n"};
constexpr Reduction product_of{"prod", "1", "x", "acc * v", "acc"};
constexpr Reduction greatest_of{"amax", "TMIN", "x", "t_nan_max(acc, v)", "acc"};
constexpr Reduction least_of{"amin", "TMAX", "x", "t_nan_min(acc, v)", "acc"};
constexpr Reduction any_of{"any", "0", "x != 0", "acc != 0 || v != 0", "acc"};
constexpr Reduction all_of{"all", "1", "x != 0", "acc != 0 && v != 0", "acc"};

at::DimVector kept_sizes(const Tensor& self, OptionalIntArrayRef dims, bool keepdim) {
    const auto mask = at::native::make_dim_mask(dims, self.dim());
    return at::native::shape_from_dim_mask(self, mask, keepdim);
}

// Sums of complex numbers are those of their parts.
Tensor& of_parts(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, Tensor& out, bool is_mean) {
    TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == out.scalar_type() && self.dim() > 0,
                                "opencl: no sum of these complex numbers");
    at::native::resize_output(out, kept_sizes(self, dims, keepdim));
    at::DimVector which;
    for (int64_t d = 0; d < self.dim(); ++d)
        which.push_back(d);
    if (dims && !dims->empty())
        which = at::DimVector(dims->begin(), dims->end());
    for (int64_t& d : which)
        d = at::maybe_wrap_dim(d, self.dim());
    const Tensor parts = at::view_as_real(self.resolve_conj());
    const Tensor total = is_mean ? at::mean(parts, which, keepdim) : at::sum(parts, which, keepdim);
    return out.copy_(at::view_as_complex(total));
}

Tensor& sum_out(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, std::optional<at::ScalarType>,
                Tensor& out) {
    if (self.is_complex() || out.is_complex())
        return of_parts(self, dims, keepdim, out, false);
    at::native::resize_output(out, kept_sizes(self, dims, keepdim));
    if (self.numel() == 0)
        return out.zero_();
    reduce(self, dims, out, sum_of, out.scalar_type());
    return out;
}
Tensor& mean_out(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, std::optional<at::ScalarType>,
                 Tensor& out) {
    if (self.is_complex() || out.is_complex())
        return of_parts(self, dims, keepdim, out, true);
    at::native::resize_output(out, kept_sizes(self, dims, keepdim));
    if (self.numel() == 0)
        return out.fill_(std::numeric_limits<double>::quiet_NaN());
    reduce(self, dims, out, mean_of, out.scalar_type());
    return out;
}
Tensor& prod_out(const Tensor& self, int64_t dim, bool keepdim, std::optional<at::ScalarType>, Tensor& out) {
    at::native::resize_output(out, kept_sizes(self, dim, keepdim));
    if (self.numel() == 0)
        return out.fill_(1);
    reduce(self, dim, out, product_of, out.scalar_type());
    return out;
}
Tensor prod(const Tensor& self, std::optional<at::ScalarType> dtype) {
    const auto type = dtype.value_or(at::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type());
    Tensor out = at::empty({}, self.options().dtype(type));
    if (self.numel() == 0)
        return out.fill_(1);
    reduce(self, std::nullopt, out, product_of, type);
    return out;
}
Tensor& amax_out(const Tensor& self, at::IntArrayRef dims, bool keepdim, Tensor& out) {
    at::native::resize_output(out, kept_sizes(self, dims, keepdim));
    reduce(self, dims, out, greatest_of, self.scalar_type());
    return out;
}
Tensor& amin_out(const Tensor& self, at::IntArrayRef dims, bool keepdim, Tensor& out) {
    at::native::resize_output(out, kept_sizes(self, dims, keepdim));
    reduce(self, dims, out, least_of, self.scalar_type());
    return out;
}
Tensor reduce_all(const Tensor& self, const Reduction& reduction) {
    TORCH_CHECK(self.numel() > 0, reduction.name,
                "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                "'dim' argument.");
    Tensor out = at::empty({}, self.options());
    reduce(self, std::nullopt, out, reduction, self.scalar_type());
    return out;
}
Tensor max_all(const Tensor& self) { return reduce_all(self, greatest_of); }
Tensor min_all(const Tensor& self) { return reduce_all(self, least_of); }

Tensor& truth(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, Tensor& out, const Reduction& reduction,
              bool none) {
    at::native::resize_output(out, kept_sizes(self, dims, keepdim));
    if (self.numel() == 0)
        return out.fill_(none);
    reduce(self, dims, out, reduction, self.scalar_type());
    return out;
}
Tensor& any_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& out) {
    return truth(self, dim, keepdim, out, any_of, false);
}
Tensor& all_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& out) {
    return truth(self, dim, keepdim, out, all_of, true);
}
Tensor& any_all_out(const Tensor& self, Tensor& out) { return truth(self, std::nullopt, false, out, any_of, false); }
Tensor& all_all_out(const Tensor& self, Tensor& out) { return truth(self, std::nullopt, false, out, all_of, true); }
Tensor& any_dims_out(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, Tensor& out) {
    return truth(self, dims, keepdim, out, any_of, false);
}
Tensor& all_dims_out(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, Tensor& out) {
    return truth(self, dims, keepdim, out, all_of, true);
}

Tensor& vector_norm_out(const Tensor& self, const Scalar& order, OptionalIntArrayRef dims, bool keepdim,
                        std::optional<at::ScalarType>, Tensor& out) {
    at::native::resize_output(out, kept_sizes(self, dims, keepdim));
    const double p = order.toDouble();
    const auto type = out.scalar_type();
    if (self.numel() == 0)
        return out.fill_(p < 0 ? INFINITY : 0);
    if (p == 2)
        reduce(self, dims, out, {"norm2", "0", "x * x", "acc + v", "sqrt(acc)"}, type);
    else if (p == 1)
        reduce(self, dims, out, {"norm1", "0", "fabs(x)", "acc + v", "acc"}, type);
    else if (p == 0)
        reduce(self, dims, out, {"norm0", "0", "x != 0 ? (T)1 : (T)0", "acc + v", "acc"}, type);
    else if (p == INFINITY)
        reduce(self, dims, out, {"norm inf", "0", "fabs(x)", "t_nan_max(acc, v)", "acc"}, type);
    else if (p == -INFINITY)
        reduce(self, dims, out, {"norm -inf", "INFINITY", "fabs(x)", "t_nan_min(acc, v)", "acc"}, type);
    else
        reduce(self, dims, out, {"norm p", "0", "pow(fabs(x), s0)", "acc + v", "pow(acc, 1 / s0)"}, type, order);
    return out;
}

// The variance in two passes, which is exact enough for any mean.
Tensor variance(const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction, bool keepdim,
                Tensor* mean_kept) {
    *mean_kept = at::mean(self, dims, true);
    const Tensor squares = at::square(at::sub(self, *mean_kept));
    Tensor sums = at::sum(squares, dims, keepdim);
    const double count =
        static_cast<double>(self.numel()) / static_cast<double>(std::max<int64_t>(1, mean_kept->numel()));
    const double divisor = std::max(0.0, count - (correction ? correction->toDouble() : 1.0));
    return sums.div_(divisor);
}
Tensor var(const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction, bool keepdim) {
    Tensor mean;
    return variance(self, dims, correction, keepdim, &mean);
}
Tensor stddev(const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>& correction, bool keepdim) {
    return torch_opencl::var(self, dims, correction, keepdim).sqrt_();
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dims,
                                    const std::optional<Scalar>& correction, bool keepdim) {
    Tensor mean;
    Tensor result = variance(self, dims, correction, keepdim, &mean);
    return {result, mean.reshape(result.sizes())};
}

// argmax, argmin, max and min with indices: one work-item per result; the first of equal values, and NaN before all.
void extreme(const Tensor& input, int64_t dim, const char* better, Tensor* values, const Tensor& indices) {
    const Tensor self = input.contiguous();
    const int64_t size = self.dim() == 0 ? 1 : self.size(dim);
    int64_t inner = 1;
    for (int64_t d = dim + 1; d < self.dim(); ++d)
        inner *= self.size(d);
    const int64_t outer = self.numel() / std::max<int64_t>(1, size * inner);
    const Device& device = opencl_device(self);
    const auto type = self.scalar_type();
    check_supported(type, device.index, "max and min with indices");
    Kernel& kernel = kernel_of(device, std::string("extreme ") + better + short_name(type), "extreme", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "kernel void extreme(global const " +
               storage_name(type) + "* in, global " + storage_name(type) +
               "* values, global long* indices, long size, long inner, int has_values) {\n"
               "  long result = get_global_id(0);\n  long base = result / inner * size * inner + result % inner;\n"
               "  T best = LOADX(in, base);\n  long place = 0;\n  for (long i = 1; i < size; ++i) {\n"
               "    T x = LOADX(in, base + i * inner);\n    if (x " +
               better +
               " best || (x != x && best == best)) { best = x; place = i; }\n  }\n"
               "  if (has_values) STOREX(values, result, best);\n  indices[result] = place;\n}\n";
    });
    Launch(device, kernel)
        .read(self)
        .address(values ? values->data_ptr() : self.const_data_ptr())
        .written(indices)
        .value(size)
        .value(inner)
        .value<int32_t>(values != nullptr)
        .run({static_cast<size_t>(outer * inner), 1, 1});
}

template <typename Work>
void into_contiguous(Tensor& out, const Work& work) {
    if (out.is_contiguous())
        return work(out);
    Tensor dense = at::empty(out.sizes(), out.options());
    work(dense);
    out.copy_(dense);
}

void extreme_dim(const Tensor& self, int64_t dim, bool keepdim, Tensor& values, Tensor& indices, const char* better) {
    check_type(self.scalar_type(), values);
    check_type(at::kLong, indices);
    const int64_t at_dim = at::maybe_wrap_dim(dim, self.dim());
    const auto sizes = kept_sizes(self, at::IntArrayRef{at_dim}, keepdim);
    at::native::resize_output(values, sizes);
    at::native::resize_output(indices, sizes);
    if (values.numel() == 0)
        return;
    into_contiguous(
        values, [&](Tensor& v) { into_contiguous(indices, [&](Tensor& i) { extreme(self, at_dim, better, &v, i); }); });
}
std::tuple<Tensor&, Tensor&> max_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& values,
                                         Tensor& indices) {
    extreme_dim(self, dim, keepdim, values, indices, ">");
    return {values, indices};
}
std::tuple<Tensor&, Tensor&> min_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& values,
                                         Tensor& indices) {
    extreme_dim(self, dim, keepdim, values, indices, "<");
    return {values, indices};
}
Tensor& arg_extreme(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& out, const char* better) {
    check_type(at::kLong, out);
    const Tensor input = dim ? self : self.reshape({-1});
    const int64_t at_dim = dim ? at::maybe_wrap_dim(*dim, self.dim()) : 0;
    if (dim)
        at::native::resize_output(out, kept_sizes(self, at::IntArrayRef{at_dim}, keepdim));
    if (out.numel() > 0)
        into_contiguous(out, [&](Tensor& indices) { extreme(input, at_dim, better, nullptr, indices); });
    return out;
}
Tensor& argmax_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& out) {
    return arg_extreme(self, dim, keepdim, out, ">");
}
Tensor& argmin_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& out) {
    return arg_extreme(self, dim, keepdim, out, "<");
}

// The older name of the same.
Tensor& norm_out(const Tensor& self, const std::optional<Scalar>& p, at::IntArrayRef dims, bool keep, Tensor& out) {
    return vector_norm_out(self, p.value_or(2), dims, keep, std::nullopt, out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE_COMPLEX("sum.IntList_out", sum_out));
    m.impl(NATIVE_COMPLEX("mean.out", mean_out));
    m.impl(NATIVE("prod", prod));
    m.impl(NATIVE("prod.int_out", prod_out));
    m.impl(NATIVE("amax.out", amax_out));
    m.impl(NATIVE("amin.out", amin_out));
    m.impl(NATIVE("max", max_all));
    m.impl(NATIVE("min", min_all));
    m.impl(NATIVE("any.out", any_out));
    m.impl(NATIVE("all.out", all_out));
    m.impl(NATIVE("any.all_out", any_all_out));
    m.impl(NATIVE("all.all_out", all_all_out));
    m.impl(NATIVE("any.dims_out", any_dims_out));
    m.impl(NATIVE("all.dims_out", all_dims_out));
    m.impl(NATIVE("linalg_vector_norm.out", vector_norm_out));
    m.impl(NATIVE("norm.out", norm_out));
    m.impl(NATIVE("var.correction", var));
    m.impl(NATIVE("std.correction", stddev));
    m.impl(NATIVE("var_mean.correction", var_mean));
    m.impl(NATIVE("max.dim_max", max_dim_out));
    m.impl(NATIVE("min.dim_min", min_dim_out));
    m.impl(NATIVE("argmax.out", argmax_out));
    m.impl(NATIVE("argmin.out", argmin_out));
}

}  // namespace torch_opencl
