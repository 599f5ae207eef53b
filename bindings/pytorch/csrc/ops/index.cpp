// Indexing. Most operators see a tensor as [outer, n, inner] around one dimension. Adding operators walk along the index in order
// within one work-item, so that they need no atomic operations and results do not change between runs.
#include "index.h"

#include "kernels.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

struct Split {
    int64_t outer = 1, inner = 1;
};

Split split_at(at::IntArrayRef sizes, int64_t dim) {
    Split split;
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
        (d < dim ? split.outer : split.inner) *= d == dim ? 1 : sizes[static_cast<size_t>(d)];
    return split;
}

// Index per element (gather, scatter), or per place along the dimension (index_select, index_add).
enum class Index { elements, places };

const char* const source_body = R"(
// The index wraps around once, as in Python. Places outside of the tensor are not touched; reads of them are 0.
#define AT(i) (INDEX(i) < 0 ? INDEX(i) + size : INDEX(i))
kernel void indexed(global X_T* self, global const long* index, global X_T* other, T value, long size, long n, long inner) {
#if ALONG_INNER
  long x = get_global_id(0), second = get_global_id(1), third = get_global_id(2);
#else
  long x = 0, second = get_global_id(0), third = get_global_id(1);
#endif
#if IN_ORDER
  long o = second;
  for (long i = 0; i < n; ++i) {
#else
  long i = second, o = third;
  {
#endif
    long at = AT(i), there = (o * size + at) * inner + x, here = (o * n + i) * inner + x;
    int valid = at >= 0 && at < size;
    STATEMENT
  }
}
)";

struct Indexing {
    const Tensor& self;  // contiguous [outer, size, inner]
    const Tensor& index;  // contiguous int64
    const Tensor& other;  // contiguous [outer, n, inner]; not for fill
    int64_t size, n;
    Split split;
    Action action;
    Index kind;
    Scalar value = 0;
};

void run(const Indexing& call) {
    const int64_t total = call.split.outer * call.split.inner * call.n;
    if (total == 0 || call.self.numel() == 0)
        return;
    const Device& device = opencl_device(call.self);
    const auto type = call.self.scalar_type();
    check_supported(type, device.index, "indexing");
    check_type(type, call.other);
    static constexpr const char* statements[] = {
        "STOREX(other, here, valid ? LOADX(self, there) : (T)0)",
        "if (valid) STOREX(self, there, LOADX(other, here))",
        "if (valid) STOREX(self, there, value)",
        "if (valid) STOREX(self, there, LOADX(self, there) + value * LOADX(other, here))",
        "if (valid) STOREX(self, there, LOADX(self, there) * LOADX(other, here))",
        "if (valid) STOREX(self, there, t_nan_max(LOADX(self, there), LOADX(other, here)))",
        "if (valid) STOREX(self, there, t_nan_min(LOADX(self, there), LOADX(other, here)))"};
    const auto number = static_cast<size_t>(call.action);
    // Several writes to one place must happen in the order of the index, too.
    const bool is_apart = call.action == Action::read || call.action == Action::fill;
    const bool in_order = !is_apart && (call.action != Action::write || call.kind == Index::places);
    // The dimensions of the launch are those of the tensors, so that no index has to be divided. Work-items that follow each other
    // differ in the innermost one that has more than one place.
    const bool along_inner = call.split.inner > 1;
    const std::string key = std::string("indexed ") + std::to_string(number) +
                            (call.kind == Index::places ? "p" : "e") + (along_inner ? "i" : "o") + short_name(type);
    Kernel& kernel = kernel_of(device, key, "indexed", [&] {
        return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
               "\n#define INDEX(i) index[" + (call.kind == Index::places ? "i" : "here_of(o, i, n, inner, x)") +
               "]\n#define IN_ORDER " + (in_order ? "1" : "0") + "\n#define ALONG_INNER " + (along_inner ? "1" : "0") +
               "\n#define STATEMENT " + statements[number] + ";\n" +
               "inline long here_of(long o, long i, long n, long inner, long x) { return (o * n + i) * inner + x; }\n" +
               helper_functions(statements[number]) + source_body;
    });
    std::array<size_t, 3> global{1, 1, 1};
    auto dimension = global.begin();
    if (along_inner)
        *dimension++ = static_cast<size_t>(call.split.inner);
    if (!in_order)
        *dimension++ = static_cast<size_t>(call.n);
    *dimension = static_cast<size_t>(call.split.outer);
    Launch(device, kernel)
        .written(call.self)
        .read(call.index)
        .written(call.other.defined() ? call.other : call.self)
        .scalar(scalar_bytes(call.value, type))
        .value(call.size)
        .value(call.n)
        .value(call.split.inner)
        .run(global);
}

