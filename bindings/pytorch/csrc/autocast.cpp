// torch.autocast("opencl"): the operators that PyTorch runs in the lower precision, in float32, or in the widest type of their
// inputs, by PyTorch's own lists.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

// Its result in a half type would leave the type's range, and PyTorch refuses it on its other backends too.
Tensor binary_cross_entropy_banned(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
    TORCH_CHECK(false, "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast; use "
                       "binary_cross_entropy_with_logits or BCEWithLogitsLoss.");
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define IN_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define IN_FLOAT32_BY_ARGUMENT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define IN_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
    AT_FORALL_FP32(IN_FLOAT32)
    AT_FORALL_FP32_SET_OPT_DTYPE(IN_FLOAT32_BY_ARGUMENT)
    AT_FORALL_PROMOTE(IN_WIDEST)
    m.impl("binary_cross_entropy", TORCH_FN(binary_cross_entropy_banned));
}

}  // namespace torch_opencl
