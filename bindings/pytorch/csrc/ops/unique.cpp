// Runs of equal elements: unique, unique_consecutive, mode. NaN differs from everything, as on the CPU.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using Unique = std::tuple<Tensor, Tensor, Tensor>;

enum class Wanted : bool { no, yes };
struct Extras {
    Wanted inverse, counts;
};

// The first element of each run, the number of each element's run and the length of each run, of rows [n, columns].
struct Runs {
    Tensor begins, numbers, lengths;
};
Runs runs_of(const Tensor& rows) {
    const int64_t n = rows.size(0);
    const Tensor differs = at::ne(rows.narrow(0, 1, n - 1), rows.narrow(0, 0, n - 1)).any(1);
    const Tensor is_begin = at::cat({at::ones({1}, differs.options()), differs});
    const Tensor begins = at::nonzero(is_begin).squeeze(1);
    const Tensor ends = at::cat({begins.narrow(0, 1, begins.size(0) - 1), at::full({1}, n, begins.options())});
    return {begins, at::cumsum(is_begin, 0, at::kLong).sub_(1), ends.sub(begins)};
}

// `order` is undefined where the rows have their own order. The values are rows.
Unique unique_rows(const Tensor& rows, const Tensor& order, Extras extras) {
    const Tensor none = at::empty({0}, rows.options().dtype(at::kLong));
    const Runs runs = runs_of(rows);
    Tensor inverse = none;
    if (extras.inverse == Wanted::yes)
        inverse = order.defined() ? at::empty_like(runs.numbers).scatter_(0, order, runs.numbers) : runs.numbers;
    return {rows.index_select(0, runs.begins), inverse, extras.counts == Wanted::yes ? runs.lengths : none};
}

Extras extras_of(bool inverse, bool counts) {
    return {inverse ? Wanted::yes : Wanted::no, counts ? Wanted::yes : Wanted::no};
}
void check_any(const Tensor& self) {
    TORCH_CHECK_NOT_IMPLEMENTED(self.numel() > 0, "opencl: unique of ", self.sizes());
}

Unique unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
    check_any(self);
    const auto [sorted, order] = at::sort(self.reshape({-1}), true, 0, false);
    auto [values, inverse, counts] = unique_rows(sorted.unsqueeze(1), order, extras_of(return_inverse, return_counts));
    return {values.squeeze(1), return_inverse ? inverse.view(self.sizes()) : inverse, counts};
}
std::tuple<Tensor, Tensor> unique(const Tensor& self, bool sorted, bool return_inverse) {
    const auto [values, inverse, counts] = unique2(self, sorted, return_inverse, false);
    return {values, inverse};
}

// A stable merge sort of rows (as of elements, in sort.cpp) that moves their places.
const char* const merge_rows = R"(
inline int is_before(global const X_T* in, long a, long b, long columns) {
  for (long c = 0; c < columns; ++c) {
    T x = LOADX(in, a * columns + c), y = LOADX(in, b * columns + c);
    if (x < y) return 1;
    if (x > y) return 0;
  }
  return 0;
}
kernel void merge_rows(global const X_T* in, global const long* order, global long* next, long n, long columns, long width) {
  long i = get_global_id(0), run = i / width, is_right = run & 1, row = order[i];
  long other = (is_right ? run - 1 : run + 1) * width, low = min(other, n), high = min(other + width, n), begin = low;
  while (low < high) {
    long middle = (low + high) / 2, there = order[middle];
    if (is_right ? !is_before(in, row, there, columns) : is_before(in, there, row, columns)) low = middle + 1; else high = middle;
  }
  next[(run & ~1L) * width + i % width + low - begin] = row;
}
)";
Tensor order_of_rows(const Tensor& rows) {
    const int64_t n = rows.size(0);
    Tensor order = at::arange(n, rows.options().dtype(at::kLong)), next = at::empty_like(order);
    const Device& device = opencl_device(rows);
    const auto type = rows.scalar_type();
    check_supported(type, device.index, "unique_dim");
    Kernel& kernel = kernel_of(device, std::string("merge rows ") + short_name(type), "merge_rows", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + merge_rows;
    });
    for (int64_t width = 1; width < n; width *= 2) {
        Launch(device, kernel)
            .read(rows)
            .read(order)
            .written(next)
            .value(n)
            .value(rows.size(1))
            .value(width)
            .run({static_cast<size_t>(n), 1, 1});
        std::swap(order, next);
    }
    return order;
}

