// Ranges and triangles: elements that are computed from their own place.
#include "formats.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/channel_shuffle_native.h>
#include <ATen/ops/pixel_shuffle_native.h>
#include <ATen/ops/pixel_unshuffle_native.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

// `expression` sees the element's place i (long), scalars s0, s1 (T) and numbers n0, n1 (long).
void fill_by_place(const Tensor& out, const char* name, const char* expression, c10::ScalarType compute,
                   const Scalar& s0, const Scalar& s1, int64_t n0 = 0, int64_t n1 = 0) {
    if (out.numel() == 0)
        return;
    if (!out.is_contiguous()) {
        const Tensor dense = at::empty(out.sizes(), out.options());
        fill_by_place(dense, name, expression, compute, s0, s1, n0, n1);
        out.copy_(dense);
        return;
    }
    const Device& device = opencl_device(out);
    check_supported(out.scalar_type(), device.index, name);
    Kernel& kernel = kernel_of(
        device, std::string("place ") + name + short_name(out.scalar_type()) + short_name(compute), "fill", [&] {
            return compute_type_macros(compute) + access_macros("X", out.scalar_type()) + "kernel void fill(global " +
                   storage_name(out.scalar_type()) +
                   "* out, T s0, T s1, long n0, long n1) {\n  long i = get_global_id(0);\n  STOREX(out, i, (" +
                   expression + "));\n}\n";
        });
    Launch(device, kernel)
        .written(out)
        .scalar(scalar_bytes(s0, compute))
        .scalar(scalar_bytes(s1, compute))
        .value(n0)
        .value(n1)
        .run({static_cast<size_t>(out.numel()), 1, 1});
}

// Ranges of floating-point numbers are computed in double, as on the CPU.
c10::ScalarType range_type(const Tensor& out) {
    return at::isFloatingType(out.scalar_type()) && opencl_device(out).has_double ? at::kDouble
                                                                                  : compute_type(out.scalar_type());
}

Tensor& arange_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
    const int64_t size = at::isIntegralType(out.scalar_type(), false)
                             ? at::native::compute_arange_size<int64_t>(start, end, step)
                             : at::native::compute_arange_size<double>(start, end, step);
    if (out.numel() != size)
        out.resize_({size});
    fill_by_place(out, "arange", "s0 + (T)i * s1", range_type(out), start, step);
    return out;
}
// The ends of a range of integers are integers.
Scalar end_for(const Tensor& out, const Scalar& end) {
    return at::isFloatingType(out.scalar_type()) ? end : Scalar(static_cast<int64_t>(end.toDouble()));
}
Tensor& linspace_out(const Scalar& given_start, const Scalar& given_end, int64_t steps, Tensor& out) {
    TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
    const Scalar start = end_for(out, given_start), end = end_for(out, given_end);
    if (out.numel() != steps)
        out.resize_({steps});
    const auto type = at::isFloatingType(out.scalar_type()) ? range_type(out) : at::kDouble;
    const double step = steps > 1 ? (end.toDouble() - start.toDouble()) / static_cast<double>(steps - 1) : 0;
    // From both ends, so that the last element is `end` exactly.
    if (steps == 1)
        return out.fill_(start);
    fill_by_place(out, "linspace from start", "s0 + (T)i * s1", type, start, step);
    const int64_t half = steps / 2;
    fill_by_place(out.narrow(0, half, steps - half), "linspace to end", "s0 - (T)(n0 - i) * s1", type, end, step,
                  steps - half - 1);
    return out;
}
Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& out) {
    TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
    const auto type = at::isFloatingType(out.scalar_type()) ? range_type(out) : at::kDouble;
    check_supported(type, opencl_device(out).index, "logspace");
    if (out.numel() != steps)
        out.resize_({steps});
    if (steps == 1)
        return out.fill_(std::pow(base, start.toDouble()));
    Tensor exponents = at::empty({steps}, out.options().dtype(type));
    linspace_out(end_for(out, start), end_for(out, end), steps, exponents);
    return out.copy_(at::pow(base, exponents));
}
Tensor& eye_out(int64_t n, int64_t m, Tensor& out) {
    TORCH_CHECK(n >= 0 && m >= 0, "n and m must be greater or equal to 0, got ", n, " and ", m);
    out.resize_({n, m});
    fill_by_place(out, "eye", "i / n0 == i % n0", compute_type(out.scalar_type()), 0, 0, m);
    return out;
}
Tensor& eye_square_out(int64_t n, Tensor& out) { return eye_out(n, n, out); }

