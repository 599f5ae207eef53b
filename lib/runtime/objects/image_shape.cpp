#include <runtime/image.h>

#include <algorithm>

namespace polder::runtime {
namespace {

bool has_layers(cl_mem_object_type type) {
    return type == CL_MEM_OBJECT_IMAGE1D_ARRAY || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
}

ImageKind kind_of(const cl_image_format& format) {
    const cl_channel_type type = format.image_channel_data_type;
    if (format.image_channel_order == CL_RGBA)
        switch (type) {
        case CL_FLOAT: return ImageKind::rgba_float;
        case CL_UNORM_INT8: return ImageKind::rgba_unorm8;
        case CL_SIGNED_INT32:
        case CL_UNSIGNED_INT32: return ImageKind::rgba_int32;
        case CL_UNSIGNED_INT8: return ImageKind::rgba_uint8;
        default: return ImageKind::other;
        }
    if (format.image_channel_order == CL_R && type == CL_FLOAT)
        return ImageKind::r_float;
    if (format.image_channel_order == CL_R && type == CL_UNORM_INT8)
        return ImageKind::r_unorm8;
    return ImageKind::other;
}

} // namespace

ImageExtents largest_extents(cl_mem_object_type type) {
    switch (type) {
    case CL_MEM_OBJECT_IMAGE1D: return {image_2d_extent_max, 0, 0, 0};
    case CL_MEM_OBJECT_IMAGE1D_ARRAY: return {image_2d_extent_max, 0, 0, image_array_size_max};
    case CL_MEM_OBJECT_IMAGE1D_BUFFER: return {image_buffer_width_max, 0, 0, 0};
    case CL_MEM_OBJECT_IMAGE2D: return {image_2d_extent_max, image_2d_extent_max, 0, 0};
    case CL_MEM_OBJECT_IMAGE2D_ARRAY: return {image_2d_extent_max, image_2d_extent_max, 0, image_array_size_max};
    case CL_MEM_OBJECT_IMAGE3D: return {image_3d_extent_max, image_3d_extent_max, image_3d_extent_max, 0};
    default: return {};
    }
}

std::array<size_t, 3> ImageShape::region() const {
    std::array<size_t, 3> region{extents.width, std::max<size_t>(extents.height, 1),
                                 std::max<size_t>(extents.depth, 1)};
    if (has_layers(type))
        region[type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? 1 : 2] = extents.array_size;
    return region;
}

driver::RectLayout ImageShape::layout() const {
    if (type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
        return {slice_pitch, slice_pitch * extents.array_size};
    return {row_pitch, slice_pitch ? slice_pitch : row_pitch * std::max<size_t>(extents.height, 1)};
}

uint64_t ImageShape::size() const { return layout().slice_pitch * region()[2]; }

memory::StorageRect ImageShape::rect(const size_t* origin, const size_t* region) const {
    const driver::RectLayout pitches = layout();
    const uint64_t offset = origin[0] * element_bytes + origin[1] * pitches.row_pitch + origin[2] * pitches.slice_pitch;
    return {offset, {region[0] * element_bytes, region[1], region[2]}, pitches};
}

ImageDescriptor ImageShape::descriptor() const {
    const driver::RectLayout pitches = layout();
    const std::array<size_t, 3> size = region();
    ImageDescriptor made{};
    made.row_pitch = pitches.row_pitch;
    made.slice_pitch = pitches.slice_pitch;
    made.width = static_cast<int32_t>(size[0]);
    made.height = static_cast<int32_t>(size[1]);
    made.depth = static_cast<int32_t>(size[2]);
    made.channel_order = format.image_channel_order;
    made.channel_type = format.image_channel_data_type;
    made.element_bytes = element_bytes;
    made.kind = static_cast<uint32_t>(kind_of(format));
    return made;
}

} // namespace polder::runtime
