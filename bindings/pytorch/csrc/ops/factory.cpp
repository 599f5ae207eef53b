// Creates tensors, views and storages, and fills tensors with one value.
#include "../memory.h"
#include "pointwise.h"

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

c10::Device device_or_current(std::optional<c10::Device> device) {
    const int index = device && device->has_index() ? device->index() : current_device();
    return c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index));
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
    TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == c10::Layout::Strided,
                                "opencl: only strided tensors, not ", *layout);
    TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "opencl: only dense CPU tensors can be pinned");
}

at::Tensor empty(at::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> memory_format) {
    check_options(layout, pin_memory);
    const c10::DeviceGuard guard(device_or_current(device));
    return at::detail::empty_generic(size, c10::GetAllocator(c10::DeviceType::PrivateUse1), keys,
                                     c10::dtype_or_default(dtype), memory_format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
    check_options(layout, pin_memory);
    const c10::DeviceGuard guard(device_or_current(device));
    return at::detail::empty_strided_generic(size, stride, c10::GetAllocator(c10::DeviceType::PrivateUse1), keys,
                                             c10::dtype_or_default(dtype));
}

// Makes the storage large enough for the sizes and strides.
void grow_storage(const at::Tensor& self) {
    const size_t needed = at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.element_size(),
                                                           static_cast<size_t>(self.storage_offset()));
    if (self.numel() > 0 && needed > self.storage().nbytes())
        at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), needed);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
    c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
    if (self.sizes() != size)
        impl->set_sizes_contiguous(size);
    if (format && *format != c10::MemoryFormat::Preserve)
        impl->empty_tensor_restride(*format);
    grow_storage(self);
    return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
    TORCH_CHECK(source.device() == self.device() || !self.storage() || self.numel() == 0, "opencl: a tensor of ",
                self.device(), " cannot use a storage of ", source.device());
    self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
    self.unsafeGetTensorImpl()->set_storage_offset(offset);
    if (stride.data() == nullptr)
        self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
    else
        self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
    grow_storage(self);
    return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
    const auto count = static_cast<int64_t>(source.nbytes() / self.element_size());
    return set_storage(self, std::move(source), 0, count, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
    return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_empty(at::Tensor& self) {
    const at::Tensor none = at::empty({0}, self.options());
    return set_storage(self, none.storage(), 0, {0}, {});
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
    const bool has_double = opencl_device(self).has_double;
    const auto type = self.scalar_type();
    if ((!is_supported(type, has_double) && !is_supported_complex(type, has_double)) || self.is_conj())
        return self.copy_(at::full({}, value, self.options().device(at::kCPU)));
    auto iter = at::TensorIteratorConfig()
                    .add_output(self)
                    .resize_outputs(false)
                    .check_all_same_dtype(false)
                    .set_check_mem_overlap(false)
                    .build();
    pointwise(iter, "s0", type, value);
    return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
    TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
    return self.copy_(value);
}

at::Tensor& zero_(at::Tensor& self) { return fill_scalar(self, 0); }

void record_stream(at::Tensor& self, c10::Stream stream) {
    if (self.has_storage() && self.storage().data())
        use_on_stream(self.storage().data(), queue_of(stream));
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }
at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> offset) {
    return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
    return at::native::_reshape_alias(self, size, stride);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl("resize_", resize_);
    m.impl("set_.source_Storage_storage_offset", set_storage);
    m.impl("set_.source_Storage", set_whole_storage);
    m.impl("set_.source_Tensor", set_tensor);
    m.impl("set_", set_empty);
    m.impl("fill_.Scalar", fill_scalar);
    m.impl("fill_.Tensor", fill_tensor);
    m.impl("zero_", zero_);
    m.impl("record_stream", record_stream);
    m.impl("view", view);
    m.impl("as_strided", as_strided);
    m.impl("_reshape_alias", reshape_alias);
    m.impl("unfold", at::native::unfold);
    m.impl("view_as_real", at::native::view_as_real);
    m.impl("view_as_complex", at::native::view_as_complex);
}

}  // namespace torch_opencl