// Keeps the elements for which `condition` is true. It may use the row r, the column c and the diagonal n0.
Tensor& triangle(const Tensor& self, int64_t diagonal, Tensor& out, const char* name, const char* condition) {
    check_type(self.scalar_type(), out);
    at::native::resize_output(out, self.sizes());
    if (out.numel() == 0)
        return out;
    const Tensor in = self.contiguous();
    const Tensor result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    const Device& device = opencl_device(out);
    const auto type = out.scalar_type();
    check_supported(type, device.index, name);
    Kernel& kernel = kernel_of(device, std::string(name) + " " + short_name(type), "triangle", [&] {
        const std::string elements =
            std::string("global ") + (type == at::kBFloat16 || type == at::kHalf ? "ushort" : storage_name(type));
        return "kernel void triangle(" + elements + "* in, " + elements +
               "* out, long rows, long columns, long n0) {\n"
               "  long c = get_global_id(0), r = get_global_id(1) % rows, i = get_global_id(1) * columns + c;\n  "
               "out[i] = " +
               condition + " ? in[i] : 0;\n}\n";
    });
    const int64_t rows = in.size(-2), columns = in.size(-1);
    Launch(device, kernel)
        .read(in)
        .written(result)
        .value(rows)
        .value(columns)
        .value(diagonal)
        .run({static_cast<size_t>(columns), static_cast<size_t>(in.numel() / columns), 1});
    return result.is_same(out) ? out : out.copy_(result);
}
Tensor& tril_out(const Tensor& self, int64_t diagonal, Tensor& out) {
    return triangle(self, diagonal, out, "tril", "c - r <= n0");
}
Tensor& triu_out(const Tensor& self, int64_t diagonal, Tensor& out) {
    return triangle(self, diagonal, out, "triu", "c - r >= n0");
}

// The places of the elements of a triangle of rows x columns, row by row. T(t): the count of elements in the rows before row t of a triangle that
// begins with an empty row.
const char* const triangle_places = R"(
inline long t_triangle(long t, long columns) {
  return t <= 0 ? 0 : t <= columns ? t * (t - 1) / 2 : columns * (columns - 1) / 2 + (t - columns) * columns;
}
kernel void places(global X_T* out, long columns, long offset, long total, int upper) {
  long c = get_global_id(0), r = get_global_id(1), first = offset + (upper ? 0 : 1);
  // How many elements of this row, and of all rows before it, are left of the diagonal.
  long left = clamp(r + first, 0L, columns), before = t_triangle(r + first, columns) - t_triangle(first, columns);
  if (upper ? c < left : c >= left) return;
  long at = upper ? r * columns - before + c - left : before + c;
  STOREX(out, at, r);
  STOREX(out, total + at, c);
}
)";
struct Triangle {
    int64_t rows, columns, offset, total;
    bool is_upper;
};
Tensor triangle_indices(const Triangle& triangle, const at::TensorOptions& options) {
    const Tensor out = at::empty({2, triangle.total}, options);
    if (triangle.total == 0)
        return out;
    const Device& device = opencl_device(out);
    const auto type = out.scalar_type();
    check_supported(type, device.index, "indices of a triangle");
    Kernel& kernel = kernel_of(device, std::string("triangle places ") + short_name(type), "places", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
               triangle_places;
    });
    Launch(device, kernel)
        .written(out)
        .value(triangle.columns)
        .value(triangle.offset)
        .value(triangle.total)
        .value(triangle.is_upper ? 1 : 0)
        .run({static_cast<size_t>(triangle.columns), static_cast<size_t>(triangle.rows), 1});
    return out;
}
at::TensorOptions options_of(std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                             std::optional<at::Device> device, std::optional<bool> pinned) {
    return at::TensorOptions().dtype(type.value_or(at::kLong)).layout(layout).device(device).pinned_memory(pinned);
}
Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<at::ScalarType> type,
                    std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pinned) {
    at::native::check_args(rows, columns, layout);
    return triangle_indices({rows, columns, offset, at::native::get_tril_size(rows, columns, offset), false},
                            options_of(type, layout, device, pinned));
}
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<at::ScalarType> type,
                    std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pinned) {
    at::native::check_args(rows, columns, layout);
    const int64_t total = rows * columns - at::native::get_tril_size(rows, columns, offset - 1);
    return triangle_indices({rows, columns, offset, total, true}, options_of(type, layout, device, pinned));
}

