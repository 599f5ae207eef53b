// Sorting, the greatest elements, the places of elements that are not 0, and membership.
//
// A sort is a stable merge sort: each pass merges pairs of sorted runs, and each element finds its place by a binary search in the
// other run of the pair. NaN counts as greater than all numbers.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

const char* const merge_body = R"(
#if DESCENDING
#define BEFORE(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#else
#define BEFORE(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#endif
kernel void merge(global const X_T* in, global const long* in_places, global X_T* out, global long* out_places, long n, long width) {
  long i = get_global_id(0), base = get_global_id(1) * n, run = i / width, is_right = run & 1;
  T x = LOADX(in, base + i);
  long other = (is_right ? run - 1 : run + 1) * width, low = min(other, n), high = min(other + width, n), begin = low;
  // Before x come elements of the other run that are before it, and equal ones if that run is the left one.
  while (low < high) {
    long middle = (low + high) / 2;
    T y = LOADX(in, base + middle);
    if (is_right ? !BEFORE(x, y) : BEFORE(y, x)) low = middle + 1; else high = middle;
  }
  long to = base + (run & ~1L) * width + i % width + low - begin;
  STOREX(out, to, x);
  out_places[to] = in_places[base + i];
}
)";

// Sorts the rows of a contiguous matrix; returns values and their places before.
std::pair<Tensor, Tensor> sort_rows(const Tensor& rows, bool descending) {
    const int64_t n = rows.size(-1), count = rows.numel() / std::max<int64_t>(1, n);
    Tensor values = rows, places = at::arange(n, rows.options().dtype(at::kLong)).expand({count, n}).contiguous();
    if (rows.numel() == 0)
        return {values, places};
    Tensor next_values = at::empty_like(rows), next_places = at::empty_like(places);
    const Device& device = opencl_device(rows);
    const auto type = rows.scalar_type();
    check_supported(type, device.index, "sort");
    Kernel& kernel =
        kernel_of(device, std::string(descending ? "sort down " : "sort up ") + short_name(type), "merge", [&] {
            return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
                   "\n#define DESCENDING " + (descending ? "1" : "0") + merge_body;
        });
    for (int64_t width = 1; width < n; width *= 2) {
        Launch(device, kernel)
            .read(values)
            .read(places)
            .written(next_values)
            .written(next_places)
            .value(n)
            .value(width)
            .run({static_cast<size_t>(n), static_cast<size_t>(count), 1});
        // The caller's tensor must not be changed.
        Tensor spare = width == 1 ? at::empty_like(next_values) : values;
        values = std::exchange(next_values, spare);
        std::swap(places, next_places);
    }
    return {values, places};
}

Tensor as_rows(const Tensor& self, int64_t dim) { return self.transpose(dim, -1).contiguous(); }

// Writes the rows to `out`, with the sorted dimension moved back to its position.
void give(const Tensor& rows, at::IntArrayRef moved_sizes, int64_t dim, const Tensor& out) {
    out.copy_(rows.view(moved_sizes).transpose(dim, -1));
}

void check_results(const Tensor& self, const Tensor& values, const Tensor& indices) {
    check_result_type(self.scalar_type(), values);
    check_result_type(at::kLong, indices);
    check_same_device(self.device(), values);
    check_same_device(self.device(), indices);
}

std::tuple<Tensor&, Tensor&> sort_out(const Tensor& self, std::optional<bool>, int64_t wrapped, bool descending,
                                      Tensor& values, Tensor& indices) {
    check_results(self, values, indices);
    at::native::resize_output(values, self.sizes());
    at::native::resize_output(indices, self.sizes());
    if (self.dim() == 0 || self.numel() == 0) {
        values.copy_(self);
        indices.zero_();
        return {values, indices};
    }
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    const Tensor rows = as_rows(self, dim);
    const auto [sorted, places] = sort_rows(rows.view({-1, rows.size(-1)}), descending);
    give(sorted, rows.sizes(), dim, values);
    give(places, rows.sizes(), dim, indices);
    return {values, indices};
}

