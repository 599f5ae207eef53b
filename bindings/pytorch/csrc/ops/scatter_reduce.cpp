// Scatter and index_reduce that combine the elements of a place.
#include "index.h"
#include "native.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

Action action_of(c10::string_view reduce) {
    if (reduce == "sum" || reduce == "add" || reduce == "mean")
        return Action::add;
    if (reduce == "prod" || reduce == "multiply")
        return Action::multiply;
    TORCH_CHECK(reduce == "amax" || reduce == "amin",
                "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
    return reduce == "amax" ? Action::greatest : Action::least;
}
// What a place begins with when its own element is not included.
Tensor start_of(Action action, const Tensor& like) {
    if (action == Action::add || action == Action::multiply)
        return at::full({}, action == Action::add ? 0 : 1, like.options());
    const bool is_greatest = action == Action::greatest;
    if (at::isFloatingType(like.scalar_type()))
        return at::full({}, is_greatest ? -INFINITY : INFINITY, like.options());
    const int bits = like.scalar_type() == at::kBool ? 1 : 8 * static_cast<int>(like.element_size());
    const bool is_signed = c10::isSignedType(like.scalar_type()) && like.scalar_type() != at::kBool;
    const auto highest = static_cast<int64_t>(UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0)));
    return at::full({}, is_greatest ? (is_signed ? -highest - 1 : 0) : highest, like.options());
}
template <typename Count>
void divide_by_counts(Tensor& out, bool include_self, const Count& count) {
    const auto type = at::isFloatingType(out.scalar_type()) ? compute_type(out.scalar_type()) : at::kLong;
    Tensor counts = include_self ? at::ones(out.sizes(), out.options().dtype(type))
                                 : at::zeros(out.sizes(), out.options().dtype(type));
    count(counts);
    counts.clamp_min_(1);
    if (at::isFloatingType(type))
        out.div_(counts);
    else
        out.div_(counts, "floor");
}
Tensor& scatter_reduce_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                           c10::string_view reduce, bool include_self, Tensor& out) {
    const Action action = action_of(reduce);
    if (!include_self)
        scatter(self, dim, index, {}, start_of(action, self).item(), Action::fill, out);
    scatter(include_self ? self : out, dim, index, source, 1, action, out);
    if (reduce == "mean" && index.numel() > 0)
        divide_by_counts(out, include_self, [&](Tensor& counts) {
            counts.scatter_add_(dim, index, at::ones(index.sizes(), counts.options()));
        });
    return out;
}
Tensor& scatter_reduced_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                            c10::string_view reduce, Tensor& out) {
    return scatter(self, dim, index, source, 1, action_of(reduce), out);
}
Tensor& scatter_value_reduced_out(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                                  c10::string_view reduce, Tensor& out) {
    return scatter(self, dim, index, at::full(index.sizes(), value, self.options()), 1, action_of(reduce), out);
}
Tensor& index_reduce_out(const Tensor& self, int64_t wrapped, const Tensor& index, const Tensor& source,
                         c10::string_view reduce, bool include_self, Tensor& out) {
    check_type(self.scalar_type(), source, out);
    const Action action = action_of(reduce);
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    if (!out.is_same(self)) {
        at::native::resize_output(out, self.sizes());
        out.copy_(self);
    }
    if (index.numel() == 0)
        return out;
    if (!include_self)
        put_rows(at_least_1d(out), dim, index, {}, Action::fill, start_of(action, self).item());
    put_rows(at_least_1d(out), dim, index, at_least_1d(source), action, 1);
    if (reduce == "mean")
        divide_by_counts(out, include_self, [&](Tensor& counts) {
            counts.index_add_(dim, index, at::ones_like(source, counts.options()));
        });
    return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("scatter.reduce_out", scatter_reduced_out));
    m.impl(NATIVE("scatter.value_reduce_out", scatter_value_reduced_out));
    m.impl(NATIVE("scatter_reduce.two_out", scatter_reduce_out));
    m.impl(NATIVE("index_reduce.out", index_reduce_out));
}

}  // namespace torch_opencl