Tensor as_index(const Tensor& index) { return at_least_1d(index).to(at::kLong).contiguous(); }

// Indices on the CPU are moved; in eager mode PyTorch accepts them for index and index_put alone.
Tensor gather_rows(const Tensor& self, int64_t dim, const Tensor& index) {
    const Tensor in = at_least_1d(self).contiguous(), places = as_index(index);
    at::DimVector sizes(in.sizes());
    sizes[static_cast<size_t>(dim)] = places.numel();
    Tensor out = at::empty(sizes, in.options());
    run({in, places, out, in.size(dim), places.numel(), split_at(in.sizes(), dim), Action::read, Index::places});
    return out;
}

Tensor index_select(const Tensor& self, int64_t wrapped, const Tensor& index) {
    TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector, but got dim: ", index.dim());
    TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
                "index_select(): Expected dtype int32/int64 for index but got: ", index.scalar_type());
    check_same_device(self.device(), index);
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    if (self.is_complex() && self.dim() > 0)
        return at::view_as_complex(gather_rows(at::view_as_real(self.resolve_conj()), dim, index));
    const Tensor out = gather_rows(self, dim, index);
    return self.dim() == 0 ? out.reshape({}) : out;
}
Tensor& index_select_out(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
    TORCH_CHECK(out.scalar_type() == self.scalar_type(),
                "index_select(): self and result must have the same scalar type");
    const Tensor made = torch_opencl::index_select(self, dim, index);
    at::native::resize_output(out, made.sizes());
    return out.copy_(made);
}

// The part of self that an index of smaller sizes reaches, outside of dim.
Tensor reached(const Tensor& self, int64_t dim, const Tensor& index) {
    Tensor part = self;
    for (int64_t d = 0; d < self.dim(); ++d)
        if (d != dim && index.size(d) != self.size(d))
            part = part.narrow(d, 0, index.size(d));
    return part;
}

Tensor& gather_out(const Tensor& self, int64_t wrapped, const Tensor& index, bool, Tensor& out) {
    check_type(self.scalar_type(), out);
    at::native::resize_output(out, index.sizes());
    if (index.numel() == 0)
        return out;
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    const Tensor places = as_index(index), in = reached(at_least_1d(self), dim, places).contiguous();
    Tensor result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    run({in, places, result, in.size(dim), places.size(dim), split_at(places.sizes(), dim), Action::read,
         Index::elements});
    return result.is_same(out) ? out : out.copy_(result);
}

}  // namespace

Tensor& scatter(const Tensor& self, int64_t wrapped, const Tensor& index, const Tensor& source, const Scalar& value,
                Action action, Tensor& out) {
    check_type(self.scalar_type(), source, out);
    if (!out.is_same(self)) {
        at::native::resize_output(out, self.sizes());
        out.copy_(self);
    }
    if (index.numel() == 0)
        return out;
    const int64_t dim = at::maybe_wrap_dim(wrapped, self.dim());
    const Tensor places = as_index(index);
    Tensor target = reached(at_least_1d(out), dim, places);
    const Tensor dense = target.contiguous();
    Tensor from;
    if (source.defined()) {
        from = at_least_1d(source);
        for (int64_t d = 0; d < from.dim(); ++d)
            from = from.narrow(d, 0, places.size(d));
        from = from.contiguous();
    }
    run({dense, places, from, dense.size(dim), places.size(dim), split_at(places.sizes(), dim), action, Index::elements,
         value});
    if (!dense.is_alias_of(out))
        target.copy_(dense);
    return out;
}

