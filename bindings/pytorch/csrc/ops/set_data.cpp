// Which tensors may take the place of which in `x.data = y`. PyTorch leaves this to the backend: its own list has the CPU and
// the backends of its repository alone. Module.to and its kin change parameters in place where this says so, and replace them by others
// where not. Others are unknown to optimizers, and weights that two modules share come apart.
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
