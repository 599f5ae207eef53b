// Whether `x.data = y` is allowed for two tensors. PyTorch leaves this to the backend, because its own list has only the CPU and
// the backends of its repository. Where it is allowed, Module.to and similar functions change parameters in place. Elsewhere they replace
// parameters by new ones, which optimizers do not know, and weights that two modules share become separate.
#include <torch/library.h>

namespace torch_opencl {
namespace {

bool is_dense(const at::Tensor& tensor) {
    constexpr c10::DispatchKeySet backends(
        {c10::BackendComponent::CPUBit, c10::BackendComponent::CUDABit, c10::BackendComponent::PrivateUse1Bit});
    const c10::DispatchKeySet keys = tensor.key_set();
    return keys.has_any(c10::DispatchKeySet(c10::DispatchKey::Dense)) && keys.has_any(backends);
}

bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
    return self.key_set() == from.key_set() || (is_dense(self) && is_dense(from));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}

}  // namespace torch_opencl
