// copy_ and what is built on it: casts and strides in one kernel on the device, plain copies where the bytes are the same, and
// transfers between devices and the host.
#include "../memory.h"
#include "pointwise.h"

#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

bool is_ours(const at::Tensor& tensor) { return tensor.device().is_privateuseone(); }

// Whether a copy of the bytes of the one to the other's is the copy of the elements.
bool has_same_bytes(const at::Tensor& a, const at::Tensor& b) {
    return a.scalar_type() == b.scalar_type() && a.is_non_overlapping_and_dense() && b.is_non_overlapping_and_dense() &&
           (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous())) && a.is_neg() == b.is_neg() &&
           a.is_conj() == b.is_conj();
}

// The tensor without the bits of views that are conjugated or negated.
at::Tensor plain(const at::Tensor& tensor) {
    const at::Tensor numbers = tensor.is_conj() ? tensor.conj() : tensor;
    return numbers.is_neg() ? numbers._neg_view() : numbers;
}

c10::ScalarType integer_of_size(size_t bytes) {
    return bytes == 1 ? at::kByte : bytes == 2 ? at::kShort : bytes == 4 ? at::kInt : at::kLong;
}

// Elements of a type without kernels as integers; complex numbers as pairs of their parts.
at::Tensor as_known_elements(const at::Tensor& tensor) {
    const at::Tensor numbers = plain(tensor);
    const at::Tensor parts = numbers.is_complex() ? at::view_as_real(numbers) : numbers;
    return is_supported(parts.scalar_type(), opencl_device(parts).has_double)
               ? parts
               : parts.view(integer_of_size(parts.element_size()));
}

void copy_elements(const at::Tensor& target, const at::Tensor& source);

// Between tensors of one type that has no kernels.
void copy_unknown_elements(const at::Tensor& target, const at::Tensor& source) {
    copy_elements(as_known_elements(target), as_known_elements(source));
    if (target.is_neg() != source.is_neg())
        at::view_as_real(plain(target)).neg_();
    if (target.is_conj() != source.is_conj())
        at::view_as_real(plain(target)).select(-1, 1).neg_();
}

// Casts to complex numbers, and between two types of them. False where there is no kernel.
bool cast_complex(const at::Tensor& target, const at::Tensor& source) {
    const bool has_double = opencl_device(target).has_double;
    const auto type = target.scalar_type(), from = source.scalar_type();
    const auto is_cast = [has_double](c10::ScalarType each) {
        return is_supported(each, has_double) || is_supported_complex(each, has_double);
    };
    if (!is_supported_complex(type, has_double) || !is_cast(from) || target.is_conj() || target.is_neg())
        return false;
    auto iter = at::TensorIteratorConfig()
                    .add_output(target)
                    .add_owned_const_input(source.resolve_conj().resolve_neg())
                    .resize_outputs(false)
                    .check_all_same_dtype(false)
                    .set_check_mem_overlap(true)
                    .build();
    pointwise(iter, "a", c10::isComplexType(from) && from != type ? c10::kComplexDouble : type);
    return true;
}

void copy_elements(const at::Tensor& target, const at::Tensor& source) {
    if (has_same_bytes(target, source)) {
        if (target.data_ptr() != source.data_ptr())
            copy_on_device(target.device().index(), target.data_ptr(), source.data_ptr(), target.nbytes());
        return;
    }
    const auto type = target.scalar_type();
    const bool has_double = opencl_device(target).has_double;
    if (!is_supported(type, has_double) || !is_supported(source.scalar_type(), has_double)) {
        if (source.scalar_type() == type)
            return copy_unknown_elements(target, source);
        if (cast_complex(target, source))
            return;
        // Casts from and to other types: by way of the host.
        target.copy_(source.contiguous().to(at::kCPU).to(type));
        return;
    }
    auto iter = at::TensorIteratorConfig()
                    .add_output(target)
                    .add_const_input(source)
                    .resize_outputs(false)
                    .check_all_same_dtype(false)
                    .set_check_mem_overlap(true)
                    .build();
    // Integers pass through the wider type, floats through the source's, as casts in C++ do.
    const auto compute = compute_type(source.scalar_type());
    const char* const value = source.is_neg() == target.is_neg() ? "a" : "-a";
    pointwise(iter, type == at::kBool ? "a != 0" : value, compute);
}

