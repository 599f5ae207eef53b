// Sparse tensors in coordinate format, as gradients of embeddings and lookups need them: made, joined, added to dense tensors, scaled
// and coalesced. A tensor is its indices [sparse dimensions, elements] and values [elements, dense dimensions]; PyTorch's own
// functions handle the pair; the operators here compute with it. Other operators of sparse tensors run on the CPU.
#include <ATen/DeviceGuard.h>
#include <ATen/Functions.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/add_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/div_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/norm_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/sub_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/zero_native.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

// PyTorch's functions make a sparse tensor on the current device.
using Layout = std::optional<c10::Layout>;
using Type = std::optional<c10::ScalarType>;
using Where = std::optional<c10::Device>;
Tensor with_dims(int64_t sparse_dim, int64_t dense_dim, at::IntArrayRef size, Type type, Layout layout, Where device,
                 std::optional<bool> pinned) {
    const c10::OptionalDeviceGuard guard(device);
    return at::native::new_with_dims_sparse(sparse_dim, dense_dim, size, type, layout, device, pinned);
}
Tensor with_dims_and_tensors(int64_t sparse_dim, int64_t dense_dim, c10::SymIntArrayRef size, const Tensor& indices,
                             const Tensor& values, Type type, Layout layout, Where device, std::optional<bool> pinned,
                             std::optional<bool> is_coalesced) {
    const c10::OptionalDeviceGuard guard(at::device_of(values));
    return at::native::new_with_dims_and_tensor_sparse_symint(sparse_dim, dense_dim, size, indices, values, type,
                                                              layout, device, pinned, is_coalesced);
}
Tensor empty(c10::SymIntArrayRef size, Type type, Layout layout, Where device, std::optional<bool> pinned,
             std::optional<c10::MemoryFormat> format) {
    const c10::OptionalDeviceGuard guard(device);
    return at::native::empty_sparse_symint(size, type, layout, device, pinned, format);
}
Tensor clone(const Tensor& self, std::optional<c10::MemoryFormat> format) {
    const c10::OptionalDeviceGuard guard(at::device_of(self));
    return at::native::clone_sparse(self, format);
}

// Each element's place among all places of the sparse dimensions.
Tensor places_of(const Tensor& sparse) {
    const Tensor indices = sparse._indices();
    if (sparse.sparse_dim() == 0)
        return at::zeros({sparse._nnz()}, indices.options());
    Tensor places = indices.select(0, 0);
    for (int64_t d = 1; d < sparse.sparse_dim(); ++d)
        places = at::add(indices.select(0, d), places, sparse.size(d));
    return places;
}

// A contiguous dense tensor as [places of the sparse dimensions, dense dimensions].
Tensor by_places(const Tensor& dense, const Tensor& sparse) {
    at::DimVector sizes{1};
    for (int64_t d = 0; d < sparse.dim(); ++d) {
        if (d < sparse.sparse_dim())
            sizes[0] *= sparse.size(d);
        else
            sizes.push_back(sparse.size(d));
    }
    return dense.view(sizes);
}

void give(Tensor& out, const Tensor& like, const Tensor& indices, const Tensor& values, bool is_coalesced) {
    at::sparse::get_sparse_impl(out)->raw_resize_(like.sparse_dim(), like.dense_dim(), like.sizes());
    at::sparse::alias_into_sparse(out, indices, values.to(out.scalar_type()));
    out._coalesced_(is_coalesced);
}
Tensor made_like(const Tensor& sparse, const Tensor& values, bool is_coalesced) {
    return at::_sparse_coo_tensor_unsafe(sparse._indices(), values, sparse.sizes(),
                                         sparse.options().dtype(values.scalar_type()), is_coalesced);
}

Tensor coalesce(const Tensor& self) {
    if (self.is_coalesced())
        return self;
    if (self._nnz() < 2) {
        Tensor copy = self.clone();
        copy._coalesced_(true);
        return copy;
    }
    const auto [sorted, order] = places_of(self).sort();
    const Tensor is_first = at::ones(sorted.sizes(), sorted.options().dtype(at::kBool));
    is_first.slice(0, 1).copy_(sorted.slice(0, 1).ne(sorted.slice(0, 0, -1)));
    const Tensor firsts = is_first.nonzero().squeeze(1);
    const Tensor targets = is_first.cumsum(0, at::kLong).sub_(1);
    at::DimVector sizes(self._values().sizes());
    sizes[0] = firsts.size(0);
    const Tensor values =
        at::zeros(sizes, self._values().options()).index_add_(0, targets, self._values().index_select(0, order));
    const Tensor indices = self._indices().index_select(1, order.index_select(0, firsts));
    return at::_sparse_coo_tensor_unsafe(indices, values, self.sizes(), self.options(), true);
}

