#include <algorithm>
#include <proxy/foreign_images.h>

namespace polder::proxy {
namespace {

using driver::ImageUse;

constexpr cl_mem_flags flags_of_uses[] = {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_KERNEL_READ_AND_WRITE};
static_assert(std::size(flags_of_uses) == driver::image_uses);

bool has_image_functions(const cl_icd_dispatch& cl) {
    return cl.clCreateImage && cl.clGetSupportedImageFormats && cl.clEnqueueCopyBufferToImage &&
           cl.clEnqueueCopyImageToBuffer && cl.clCreateSampler && cl.clReleaseSampler;
}

std::vector<driver::ImageFormat> formats_of(const ForeignContext& context, cl_mem_flags flags,
                                            cl_mem_object_type type) {
    cl_uint count = 0;
    if (context.cl.clGetSupportedImageFormats(context.handle, flags, type, 0, nullptr, &count) != CL_SUCCESS ||
        count == 0)
        return {};
    std::vector<cl_image_format> list(count);
    if (context.cl.clGetSupportedImageFormats(context.handle, flags, type, count, list.data(), &count) != CL_SUCCESS)
        return {};
    list.resize(std::min<size_t>(list.size(), count));
    std::vector<driver::ImageFormat> formats;
    for (const cl_image_format& format : list)
        formats.push_back({format.image_channel_order, format.image_channel_data_type});
    return formats;
}

}  // namespace

std::optional<driver::ImageLimits> image_limits_of(const ForeignContext& context) {
    const auto get = [&]<class Value>(cl_device_info what, Value otherwise) {
        return ask<Value>(context.cl, context.device, what, otherwise);
    };
    if (!has_image_functions(context.cl) || !get(CL_DEVICE_IMAGE_SUPPORT, cl_bool{CL_FALSE}))
        return std::nullopt;
    driver::ImageLimits limits;
    const auto size = [&](cl_device_info what) { return uint64_t{get(what, size_t{0})}; };
    limits.extents_2d = {size(CL_DEVICE_IMAGE2D_MAX_WIDTH), size(CL_DEVICE_IMAGE2D_MAX_HEIGHT)};
    limits.extents_3d = {size(CL_DEVICE_IMAGE3D_MAX_WIDTH), size(CL_DEVICE_IMAGE3D_MAX_HEIGHT),
                         size(CL_DEVICE_IMAGE3D_MAX_DEPTH)};
    limits.array_size = size(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE);
    limits.buffer_width = size(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
    const bool is_2 = context.version >= CL_MAKE_VERSION(2, 0, 0);
    limits.arguments = {get(CL_DEVICE_MAX_READ_IMAGE_ARGS, cl_uint{0}), get(CL_DEVICE_MAX_WRITE_IMAGE_ARGS, cl_uint{0}),
                        is_2 ? get(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, cl_uint{0}) : 0};
    limits.samplers = get(CL_DEVICE_MAX_SAMPLERS, cl_uint{0});
    for (size_t use = 0; use < driver::image_uses; ++use)
        for (cl_mem_object_type type = 0; type < driver::image_types && limits.arguments[use] != 0; ++type)
            limits.formats[use][type] = formats_of(context, flags_of_uses[use], CL_MEM_OBJECT_IMAGE2D + type);
    const size_t image_2d = static_cast<size_t>(driver::ImageType::image_2d);
    if (limits.formats[static_cast<size_t>(ImageUse::read)][image_2d].empty())
        return std::nullopt;
    return limits;
}

}  // namespace polder::proxy