Tensor flip(const Tensor& self, at::IntArrayRef dims) {
    std::vector<int64_t> wrapped(dims.begin(), dims.end());
    at::maybe_wrap_dims(wrapped, self.dim());
    std::vector<bool> is_flipped(static_cast<size_t>(self.dim()), false);
    for (int64_t dim : wrapped) {
        TORCH_CHECK(!is_flipped[static_cast<size_t>(dim)], "dim ", dim, " appears multiple times in the list of dims");
        is_flipped[static_cast<size_t>(dim)] = true;
    }
    Tensor out = self;
    for (int64_t dim : wrapped)
        if (self.dim() > 0 && self.size(dim) > 1)
            out = out.index_select(dim, at::arange(self.size(dim) - 1, -1, -1, self.options().dtype(at::kLong)));
    if (out.is_same(self))
        return self.clone();
    // The order of the input, as on the CPU.
    const Tensor like = at::empty_like(self);
    return like.strides() == out.strides() ? out : like.copy_(out);
}

Tensor rolled(const Tensor& self, int64_t shift, int64_t dim) {
    const int64_t size = self.size(dim);
    const int64_t first = size == 0 ? 0 : ((-shift) % size + size) % size;
    return first == 0 ? self.clone()
                      : at::cat({self.narrow(dim, first, size - first), self.narrow(dim, 0, first)}, dim);
}
Tensor roll(const Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
    TORCH_CHECK(!shifts.empty(), "`shifts` required");
    if (dims.empty() && shifts.size() == 1)
        return rolled(self.reshape({-1}), shifts[0], 0).view(self.sizes());
    TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
                ", dims:", dims.size());
    Tensor out = self;
    for (size_t i = 0; i < dims.size(); ++i)
        out = rolled(out, shifts[i], at::maybe_wrap_dim(dims[i], self.dim()));
    return out;
}

// PyTorch's own functions of these names make views, which not all strides allow, and contiguous results.
Tensor channel_shuffle(const Tensor& self, int64_t groups) {
    return in_format_of(self, at::native::channel_shuffle(self.contiguous(), groups));
}
Tensor pixel_shuffle(const Tensor& self, int64_t factor) {
    return in_format_of(self, at::native::math_pixel_shuffle(self, factor));
}
Tensor pixel_unshuffle(const Tensor& self, int64_t factor) {
    return in_format_of(self, at::native::math_pixel_unshuffle(self, factor));
}

// PyTorch's own function of this name asks each backend for a kernel of it. Windows are small, and made once.
Tensor kaiser_window_beta(int64_t length, bool periodic, double beta, std::optional<at::ScalarType> type,
                          std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool>) {
    count_fallback("aten::kaiser_window");
    const auto options = at::TensorOptions().dtype(type).layout(layout);
    return at::kaiser_window(length, periodic, beta, options.device(at::kCPU)).to(*device);
}
Tensor kaiser_window_periodic(int64_t length, bool periodic, std::optional<at::ScalarType> type,
                              std::optional<at::Layout> layout, std::optional<at::Device> device,
                              std::optional<bool> pinned) {
    return kaiser_window_beta(length, periodic, 12.0, type, layout, device, pinned);
}
Tensor kaiser_window(int64_t length, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pinned) {
    return kaiser_window_periodic(length, true, type, layout, device, pinned);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("arange.start_out", arange_out));
    m.impl(NATIVE("linspace.out", linspace_out));
    m.impl(NATIVE("eye.out", eye_square_out));
    m.impl(NATIVE("eye.m_out", eye_out));
    m.impl(NATIVE("tril.out", tril_out));
    m.impl(NATIVE("triu.out", triu_out));
    m.impl(NATIVE("logspace.out", logspace_out));
    m.impl("tril_indices", torch_opencl::tril_indices);
    m.impl("triu_indices", torch_opencl::triu_indices);
    m.impl("kaiser_window", torch_opencl::kaiser_window);
    m.impl("kaiser_window.periodic", kaiser_window_periodic);
    m.impl("kaiser_window.beta", kaiser_window_beta);
    m.impl("channel_shuffle", channel_shuffle);
    m.impl("pixel_shuffle", torch_opencl::pixel_shuffle);
    m.impl("pixel_unshuffle", torch_opencl::pixel_unshuffle);
    m.impl(NATIVE_COMPLEX("flip", flip));
    m.impl(NATIVE_COMPLEX("roll", roll));
}

}  // namespace torch_opencl
