// Running sums, products, and greatest and least elements along a dimension: one work-item per line.
#include "kernels.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <cmath>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

// A tensor as lines: element i of line g is at g / inner * n * inner + g % inner + i * inner.
struct Lines {
    int64_t n = 1, inner = 1;
};
Lines lines_of(const Tensor& self, int64_t wrapped) {
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    Lines lines;
    for (int64_t d = dim + 1; d < self.dim(); ++d)
        lines.inner *= self.size(d);
    lines.n = self.dim() == 0 ? 1 : self.size(dim);
    return lines;
}
const char* const line_begin = "  long g = get_global_id(0), base = g / inner * n * inner + g % inner;\n";

struct Combination {
    const char* name;
    const char* identity;
    const char* combine;
};

// It adds in double where it can, as the CPU does: each result is a sum of all elements before it.
Tensor& running(const Tensor& self, int64_t dim, Tensor& out, const Combination& combination) {
    at::native::resize_output(out, self.sizes());
    if (out.numel() == 0)
        return out;
    const Lines lines = lines_of(self, dim);
    const Tensor in = self.to(out.scalar_type()).contiguous();
    const Tensor result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    const Device& device = opencl_device(out);
    const auto type = out.scalar_type();
    check_supported(type, device.index, combination.name);
    Kernel& kernel = kernel_of(device, std::string(combination.name) + " " + short_name(type), "running", [&] {
        const std::string elements = std::string("global ") + storage_name(type);
        const bool is_wider = compute_type(type) == at::kFloat && device.has_double;
        return compute_type_macros(type) + access_macros("X", type) + "typedef " + (is_wider ? "double" : "T") +
               " A;\nkernel void running(" + elements + "* in, " + elements + "* out, long n, long inner) {\n" +
               line_begin + "  A acc = " + combination.identity +
               ";\n  for (long i = 0; i < n; ++i) { A x = LOADX(in, base + i * inner); acc = " + combination.combine +
               "; STOREX(out, base + i * inner, (T)acc); }\n}\n";
    });
    Launch(device, kernel)
        .read(in)
        .written(result)
        .value(lines.n)
        .value(lines.inner)
        .run({static_cast<size_t>(in.numel() / lines.n), 1, 1});
    return result.is_same(out) ? out : out.copy_(result);
}

// A GPU would wait for one work-item that walks over a long line, as for the places of a mask. There a line of n elements is divided into about
// sqrt(n) parts: sums within all parts at once, then the sums of the parts before each are added.
bool suits_parts(const Tensor& self, int64_t dim) {
    constexpr int64_t line_min = 4096;
    if (self.numel() < line_min)
        return false;
    const Device& device = opencl_device(self);
    const Lines lines = lines_of(self, dim);
    return device.is_gpu && lines.inner == 1 && lines.n >= line_min &&
           self.numel() / lines.n < 4 * int64_t{device.compute_units};
}
Tensor sums_of_parts(const Tensor& self, int64_t n, c10::ScalarType type) {
    const bool is_wider = compute_type(type) == at::kFloat && opencl_device(self).has_double;
    const auto exact = is_wider ? at::kDouble : compute_type(type);
    // Odd, so that the parts do not share the sets of a cache.
    const auto part = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(n)))) | 1;
    const int64_t parts = (n + part - 1) / part;
    const Tensor padded = at::constant_pad_nd(self.to(exact).reshape({-1, n}), {0, parts * part - n});
    const Tensor sums = at::cumsum(padded.view({-1, parts, part}), 2, exact);
    const Tensor totals = at::cumsum(sums.select(2, part - 1), 1, exact);
    sums.narrow(1, 1, parts - 1).add_(totals.narrow(1, 0, parts - 1).unsqueeze(2));
    return sums.view({-1, parts * part}).narrow(1, 0, n);
}

Tensor& cumsum_out(const Tensor& self, int64_t dim, std::optional<at::ScalarType>, Tensor& out) {
    if (self.dim() > 0 && suits_parts(self, dim)) {
        at::native::resize_output(out, self.sizes());
        return out.copy_(sums_of_parts(self, lines_of(self, dim).n, out.scalar_type()).reshape(self.sizes()));
    }
    return running(self, dim, out, {"cumsum", "0", "acc + x"});
}
Tensor& cumprod_out(const Tensor& self, int64_t dim, std::optional<at::ScalarType>, Tensor& out) {
    return running(self, dim, out, {"cumprod", "1", "acc * x"});
}

// The logarithm of the running sum of exponentials. Equal infinities must not be subtracted.
constexpr Combination log_of_sum = {
    "logcumsumexp", "-INFINITY",
    "acc != acc || x != x ? acc + x : isinf(x) && acc == x ? x : fmax(acc, x) + log1p(exp(-fabs(acc - x)))"};
Tensor& logcumsumexp_out(const Tensor& self, int64_t dim, Tensor& out) {
    check_floating(self.scalar_type(), "logcumsumexp");
    check_type(self.scalar_type(), out);
    return running(self, dim, out, log_of_sum);
}
Tensor logcumsumexp(const Tensor& self, int64_t dim) {
    Tensor out = at::empty(self.sizes(), self.options());
    return logcumsumexp_out(self, dim, out);
}

// Of equal elements the last one is taken, and NaN before all numbers.
void running_extreme(const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim, const char* name,
                     const char* compare) {
    check_type(self.scalar_type(), values);
    check_type(at::kLong, indices);
    if (self.numel() == 0)
        return;
    const Device& device = opencl_device(self);
    const auto type = self.scalar_type();
    check_supported(type, device.index, name);
    const Lines lines = lines_of(self, dim);
    const Tensor in = self.contiguous();
    const auto dense = [](const Tensor& out) {
        return out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    };
    const Tensor found = dense(values), places = dense(indices);
    Kernel& kernel = kernel_of(device, std::string(name) + " " + short_name(type), "extreme", [&] {
        const std::string elements = std::string("global ") + storage_name(type);
        return compute_type_macros(type) + access_macros("X", type) + "kernel void extreme(" + elements + "* in, " +
               elements + "* out, global long* places, long n, long inner) {\n" + line_begin +
               "  T best = LOADX(in, base);\n  long place = 0;\n  for (long i = 0; i < n; ++i) {\n"
               "    T x = LOADX(in, base + i * inner);\n    if (x != x || (best == best && x " +
               compare +
               " best)) { best = x; place = i; }\n    STOREX(out, base + i * inner, best);\n"
               "    places[base + i * inner] = place;\n  }\n}\n";
    });
    Launch(device, kernel)
        .read(in)
        .written(found)
        .written(places)
        .value(lines.n)
        .value(lines.inner)
        .run({static_cast<size_t>(in.numel() / lines.n), 1, 1});
    if (!found.is_same(values))
        values.copy_(found);
    if (!places.is_same(indices))
        indices.copy_(places);
}
void cummax_helper(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
    running_extreme(self, values, indices, dim, "cummax", ">=");
}
void cummin_helper(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
    running_extreme(self, values, indices, dim, "cummin", "<=");
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("cumsum.out", cumsum_out));
    m.impl(NATIVE("cumprod.out", cumprod_out));
    m.impl(NATIVE("_logcumsumexp", logcumsumexp));
    m.impl(NATIVE("_logcumsumexp.out", logcumsumexp_out));
    m.impl(NATIVE("_cummax_helper", cummax_helper));
    m.impl(NATIVE("_cummin_helper", cummin_helper));
}

}  // namespace torch_opencl