std::tuple<Tensor&, Tensor&> topk_out(const Tensor& self, int64_t k, int64_t wrapped, bool largest, bool,
                                      Tensor& values, Tensor& indices) {
    check_results(self, values, indices);
    if (self.dim() == 0) {
        at::native::resize_output(values, at::IntArrayRef{});
        at::native::resize_output(indices, at::IntArrayRef{});
        values.copy_(self);
        indices.zero_();
        return {values, indices};
    }
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    at::DimVector sizes(self.sizes());
    sizes[static_cast<size_t>(dim)] = k;
    at::native::resize_output(values, sizes);
    at::native::resize_output(indices, sizes);
    if (values.numel() == 0)
        return {values, indices};
    const Tensor rows = as_rows(self, dim);
    const auto [sorted, places] = sort_rows(rows.view({-1, rows.size(-1)}), largest);
    at::DimVector moved(rows.sizes());
    moved.back() = k;
    values.copy_(sorted.narrow(1, 0, k).reshape(moved).transpose(dim, -1));
    indices.copy_(places.narrow(1, 0, k).reshape(moved).transpose(dim, -1));
    return {values, indices};
}

// The flat places of elements that are not 0. Waits for the device: the result's size depends on the elements.
Tensor flat_nonzero(const Tensor& self) {
    const Tensor flags = at::ne(self.contiguous().view({-1}), 0);
    if (flags.numel() == 0)
        return at::empty({0}, self.options().dtype(at::kLong));
    const Tensor ends = at::cumsum(flags, 0, at::kLong);
    const auto count = ends.select(0, flags.numel() - 1).item().toLong();
    Tensor places = at::empty({count}, self.options().dtype(at::kLong));
    if (count == 0)
        return places;
    const Device& device = opencl_device(self);
    Kernel& kernel = kernel_of(device, "nonzero", "places", [] {
        return std::string(
            "kernel void places(global const uchar* flags, global const long* ends, global long* places) {\n"
            "  long i = get_global_id(0);\n  if (flags[i]) places[ends[i] - 1] = i;\n}\n");
    });
    Launch(device, kernel).read(flags).read(ends).written(places).run({static_cast<size_t>(flags.numel()), 1, 1});
    return places;
}

Tensor nonzero(const Tensor& self) {
    Tensor rest = flat_nonzero(self);
    Tensor out = at::empty({rest.numel(), self.dim()}, rest.options());
    for (int64_t d = self.dim() - 1; d >= 0; --d) {
        out.select(1, d).copy_(at::remainder(rest, self.size(d)));
        rest = at::floor_divide(rest, self.size(d));
    }
    return out;
}
Tensor& nonzero_out(const Tensor& self, Tensor& out) {
    const Tensor made = torch_opencl::nonzero(self);
    at::native::resize_output(out, made.sizes());
    return out.copy_(made);
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
    TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
    check_same_device(self.device(), mask);
    const auto both = at::broadcast_tensors({self, mask});
    return both[0].contiguous().view({-1}).index_select(0, flat_nonzero(both[1]));
}
Tensor& masked_select_out(const Tensor& self, const Tensor& mask, Tensor& out) {
    const Tensor made = torch_opencl::masked_select(self, mask);
    at::native::resize_output(out, made.sizes());
    return out.copy_(made);
}

// Compares each element with each of the others, which are few: the tokens that end a text.
constexpr int64_t members_max = 64;

Tensor& isin_out(const Tensor& elements, const Tensor& members, bool, bool invert, Tensor& out) {
    check_result_type(at::kBool, out);
    TORCH_CHECK_NOT_IMPLEMENTED(members.numel() <= members_max && elements.device() == members.device(),
                                "opencl: isin has no kernel for ", members.numel(), " members");
    const Tensor each = elements.unsqueeze(-1), all = members.reshape({-1});
    return invert ? at::all_out(out, at::ne(each, all), -1) : at::any_out(out, at::eq(each, all), -1);
}

bool equal(const Tensor& a, const Tensor& b) {
    return a.sizes() == b.sizes() && (a.numel() == 0 || at::all(at::eq(a, b)).item().toBool());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("sort.values_stable", sort_out));
    m.impl(NATIVE("topk.values", topk_out));
    m.impl(NATIVE("nonzero", nonzero));
    m.impl(NATIVE("nonzero.out", nonzero_out));
    m.impl(NATIVE("masked_select", masked_select));
    m.impl(NATIVE("masked_select.out", masked_select_out));
    m.impl(NATIVE("isin.Tensor_Tensor_out", isin_out));
    m.impl(NATIVE("equal", equal));
}

}  // namespace torch_opencl