Wait wait_for(const at::Tensor& host, bool non_blocking) {
    return non_blocking && is_pinned(host.data_ptr()) ? Wait::no : Wait::yes;
}

void copy_from_cpu(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
    const at::Tensor cast = source.to(target.scalar_type()).resolve_neg().resolve_conj();
    if (has_same_bytes(target, cast)) {
        const bool is_temporary = !cast.is_same(source);
        copy_from_host(target.device().index(), target.data_ptr(), cast.data_ptr(), target.nbytes(),
                       is_temporary ? Wait::yes : wait_for(cast, non_blocking));
        return;
    }
    const at::Tensor dense = cast.contiguous();
    const at::Tensor staged = at::empty(dense.sizes(), target.options().memory_format(at::MemoryFormat::Contiguous));
    copy_from_cpu(staged, dense, false);
    copy_elements(target, staged);
}

void copy_to_cpu(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
    if (has_same_bytes(target, source)) {
        copy_to_host(source.device().index(), target.data_ptr(), source.data_ptr(), target.nbytes(),
                     wait_for(target, non_blocking));
        return;
    }
    const at::Tensor dense = source.contiguous();
    const at::Tensor staged = at::empty(dense.sizes(), dense.options().device(at::kCPU));
    copy_to_host(source.device().index(), staged.data_ptr(), dense.data_ptr(), dense.nbytes(), Wait::yes);
    const at::Tensor positive = dense.is_neg() ? staged.neg() : staged;
    target.copy_(dense.is_conj() ? positive.conj() : positive);
}

void copy_devices(const at::Tensor& target, const at::Tensor& source) {
    if (has_same_bytes(target, source)) {
        copy_between(target.device().index(), target.data_ptr(), source.device().index(), source.data_ptr(),
                     target.nbytes());
        return;
    }
    const at::Tensor dense = source.to(target.scalar_type()).contiguous().resolve_neg().resolve_conj();
    const at::Tensor arrived = at::empty(dense.sizes(), target.options().memory_format(at::MemoryFormat::Contiguous));
    copy_devices(arrived, dense);
    copy_elements(target, arrived);
}

at::Tensor& copy_(at::Tensor& target, const at::Tensor& source, bool non_blocking) {
    TORCH_CHECK(target.defined() && source.defined(), "opencl: copy_ of an undefined tensor");
    if (target.is_same(source) || target.numel() == 0)
        return target;
    const at::Tensor from = source.sizes() == target.sizes() ? source : source.expand_as(target);
    if (!is_ours(target)) {
        TORCH_CHECK(target.is_cpu(), "opencl: cannot copy to ", target.device());
        copy_to_cpu(target, from, non_blocking);
    } else if (!is_ours(from)) {
        TORCH_CHECK(from.is_cpu(), "opencl: cannot copy from ", from.device());
        copy_from_cpu(target, from, non_blocking);
    } else if (target.device() != from.device()) {
        copy_devices(target, from);
    } else {
        copy_elements(target, from);
    }
    return target;
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
    at::Tensor to = target;
    return copy_(to, source, non_blocking);
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
    at::native::resize_output(target, source.sizes());
    return copy_from(source, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
    at::Tensor host = at::empty({}, self.options().device(at::kCPU));
    copy_to_host(self.device().index(), host.data_ptr(), self.data_ptr(), self.element_size(), Wait::yes);
    return host.item();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("copy_", copy_);
    m.impl("_copy_from", copy_from);
    m.impl("_copy_from_and_resize", copy_from_and_resize);
    m.impl("_local_scalar_dense", local_scalar_dense);
}

}  // namespace torch_opencl
