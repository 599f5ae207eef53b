// The images that another implementation's device and its compiler have.
#pragma once

#include <optional>
#include <polder/image_limits.h>
#include <proxy/foreign_context.h>

namespace polder::proxy {

// Nothing when the device has no images, or lacks a function that the driver calls for them.
[[nodiscard]] std::optional<driver::ImageLimits> image_limits_of(const ForeignContext& context);

}  // namespace polder::proxy
