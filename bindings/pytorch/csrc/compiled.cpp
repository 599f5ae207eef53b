#include "compiled.h"

#include "ops/gemm.h"

#include <algorithm>
#include <c10/core/DeviceGuard.h>
#include <utility>

namespace torch_opencl {
namespace {

// The place of a matrix that is broadcast to other sizes.
MatrixPlace expanded(const MatrixPlace& place, at::IntArrayRef sizes) {
    TORCH_CHECK_VALUE(place.sizes.size() <= sizes.size(), "opencl: the sizes of a product do not fit");
    MatrixPlace wide{at::DimVector(sizes), at::DimVector(sizes.size(), 0), place.offset};
    const size_t missing = sizes.size() - place.sizes.size();
    for (size_t dim = 0; dim < place.sizes.size(); ++dim) {
        const bool is_one = place.sizes[dim] == 1;
        TORCH_CHECK_VALUE(is_one || place.sizes[dim] == sizes[missing + dim],
                          "opencl: the sizes of a product do not fit");
        wide.strides[missing + dim] = is_one ? 0 : place.strides[dim];
    }
    return wide;
}

// A view without PyTorch's dispatcher: the code that calls this has no gradients.
at::Tensor view(const at::Tensor& tensor, const MatrixPlace& place) {
    if (place.offset == 0 && tensor.sizes() == place.sizes && tensor.strides() == place.strides)
        return tensor;
    int64_t end = tensor.storage_offset() + place.offset + 1;
    for (size_t dim = 0; dim < place.sizes.size(); ++dim)
        end += std::max<int64_t>(place.sizes[dim] - 1, 0) * place.strides[dim];
    TORCH_CHECK_VALUE(end * static_cast<int64_t>(tensor.itemsize()) <= static_cast<int64_t>(tensor.storage().nbytes()),
                      "opencl: a matrix of a product is outside of its tensor's memory");
    auto seen =
        c10::make_intrusive<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(tensor.storage()),
                                             c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), tensor.dtype());
    seen->set_sizes_and_strides(place.sizes, place.strides, tensor.storage_offset() + place.offset);
    return at::Tensor(std::move(seen));
}

}  // namespace

GeneratedProduct::GeneratedProduct(MatrixPlace out, MatrixPlace a, MatrixPlace b, std::optional<MatrixPlace> c,
                                   double alpha, double beta)
    : out_(std::move(out)), a_(std::move(a)), b_(std::move(b)), alpha_(alpha), beta_(beta) {
    const size_t dims = out_.sizes.size();
    TORCH_CHECK_VALUE((dims == 2 || dims == 3) && a_.sizes.size() == dims && b_.sizes.size() == dims,
                      "opencl: a product is of matrices, or of batches of them");
    for (const MatrixPlace* place : {&out_, &a_, &b_}) {
        TORCH_CHECK_VALUE(place->strides.size() == dims && place->offset >= 0, "opencl: a matrix has no such place");
        TORCH_CHECK_VALUE(dims == 2 || place->sizes[0] == out_.sizes[0], "opencl: the sizes of a product do not fit");
    }
    TORCH_CHECK_VALUE(a_.sizes[dims - 2] == out_.sizes[dims - 2] && a_.sizes[dims - 1] == b_.sizes[dims - 2] &&
                          b_.sizes[dims - 1] == out_.sizes[dims - 1],
                      "opencl: the sizes of a product do not fit");
    if (c) {
        TORCH_CHECK_VALUE(c->sizes.size() == c->strides.size() && c->offset >= 0, "opencl: a matrix has no such place");
        c_ = expanded(*c, out_.sizes);
    }
}

void GeneratedProduct::run(c10::ArrayRef<const at::Tensor*> tensors) const {
    const at::Tensor& into = *tensors[0];
    TORCH_CHECK_VALUE(into.device().is_privateuseone(), "opencl: the result of this product is on ", into.device());
    for (const at::Tensor* tensor : tensors)
        TORCH_CHECK_TYPE(tensor->scalar_type() == into.scalar_type(), "opencl: a product of ", tensor->scalar_type(),
                         " and ", into.scalar_type());
    const c10::DeviceGuard guard(into.device());
    const at::Tensor out = view(into, out_), a = view(*tensors[1], a_), b = view(*tensors[2], b_);
    multiply({a, b, out, c_ ? view(*tensors[3], *c_) : at::Tensor(), alpha_, beta_});
}

GeneratedKernel::GeneratedKernel(std::string source)
    : source_(std::move(source)), kernels_(Platform::get().devices().size()) {}

Kernel& GeneratedKernel::kernel_for(const Device& device) {
    std::atomic<Kernel*>& place = kernels_[static_cast<size_t>(device.index)];
    Kernel* kernel = place.load(std::memory_order_acquire);
    if (!kernel) [[unlikely]] {
        kernel = &kernel_of(device, source_, "generated", [&] { return source_; });
        place.store(kernel, std::memory_order_release);
    }
    return *kernel;
}

void GeneratedKernel::launch(c10::ArrayRef<const at::Tensor*> tensors, c10::ArrayRef<const at::Tensor*> scalars,
                             c10::ArrayRef<int64_t> values, std::array<size_t, 3> global, std::array<size_t, 3> local) {
    const Device& device = Platform::get().device(current_device());
    Launch launch(device, kernel_for(device));
    for (const at::Tensor* tensor : tensors)
        launch.written(*tensor);
    for (const at::Tensor* scalar : scalars) {
        TORCH_CHECK(scalar->device().is_cpu() && scalar->numel() == 1,
                    "opencl: a scalar of a kernel is one element on the CPU, not ", scalar->numel(), " on ",
                    scalar->device());
        launch.bytes(scalar->const_data_ptr(), scalar->itemsize());
    }
    for (const int64_t value : values)
        launch.value(value);
    launch.run(global, local);
}

}  // namespace torch_opencl