namespace {

Tensor& scatter_src_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, Tensor& out) {
    return scatter(self, dim, index, source, 0, Action::write, out);
}
Tensor& scatter_value_out(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, Tensor& out) {
    return scatter(self, dim, index, {}, value, Action::fill, out);
}
Tensor& scatter_add_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, Tensor& out) {
    return scatter(self, dim, index, source, 1, Action::add, out);
}

}  // namespace

void put_rows(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& source, Action action,
              const Scalar& alpha) {
    const Tensor dense = target.contiguous(), places = as_index(index);
    const Tensor from = source.defined() ? source.contiguous() : Tensor();
    run({dense, places, from, dense.size(dim), places.numel(), split_at(dense.sizes(), dim), action, Index::places,
         alpha});
    if (!dense.is_alias_of(target))
        target.copy_(dense);
}

namespace {

Tensor& index_add_out(const Tensor& self, int64_t wrapped, const Tensor& index, const Tensor& source,
                      const Scalar& alpha, Tensor& out) {
    check_type(self.scalar_type(), source, out);
    if (!out.is_same(self)) {
        at::native::resize_output(out, self.sizes());
        out.copy_(self);
    }
    if (index.numel() > 0)
        put_rows(at_least_1d(out), at::maybe_wrap_dim(wrapped, self.dim()), index, at_least_1d(source), Action::add,
                 alpha);
    return out;
}

Tensor& index_copy_out(const Tensor& self, int64_t wrapped, const Tensor& index, const Tensor& source, Tensor& out) {
    check_type(self.scalar_type(), source, out);
    if (!out.is_same(self)) {
        at::native::resize_output(out, self.sizes());
        out.copy_(self);
    }
    if (index.numel() > 0)
        put_rows(at_least_1d(out), at::maybe_wrap_dim(wrapped, self.dim()), index, at_least_1d(source), Action::write,
                 1);
    return out;
}

Tensor& index_fill_(Tensor& self, int64_t wrapped, const Tensor& index, const Scalar& value) {
    TORCH_CHECK_INDEX(index.scalar_type() == at::kLong, "index_fill_(): Expected dtype int64 for index.");
    TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
    check_same_device(self.device(), index);
    if (index.numel() > 0)
        put_rows(at_least_1d(self), at::maybe_wrap_dim(wrapped, self.dim()), index, {}, Action::fill, value);
    return self;
}
Tensor& index_fill_tensor_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
    TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
    return self.index_fill_(dim, index, value.item());
}

Tensor embedding_dense_backward(const Tensor& grad, const Tensor& indices, int64_t count, int64_t padding,
                                bool scale_by_frequency) {
    const Tensor places = as_index(indices).reshape({-1});
    Tensor rows = grad.reshape({places.numel(), grad.size(-1)});
    if (scale_by_frequency) {
        const Tensor counts =
            at::zeros({count}, grad.options()).index_add(0, places, at::ones({places.numel()}, grad.options()));
        rows = at::div(rows, counts.index_select(0, places).unsqueeze(1));
    }
    Tensor out = at::zeros({count, grad.size(-1)}, grad.options());
    if (places.numel() > 0)
        put_rows(out, 0, places, rows, Action::add, 1);
    if (padding >= 0)
        out.select(0, padding).zero_();
    return out;
}

