// What images the devices of a context can use: all that Polder has on devices whose code Polder's compiler makes, and on others what
// their own compiler has as well. Any thread. Extents in elements.
#pragma once

#include <runtime/context.h>
#include <runtime/device.h>
#include <runtime/image.h>

namespace polder::runtime {

// The largest extents of a type on one device; 0 where the type, or images there, have none.
[[nodiscard]] ImageExtents largest_extents(const Device& device, cl_mem_object_type type);
// How many images a kernel may use so, and how many samplers.
[[nodiscard]] cl_uint image_arguments(const Device& device, driver::ImageUse use);
[[nodiscard]] cl_uint samplers(const Device& device);
// Not larger than the device's largest image of the type.
[[nodiscard]] bool fits(const Device& device, const ImageShape& image);
// Whether a kernel on the device may use images of a format in this way.
[[nodiscard]] bool supports(const Device& device, const cl_image_format& format, cl_mem_object_type type,
                            driver::ImageUse use);
// Likewise, in the ways that the flags of clGetSupportedImageFormats or clCreateImage name.
[[nodiscard]] bool supports(const Device& device, const cl_image_format& format, cl_mem_object_type type,
                            cl_mem_flags flags);
// What at least one device of the context supports.
[[nodiscard]] std::vector<cl_image_format> supported_formats(const Context& context, cl_mem_flags flags,
                                                             cl_mem_object_type type);

}  // namespace polder::runtime
