#include <runtime/device_images.h>

#include <algorithm>

namespace polder::runtime {
namespace {

using driver::ImageUse;

// Nothing where the device has all that Polder has.
const driver::ImageLimits* limits_of(const Device& device) {
    return device.info().language && device.info().language->images ? &*device.info().language->images : nullptr;
}

size_t smaller(size_t ours, uint64_t other) { return static_cast<size_t>(std::min<uint64_t>(ours, other)); }

}  // namespace

ImageExtents largest_extents(const Device& device, cl_mem_object_type type) {
    ImageExtents extents = device.has_images() ? largest_extents(type) : ImageExtents{};
    const driver::ImageLimits* const limits = limits_of(device);
    if (!limits)
        return extents;
    if (type == CL_MEM_OBJECT_IMAGE3D)
        return {smaller(extents.width, limits->extents_3d[0]), smaller(extents.height, limits->extents_3d[1]),
                smaller(extents.depth, limits->extents_3d[2]), 0};
    const bool is_buffer = type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
    return {smaller(extents.width, is_buffer ? limits->buffer_width : limits->extents_2d[0]),
            smaller(extents.height, limits->extents_2d[1]), 0, smaller(extents.array_size, limits->array_size)};
}

cl_uint image_arguments(const Device& device, ImageUse use) {
    const driver::ImageLimits* const limits = limits_of(device);
    const cl_uint ours = device.has_images() ? image_arguments_max : 0;
    return limits ? std::min(ours, limits->arguments[static_cast<size_t>(use)]) : ours;
}

cl_uint samplers(const Device& device) {
    const driver::ImageLimits* const limits = limits_of(device);
    const cl_uint ours = device.has_images() ? samplers_max : 0;
    return limits ? std::min(ours, limits->samplers) : ours;
}

bool fits(const Device& device, const ImageShape& image) {
    const ImageExtents largest = largest_extents(device, image.type);
    return image.extents.width <= largest.width && image.extents.height <= largest.height &&
           image.extents.depth <= largest.depth && image.extents.array_size <= largest.array_size;
}

bool supports(const Device& device, const cl_image_format& format, cl_mem_object_type type, ImageUse use) {
    if (!device.has_images() || !is_supported(format, type))
        return false;
    const driver::ImageLimits* const limits = limits_of(device);
    if (!limits)
        return true;
    const auto& list = limits->formats[static_cast<size_t>(use)][type - CL_MEM_OBJECT_IMAGE2D];
    return std::ranges::find(list, driver::ImageFormat{format.image_channel_order, format.image_channel_data_type}) !=
           list.end();
}

bool supports(const Device& device, const cl_image_format& format, cl_mem_object_type type, cl_mem_flags flags) {
    if (flags & CL_MEM_KERNEL_READ_AND_WRITE)
        return supports(device, format, type, ImageUse::read_write);
    const bool may_read = !(flags & CL_MEM_WRITE_ONLY);
    const bool may_write = !(flags & CL_MEM_READ_ONLY);
    return (!may_read || supports(device, format, type, ImageUse::read)) &&
           (!may_write || supports(device, format, type, ImageUse::write));
}

std::vector<cl_image_format> supported_formats(const Context& context, cl_mem_flags flags, cl_mem_object_type type) {
    std::vector<cl_image_format> list = supported_formats(flags, type);
    std::erase_if(list, [&](const cl_image_format& format) {
        return std::ranges::none_of(context.devices(),
                                    [&](const Ref<Device>& device) { return supports(*device, format, type, flags); });
    });
    return list;
}

}  // namespace polder::runtime