// Advanced indexing as one index along one dimension: the indexed dimensions are moved to the front and merged.
struct Advanced {
    Tensor moved;  // a view of self with the indexed dimensions in front
    Tensor index;  // one number per row, flat
    at::DimVector index_sizes;
    at::DimVector other_sizes;
    std::vector<int64_t> permutation;  // of moved
    int64_t front = 0;  // how many of other's dimensions come before the index's in the result
    int64_t rows = 1;
};

std::vector<Tensor> expand_masks(const Tensor& self, const c10::List<std::optional<Tensor>>& indices) {
    std::vector<Tensor> made;
    for (const std::optional<Tensor>& each : indices) {
        if (!each || !each->defined()) {
            made.emplace_back();
        } else if (each->scalar_type() == at::kBool || each->scalar_type() == at::kByte) {
            for (int64_t d = 0; d < each->dim(); ++d)
                TORCH_CHECK_INDEX(each->size(d) == self.size(static_cast<int64_t>(made.size()) + d),
                                  "The shape of the mask ", each->sizes(), " at index ", d,
                                  " does not match the shape of the indexed tensor ", self.sizes());
            const Tensor places = each->nonzero();
            for (int64_t d = 0; d < each->dim(); ++d)
                made.push_back(places.select(1, d));
        } else {
            TORCH_CHECK_INDEX(at::isIntegralType(each->scalar_type(), false),
                              "tensors used as indices must be long, int, byte or bool tensors");
            made.push_back(*each);
        }
    }
    TORCH_CHECK_INDEX(static_cast<int64_t>(made.size()) <= self.dim(), "too many indices for tensor of dimension ",
                      self.dim(), " (got ", made.size(), ")");
    made.resize(static_cast<size_t>(self.dim()));
    for (Tensor& each : made)
        if (each.defined())
            each = each.to(self.device(), at::kLong);
    return made;
}

Advanced advanced(const Tensor& self, const c10::List<std::optional<Tensor>>& given) {
    Advanced made;
    std::vector<Tensor> indices = expand_masks(self, given);
    std::vector<Tensor> defined;
    std::vector<int64_t> indexed, others;
    for (int64_t d = 0; d < self.dim(); ++d)
        (indices[static_cast<size_t>(d)].defined() ? indexed : others).push_back(d);
    for (const int64_t d : indexed)
        defined.push_back(indices[static_cast<size_t>(d)]);
    TORCH_CHECK_INDEX(!indexed.empty(), "opencl: an index without tensors");
    defined = at::expand_outplace(defined);
    made.index_sizes = at::DimVector(defined[0].sizes());
    for (size_t i = 0; i < indexed.size(); ++i) {
        const int64_t size = self.size(indexed[i]);
        const Tensor wrapped = at::where(at::lt(defined[i], 0), at::add(defined[i], size), defined[i]);
        made.index = i == 0 ? wrapped : at::add(at::mul(made.index, size), wrapped);
        made.rows *= size;
    }
    made.index = made.index.reshape({-1});
    const bool is_adjacent = indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
    made.front = is_adjacent ? indexed.front() : 0;
    made.permutation = indexed;
    for (const int64_t d : others) {
        made.permutation.push_back(d);
        made.other_sizes.push_back(self.size(d));
    }
    made.moved = self.permute(made.permutation);
    return made;
}

// From [index..., other...] to the result's order: [other before..., index..., other after...].
Tensor to_result(const Tensor& rows, const Advanced& how) {
    const auto index_dims = static_cast<int64_t>(how.index_sizes.size());
    std::vector<int64_t> order;
    for (int64_t d = 0; d < how.front; ++d)
        order.push_back(index_dims + d);
    for (int64_t d = 0; d < index_dims; ++d)
        order.push_back(d);
    for (int64_t d = index_dims + how.front; d < rows.dim(); ++d)
        order.push_back(d);
    return rows.permute(order);
}
Tensor from_result(const Tensor& values, const Advanced& how) {
    const auto index_dims = static_cast<int64_t>(how.index_sizes.size());
    std::vector<int64_t> order;
    for (int64_t d = 0; d < index_dims; ++d)
        order.push_back(how.front + d);
    for (int64_t d = 0; d < values.dim(); ++d)
        if (d < how.front || d >= how.front + index_dims)
            order.push_back(d);
    return values.permute(order);
}