// The parts of `self` along a dimension as rows, and back.
template <typename Function>
Unique of_parts(const Tensor& self, int64_t wrapped, const Function& function) {
    check_any(self);
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    const Tensor moved = self.movedim(dim, 0);
    auto [values, inverse, counts] = function(moved.reshape({moved.size(0), -1}).contiguous());
    at::DimVector sizes(moved.sizes());
    sizes[0] = values.size(0);
    return {values.view(sizes).movedim(0, dim), inverse, counts};
}
Unique unique_dim(const Tensor& self, int64_t dim, bool, bool return_inverse, bool return_counts) {
    return of_parts(self, dim, [&](const Tensor& rows) {
        const Tensor order = order_of_rows(rows);
        return unique_rows(rows.index_select(0, order), order, extras_of(return_inverse, return_counts));
    });
}
Unique unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse, bool return_counts) {
    return of_parts(
        self, dim, [&](const Tensor& rows) { return unique_rows(rows, {}, extras_of(return_inverse, return_counts)); });
}
Unique unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
    if (dim && !(*dim == 0 && self.dim() == 1))
        return torch_opencl::unique_dim_consecutive(self, *dim, return_inverse, return_counts);
    check_any(self);
    auto [values, inverse, counts] = unique_rows(self.reshape({-1, 1}), {}, extras_of(return_inverse, return_counts));
    return {values.squeeze(1), return_inverse ? inverse.view(self.sizes()) : inverse, counts};
}

// The longest run of a sorted row, the first of equally long ones; its last element.
const char* const longest_run = R"(
kernel void longest_run(global const X_T* sorted, global const long* order, global long* places, long n) {
  long row = get_global_id(0), base = row * n, best = 0, most = 0, length = 0;
  for (long i = 0; i < n; ++i) {
    ++length;
    if (i + 1 < n && LOADX(sorted, base + i + 1) == LOADX(sorted, base + i)) continue;
    if (length > most) { best = i; most = length; }
    length = 0;
  }
  places[row] = order[base + best];
}
)";
std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t wrapped, bool keepdim) {
    TORCH_CHECK_NOT_IMPLEMENTED(self.numel() > 0, "opencl: mode of ", self.sizes());
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    if (self.dim() == 0)
        return {self.clone(), at::zeros({}, self.options().dtype(at::kLong))};
    const Device& device = opencl_device(self);
    const auto type = self.scalar_type();
    check_supported(type, device.index, "mode");
    const Tensor lines = self.movedim(dim, -1).contiguous();
    const auto [sorted, order] = at::sort(lines, true, -1, false);
    at::DimVector sizes(lines.sizes());
    sizes.back() = 1;
    Tensor places = at::empty(sizes, order.options());
    Kernel& kernel = kernel_of(device, std::string("mode ") + short_name(type), "longest_run", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + longest_run;
    });
    Launch(device, kernel)
        .read(sorted)
        .read(order)
        .written(places)
        .value(lines.size(-1))
        .run({static_cast<size_t>(places.numel()), 1, 1});
    const auto given = [&](const Tensor& each) {
        return keepdim ? each.movedim(-1, dim).contiguous() : each.squeeze(-1);
    };
    return {given(lines.gather(-1, places)), given(places)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_unique", torch_opencl::unique));
    m.impl(NATIVE("_unique2", unique2));
    m.impl(NATIVE("unique_dim", torch_opencl::unique_dim));
    m.impl(NATIVE("unique_dim_consecutive", torch_opencl::unique_dim_consecutive));
    m.impl(NATIVE("unique_consecutive", torch_opencl::unique_consecutive));
    m.impl(NATIVE("mode", torch_opencl::mode));
}

}  // namespace torch_opencl
