#include <proxy/image_argument.h>

namespace polder::proxy {
namespace {

using driver::ImageType;
using driver::ImageUse;

constexpr cl_mem_flags flags_of(ImageUse use) {
    switch (use) {
    case ImageUse::read: return CL_MEM_READ_ONLY;
    case ImageUse::write: return CL_MEM_WRITE_ONLY;
    default: return CL_MEM_READ_WRITE;
    }
}

bool have_one_extent_and_format(const ImageArgument& a, const ImageArgument& b) {
    const ImageDescriptor& x = a.descriptor;
    const ImageDescriptor& y = b.descriptor;
    return a.type == b.type && x.width == y.width && x.height == y.height && x.depth == y.depth &&
           x.channel_order == y.channel_order && x.channel_type == y.channel_type;
}

}  // namespace

bool have_one_shape(const ImageArgument& a, const ImageArgument& b) {
    return a.use == b.use && have_one_extent_and_format(a, b);
}

bool write_one_image(const ImageArgument& a, const ImageArgument& b) {
    const ImageDescriptor& x = a.descriptor;
    const ImageDescriptor& y = b.descriptor;
    return a.use != ImageUse::read && b.use != ImageUse::read && x.data != 0 && x.data == y.data &&
           x.row_pitch == y.row_pitch && x.slice_pitch == y.slice_pitch && have_one_extent_and_format(a, b);
}

bool can_show_rows(const ForeignContext& context, const ImageArgument& argument, uint64_t offset) {
    if (argument.type == ImageType::buffer_1d)
        return true;
    const ForeignContext::ImageAlignments& elements = context.image_alignments;
    const ImageDescriptor& image = argument.descriptor;
    return argument.type == ImageType::image_2d && elements.pitch != 0 && elements.base != 0 &&
           image.row_pitch % (uint64_t{elements.pitch} * image.element_bytes) == 0 &&
           offset % (uint64_t{elements.base} * image.element_bytes) == 0;
}

cl_int create_image(const ForeignContext& context, const ImageArgument& argument, cl_mem buffer, cl_mem& image) {
    const ImageDescriptor& shape = argument.descriptor;
    const ImageType type = argument.type;
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D + static_cast<cl_mem_object_type>(type);
    description.image_width = static_cast<size_t>(shape.width);
    if (type == ImageType::image_2d || type == ImageType::array_2d || type == ImageType::image_3d)
        description.image_height = static_cast<size_t>(shape.height);
    if (type == ImageType::image_3d)
        description.image_depth = static_cast<size_t>(shape.depth);
    if (type == ImageType::array_1d || type == ImageType::array_2d)
        description.image_array_size = static_cast<size_t>(type == ImageType::array_1d ? shape.height : shape.depth);
    if (type == ImageType::image_2d && buffer)
        description.image_row_pitch = shape.row_pitch;
    description.mem_object = buffer;
    const cl_image_format format{shape.channel_order, shape.channel_type};
    cl_int code = CL_SUCCESS;
    image = context.cl.clCreateImage(context.handle, flags_of(argument.use), &format, &description, nullptr, &code);
    return image ? CL_SUCCESS : code == CL_SUCCESS ? CL_OUT_OF_RESOURCES : code;
}

}  // namespace polder::proxy