at::DimVector joined(const at::DimVector& first, const at::DimVector& second) {
    at::DimVector all = first;
    all.insert(all.end(), second.begin(), second.end());
    return all;
}

Tensor index(const Tensor& self, const c10::List<std::optional<Tensor>>& indices) {
    if (self.is_complex())
        return at::view_as_complex(torch_opencl::index(at::view_as_real(self.resolve_conj()), indices));
    const Advanced how = advanced(self, indices);
    const Tensor rows = how.moved.reshape(joined({how.rows}, how.other_sizes));
    TORCH_CHECK_INDEX(rows.numel() > 0 || how.index.numel() == 0, "index is out of bounds for dimension with size 0");
    return to_result(gather_rows(rows, 0, how.index).view(joined(how.index_sizes, how.other_sizes)), how).contiguous();
}
Tensor& index_out(const Tensor& self, const c10::List<std::optional<Tensor>>& indices, Tensor& out) {
    const Tensor made = torch_opencl::index(self, indices);
    at::native::resize_output(out, made.sizes());
    return out.copy_(made);
}

Tensor& index_put_(Tensor& self, const c10::List<std::optional<Tensor>>& indices, const Tensor& values, bool accumulate,
                   bool) {
    const bool is_fill = indices.size() == 1 && !accumulate && values.dim() == 0 && indices.get(0) &&
                         indices.get(0)->scalar_type() == at::kBool && indices.get(0)->sizes() == self.sizes();
    if (is_fill)
        return self.masked_fill_(indices.get(0)->to(self.device()), values.item());
    TORCH_CHECK(self.scalar_type() == values.scalar_type(),
                "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
                " for the destination and ", values.scalar_type(), " for the source.");
    const Advanced how = advanced(self, indices);
    if (how.index.numel() == 0)
        return self;
    const Tensor shaped =
        to_result(at::empty(joined(how.index_sizes, how.other_sizes), self.options().device(at::kMeta)), how);
    const Tensor from = from_result(values.to(self.device()).expand(shaped.sizes()), how)
                            .reshape(joined({how.index.numel()}, how.other_sizes));
    const Tensor rows = how.moved.reshape(joined({how.rows}, how.other_sizes));
    put_rows(rows, 0, how.index, from.to(self.scalar_type()), accumulate ? Action::add : Action::write, 1);
    if (!rows.is_alias_of(self))
        how.moved.copy_(rows.view(how.moved.sizes()));
    return self;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE_COMPLEX("index_select", index_select));
    m.impl(NATIVE_COMPLEX("index_select.out", index_select_out));
    m.impl(NATIVE("gather.out", gather_out));
    m.impl(NATIVE("scatter.src_out", scatter_src_out));
    m.impl(NATIVE("scatter.value_out", scatter_value_out));
    m.impl(NATIVE("scatter_add.out", scatter_add_out));
    m.impl(NATIVE("index_add.out", index_add_out));
    m.impl(NATIVE("index_copy.out", index_copy_out));
    m.impl(NATIVE("index_fill_.int_Scalar", index_fill_));
    m.impl(NATIVE("index_fill_.int_Tensor", index_fill_tensor_));
    m.impl(NATIVE("embedding_dense_backward", embedding_dense_backward));
    m.impl(NATIVE_COMPLEX("index.Tensor", index));
    m.impl(NATIVE_COMPLEX("index.Tensor_out", index_out));
    m.impl(NATIVE("_index_put_impl_", index_put_));
}

}  // namespace torch_opencl