Tensor& add_out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
    TORCH_CHECK(other.is_sparse(), "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
    TORCH_CHECK(self.sizes() == other.sizes(), "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(),
                " != ", other.sizes());
    if (self.is_sparse()) {
        TORCH_CHECK(self.sparse_dim() == other.sparse_dim(), "add: the tensors have ", self.sparse_dim(), " and ",
                    other.sparse_dim(), " sparse dimensions");
        const Tensor values = at::cat({self._values(), at::mul(other._values(), alpha)});
        give(out, other, at::cat({self._indices(), other._indices()}, 1), values, false);
        return out;
    }
    if (!out.is_same(self))
        out.resize_(self.sizes()).copy_(self);
    if (other._nnz() == 0 || out.numel() == 0)
        return out;
    const Tensor dense = out.contiguous();
    by_places(dense, other).index_add_(0, places_of(other), other._values().to(dense.scalar_type()), alpha);
    return dense.is_same(out) ? out : out.copy_(dense);
}

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
    TORCH_CHECK(!self.is_sparse(), "opencl: sparse_mask takes a dense tensor");
    TORCH_CHECK(self.sizes() == mask.sizes(), "sparse_mask(): operands have incompatible sizes; self has size ",
                self.sizes(), " but mask has size ", mask.sizes());
    return made_like(mask, by_places(self.contiguous(), mask).index_select(0, places_of(mask)), mask.is_coalesced());
}

Tensor& mul_out(const Tensor& a, const Tensor& b, Tensor& out) {
    const Tensor& sparse = a.is_sparse() ? a : b;
    const Tensor& factor = a.is_sparse() ? b : a;
    TORCH_CHECK(!factor.is_sparse() && factor.dim() == 0, "opencl: a sparse tensor is multiplied by numbers alone");
    give(out, sparse, sparse._indices(), at::mul(sparse._values(), factor), sparse.is_coalesced());
    return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
    m.impl("_sparse_coo_tensor_with_dims", with_dims);
    m.impl("_sparse_coo_tensor_with_dims_and_tensors", with_dims_and_tensors);
    m.impl("empty.memory_format", torch_opencl::empty);
    m.impl("empty_like", at::native::empty_like_sparse_coo);
    m.impl("_indices", at::native::_indices_sparse);
    m.impl("_values", at::native::_values_sparse);
    m.impl("indices", at::native::indices_sparse);
    m.impl("values", at::native::values_sparse);
    m.impl("_nnz", at::native::_nnz_sparse);
    m.impl("sparse_dim", at::native::sparse_dim_sparse);
    m.impl("dense_dim", at::native::dense_dim_sparse);
    m.impl("is_coalesced", at::native::is_coalesced_sparse);
    m.impl("_coalesced_", at::native::_coalesced_sparse_);
    m.impl("sparse_resize_", at::native::sparse_resize_);
    m.impl("sparse_resize_and_clear_", at::native::sparse_resize_and_clear_);
    m.impl("resize_as_sparse_", at::native::resize_as_sparse_);
    m.impl("copy_", at::native::copy_sparse_wrapper_);
    m.impl("copy_sparse_to_sparse_", at::native::copy_sparse_);
    m.impl("clone", torch_opencl::clone);
    m.impl("zero_", at::native::zero_sparse_);
    m.impl("_to_dense", at::native::sparse_to_dense);
    m.impl("_coalesce", coalesce);
    m.impl("add.Tensor", at::native::add_sparse);
    m.impl("add_.Tensor", at::native::add_sparse_);
    m.impl("add.out", add_out);
    m.impl("sub.Tensor", at::native::sub_sparse);
    m.impl("sub_.Tensor", at::native::sub_sparse_);
    m.impl("sub.out", at::native::sub_out_sparse);
    m.impl("mul.Tensor", at::native::mul_sparse);
    m.impl("mul_.Tensor", at::native::mul_sparse_);
    m.impl("mul.out", mul_out);
    // div_sparse with a rounding mode has the same name.
    m.impl("div.Tensor", static_cast<Tensor (*)(const Tensor&, const Tensor&)>(at::native::div_sparse));
    m.impl("div_.Tensor", static_cast<Tensor& (*)(Tensor&, const Tensor&)>(at::native::div_sparse_));
    m.impl("div.out",
           static_cast<Tensor& (*)(const Tensor&, const Tensor&, Tensor&)>(at::native::div_out_sparse_zerodim));
    m.impl("neg", at::native::neg_sparse);
    m.impl("neg_", at::native::neg_sparse_);
    m.impl("neg.out", at::native::neg_out_sparse);
    m.impl("norm.ScalarOpt_dim", at::native::sparse_norm);
    m.impl("norm.ScalarOpt_dim_dtype", at::native::sparse_dtype_norm);
    m.impl("sparse_mask", sparse_mask);
}

}  // namespace torch_opencl
