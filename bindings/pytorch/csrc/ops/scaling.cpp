// What torch.amp.GradScaler calls: gradients divided by the scale, with a flag for those that are not finite, and the next scale. Nothing
// waits for the device.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

const char* const unscale_kernel = R"(
kernel void unscale(global X_T* gradients, global float* found, global const float* inverse_scale) {
  long i = get_global_id(0);
  T v = LOADX(gradients, i);
  if (!isfinite(v)) *found = 1;  // any number of items write the same
  STOREX(gradients, i, v * (T)*inverse_scale);
}
)";

const char* const next_scale_kernel = R"(
kernel void next_scale(global float* scale, global int* steps, global const float* found, float growth, float backoff, int interval) {
  if (*found != 0) {
    *scale *= backoff;
    *steps = 0;
    return;
  }
  if (*steps + 1 < interval) {
    *steps += 1;
    return;
  }
  float next = *scale * growth;
  if (isfinite(next)) *scale = next;
  *steps = 0;
}
)";

void unscale(at::TensorList gradients, Tensor& found, const Tensor& inverse_scale) {
    TORCH_CHECK(found.numel() == 1 && found.scalar_type() == at::kFloat, "found_inf must be a 1-element float tensor.");
    TORCH_CHECK(inverse_scale.numel() == 1 && inverse_scale.scalar_type() == at::kFloat,
                "inv_scale must be a 1-element float tensor.");
    for (const Tensor& gradient : gradients) {
        if (gradient.numel() == 0)
            continue;
        const auto type = gradient.scalar_type();
        const Device& device = opencl_device(gradient);
        TORCH_CHECK(is_floating(type), "unscaling of gradients of type ", type);
        check_supported(type, device.index, "unscaling");
        const bool is_dense = gradient.is_non_overlapping_and_dense();
        const Tensor elements = is_dense ? gradient : gradient.contiguous();
        {
            Launch launch(device, kernel_of(device, std::string("unscale ") + short_name(type), "unscale", [type] {
                              return compute_type_macros(type) + access_macros("X", type) + "#define X_T " +
                                     storage_name(type) + unscale_kernel;
                          }));
            launch.written(elements).written(found).read(inverse_scale);
            launch.run({static_cast<size_t>(elements.numel()), 1, 1});
        }
        if (!is_dense)
            gradient.copy_(elements);
    }
}

Tensor& next_scale(Tensor& scale, Tensor& steps, const Tensor& found, double growth, double backoff, int64_t interval) {
    TORCH_CHECK(scale.numel() == 1 && scale.scalar_type() == at::kFloat,
                "current_scale must be a 1-element float tensor.");
    TORCH_CHECK(steps.numel() == 1 && steps.scalar_type() == at::kInt,
                "growth_tracker must be a 1-element int tensor.");
    TORCH_CHECK(found.numel() == 1 && found.scalar_type() == at::kFloat, "found_inf must be a 1-element float tensor.");
    const Device& device = opencl_device(scale);
    Launch launch(device, kernel_of(device, "next_scale", "next_scale", [] { return next_scale_kernel; }));
    launch.written(scale).written(steps).read(found);
    launch.value(static_cast<float>(growth)).value(static_cast<float>(backoff)).value(static_cast<int32_t>(interval));
    launch.run({1, 1, 1});
    return scale;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_amp_foreach_non_finite_check_and_unscale_", unscale));
    m.impl(NATIVE("_amp_update_scale_", next_scale));
}

}  // namespace torch_opencl
