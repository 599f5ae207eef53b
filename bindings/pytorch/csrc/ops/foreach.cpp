// Operators on lists of tensors as one kernel for several of them: what optimizers do to their counters of steps.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

constexpr size_t slots = 16;

std::string source(c10::ScalarType type) {
    std::string parameters, choice;
    for (size_t slot = 0; slot < slots; ++slot) {
        const std::string number = std::to_string(slot);
        parameters += "global X_T* p" + number + ", long n" + number + ", ";
        choice += (slot + 1 < slots ? "  case " + number + ": " : "  default: ") + "p = p" + number + "; n = n" +
                  number + "; break;\n";
    }
    return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
           "\nkernel void add_to_each(" + parameters +
           "T s) {\n  global X_T* p; long n;\n  switch (get_global_id(1)) {\n" + choice +
           "  }\n  long i = get_global_id(0);\n  if (i < n) STOREX(p, i, LOADX(p, i) + s);\n}\n";
}

bool is_alike(at::TensorList tensors) {
    for (const Tensor& tensor : tensors)
        if (tensor.scalar_type() != tensors[0].scalar_type() || tensor.device() != tensors[0].device() ||
            !tensor.is_non_overlapping_and_dense() || tensor.numel() == 0)
            return false;
    return true;
}

void add_to_each(at::TensorList tensors, const Scalar& value) {
    const auto type = tensors[0].scalar_type();
    if (!is_alike(tensors) || !is_floating(type)) {
        for (const Tensor& tensor : tensors)
            Tensor(tensor).add_(value);
        return;
    }
    const Device& device = opencl_device(tensors[0]);
    check_supported(type, device.index, "_foreach_add_");
    Kernel& kernel =
        kernel_of(device, std::string("add to each ") + short_name(type), "add_to_each", [&] { return source(type); });
    for (size_t begin = 0; begin < tensors.size(); begin += slots) {
        const size_t count = std::min(slots, tensors.size() - begin);
        int64_t longest = 0;
        Launch launch(device, kernel);
        for (size_t slot = 0; slot < slots; ++slot) {
            const Tensor& tensor = tensors[begin + (slot < count ? slot : 0)];
            const int64_t n = slot < count ? tensor.numel() : 0;
            launch.written(tensor).value(n);
            longest = std::max(longest, n);
        }
        launch.scalar(scalar_bytes(value, type)).run({static_cast<size_t>(longest), count, 1});
    }
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl(NATIVE("_foreach_add_.Scalar", add_to_each)); }

}  // namespace torch_opencl
