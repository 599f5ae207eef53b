// Two kernels. `rows`: a work-item per result walks over its elements; good when neighbouring results are neighbours in memory.
// `groups`: a work-group per result (or part of one), whose items walk with the group's stride and combine in local memory; good
// when reduced elements are neighbours, or results are few. Few results with many elements take two passes: parts, then their
// combination. An item combines parts of 128 elements: a sum of sums is more accurate than a long sum.
#include "reduce.h"

#include "kernels.h"
#include "pointwise.h"
#include "rows.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <algorithm>

namespace torch_opencl {
namespace {

constexpr int dims_max = 8;

// Sizes and strides of kept (k) and reduced (r) dimensions, innermost first, neighbours merged; the kernel's `Layout`.
struct Layout {
    int64_t kept_size[dims_max];
    int64_t kept_stride[dims_max];
    int64_t reduced_size[dims_max];
    int64_t reduced_stride[dims_max];
};

struct Plan {
    Layout layout;
    int kept = 0;
    int reduced = 0;
    int64_t results = 1;
    int64_t elements = 1;  // of one result
};

void add_dimension(int64_t* sizes, int64_t* strides, int& count, int64_t size, int64_t stride) {
    if (size == 1)
        return;
    if (count > 0 && strides[count - 1] * sizes[count - 1] == stride) {
        sizes[count - 1] *= size;
        return;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(count < dims_max, "opencl: a reduction over more than ", dims_max, " dimensions");
    sizes[count] = size;
    strides[count++] = stride;
}

Plan plan_of(const at::Tensor& self, at::OptionalIntArrayRef dims) {
    Plan plan;
    const auto mask = at::dim_list_to_bitset(dims && !dims->empty() ? dims : std::nullopt, self.dim());
    for (int64_t d = self.dim() - 1; d >= 0; --d) {
        const bool is_reduced = mask[static_cast<size_t>(d)];
        (is_reduced ? plan.elements : plan.results) *= self.size(d);
        if (is_reduced)
            add_dimension(plan.layout.reduced_size, plan.layout.reduced_stride, plan.reduced, self.size(d),
                          self.stride(d));
        else
            add_dimension(plan.layout.kept_size, plan.layout.kept_stride, plan.kept, self.size(d), self.stride(d));
    }
    return plan;
}

// A statement that adds to `offset` the place of index `from` in the dimensions `name`_size.
std::string place_source(const char* name, int count, const char* from) {
    if (count == 0)
        return "";
    const std::string size = std::string("L.") + name + "_size[", stride = std::string("L.") + name + "_stride[";
    if (count == 1)
        return "offset += (long)" + std::string(from) + " * " + stride + "0];";
    std::string text = std::string("{ long rest = ") + from + ";";
    for (int d = 0; d < count; ++d) {
        const std::string number = std::to_string(d) + "]";
        if (d + 1 == count)
            text += " offset += rest * " + stride + number + ";";
        else
            text += " offset += rest % " + size + number + " * " + stride + number + "; rest /= " + size + number + ";";
    }
    return text + " }";
}

std::string source_of(const Reduction& reduction, const Plan& plan, c10::ScalarType in, c10::ScalarType out,
                      c10::ScalarType compute, bool is_flat, size_t scalars) {
    std::string text =
        compute_type_macros(compute) + "typedef T A;\n" + access_macros("IN", in) + access_macros("OUT", out);
    text += helper_functions(std::string(reduction.element) + reduction.combine + reduction.finish);
    text += "typedef struct { long kept_size[8], kept_stride[8], reduced_size[8], reduced_stride[8]; } Layout;\n";
    text += std::string("inline A combine(A acc, A v) { return ") + reduction.combine + "; }\n";
    std::string parameters = std::string("global const ") + storage_name(in) + "* in, global " + storage_name(out) +
                             "* out, long n, long parts, Layout L";
    for (size_t s = 0; s < scalars; ++s)
        parameters += ", T s" + std::to_string(s);
    const std::string element = "{ long offset = base; " +
                                (is_flat ? std::string("offset += i;") : place_source("reduced", plan.reduced, "i")) +
                                " A x = (A)LOADIN(in, offset); A v = " + reduction.element +
                                "; acc = combine(acc, v); }\n";
    const std::string base =
        "  long offset = 0; " + place_source("kept", plan.kept, "result") + "\n  long base = offset;\n";
    const std::string items = std::to_string(row_items());
    const std::string identity = std::string("  A acc = ") + reduction.identity + ";\n";
    text += "kernel void rows(" + parameters + ") {\n  long result = get_global_id(0);\n" + base + identity +
            "  for (long first = 0; first < n; first += 128) {\n    A total = acc; acc = " + reduction.identity +
            ";\n    for (long i = first, end = min(n, first + 128); i < end; ++i) " + element +
            "    acc = combine(total, acc);\n  }\n  STOREOUT(out, result, (" + reduction.finish + "));\n}\n";
    // Part p of a result takes the elements from p * n / parts; the parts' values are stored as they are.
    text +=
        "kernel __attribute__((reqd_work_group_size(" + items + ", 1, 1))) void groups(" + parameters +
        ") {\n  local A sums[" + items +
        "];\n"
        "  int lane = get_local_id(0);\n  long result = get_group_id(0) / parts, part = get_group_id(0) % parts;\n" +
        base + identity +
        "  long begin = n * part / parts, end = n * (part + 1) / parts;\n"
        "  for (long first = begin + lane; first < end; first += 128 * " +
        items + ") {\n    A total = acc; acc = " + reduction.identity +
        ";\n    for (long i = first, last = min(end, first + 128 * " + items + "); i < last; i += " + items + ") " +
        element +
        "    acc = combine(total, acc);\n  }\n"
        "  sums[lane] = acc;\n  barrier(CLK_LOCAL_MEM_FENCE);\n"
        // One item combines them: on processors this costs less than the barriers of a tree.
        "  if (lane == 0) {\n    for (int i = 1; i < " +
        items +
        "; ++i) acc = combine(acc, sums[i]);\n"
        "    STOREOUT(out, get_group_id(0), (" +
        reduction.finish + ")); }\n}\n";
    return text;
}

struct Run {
    const at::Tensor& in;
    const at::Tensor& out;
    Plan plan;
    int64_t parts = 1;
    bool in_groups = false;
};

void launch(const Run& run, const Reduction& reduction, c10::ScalarType compute, c10::ArrayRef<c10::Scalar> scalars) {
    const Device& device = opencl_device(run.in);
    const Plan& plan = run.plan;
    const bool is_flat = plan.reduced == 0 || (plan.reduced == 1 && plan.layout.reduced_stride[0] == 1);
    const auto in = run.in.scalar_type(), out = run.out.scalar_type();
    const char* const name = run.in_groups ? "groups" : "rows";
    const std::string key = std::string("reduce ") + name + reduction.name + "|" + short_name(in) + short_name(out) +
                            short_name(compute) + std::to_string(plan.kept) +
                            (is_flat ? "f" : std::to_string(plan.reduced));
    Kernel& kernel = kernel_of(device, key, name,
                               [&] { return source_of(reduction, plan, in, out, compute, is_flat, scalars.size()); });
    Launch call(device, kernel);
    call.read(run.in).written(run.out).value(plan.elements).value(run.parts).value(plan.layout);
    for (const c10::Scalar& scalar : scalars)
        call.scalar(scalar_bytes(scalar, compute));
    const auto results = static_cast<size_t>(plan.results);
    if (run.in_groups)
        call.run({results * static_cast<size_t>(run.parts) * row_items(), 1, 1}, {row_items(), 1, 1});
    else
        call.run({results, 1, 1});
}

}  // namespace

void reduce(const at::Tensor& self, at::OptionalIntArrayRef dims, const at::Tensor& out, const Reduction& reduction,
            c10::ScalarType compute, c10::ArrayRef<c10::Scalar> scalars) {
    if (out.numel() == 0)
        return;
    compute = compute_type(compute);
    check_supported(self.scalar_type(), self.device().index(), reduction.name);
    check_supported(compute, self.device().index(), reduction.name);
    if (!out.is_contiguous()) {
        const at::Tensor dense = at::empty(out.sizes(), out.options());
        reduce(self, dims, dense, reduction, compute, scalars);
        out.copy_(dense);
        return;
    }
    Plan plan = plan_of(self, dims);
    const bool reduces_neighbours = plan.reduced > 0 && plan.layout.reduced_stride[0] == 1;
    const bool is_wide = plan.results >= 256 && !reduces_neighbours;
    const bool is_short = plan.elements < 32 && plan.results >= 64;
    if (is_wide || is_short || plan.elements == 1) {
        launch({self, out, plan, 1, false}, reduction, compute, scalars);
        return;
    }
    const int64_t parts = std::clamp<int64_t>(std::min<int64_t>(plan.elements / 1024, 64 / plan.results), 1, 64);
    if (parts == 1) {
        launch({self, out, plan, 1, true}, reduction, compute, scalars);
        return;
    }
    const at::Tensor partial = at::empty({plan.results, parts}, self.options().dtype(compute));
    const std::string first = std::string(reduction.name) + " parts", second = std::string(reduction.name) + " total";
    launch({self, partial, plan, parts, true},
           {first.c_str(), reduction.identity, reduction.element, reduction.combine, "acc"}, compute, scalars);
    Plan rest = plan_of(partial, at::IntArrayRef{1});
    // `finish` needs the number of elements, not the number of parts.
    std::vector<c10::Scalar> with_count(scalars.begin(), scalars.end());
    with_count.emplace_back(static_cast<double>(plan.elements));
    std::string finish = reduction.finish;
    const std::string count = "s" + std::to_string(scalars.size());
    for (size_t at = finish.find("(A)n"); at != std::string::npos; at = finish.find("(A)n"))
        finish.replace(at, 4, count);
    launch({partial, out, rest, 1, true}, {second.c_str(), reduction.identity, "x", reduction.combine, finish.c_str()},
           compute, with_count);
}

}  // namespace torch_opencl
