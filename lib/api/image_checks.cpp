// check_shape computes an ImageShape from format and descriptor, in steps: type, format, extents, pitches. The other functions check an
// image that is created from a buffer or from another image.
#include "image_checks.h"

#include "entry.h"

#include <algorithm>
#include <utility>

namespace polder::api {

using runtime::ImageExtents;
using runtime::ImageShape;
using runtime::MemObject;

namespace {

// The extents in the descriptor that its image type has.
ImageExtents extents_of(const cl_image_desc& description) {
    const ImageExtents largest = runtime::largest_extents(description.image_type);
    return {description.image_width, largest.height ? description.image_height : 0,
            largest.depth ? description.image_depth : 0, largest.array_size ? description.image_array_size : 0};
}

uintptr_t alignment_of(const ImageShape& shape) {
    return uintptr_t{runtime::image_alignment_elements} * shape.element_bytes;
}

// Sets and checks the slice pitch of an image with slices or layers. Its extents are valid.
Result<void> set_slice_pitch(ImageShape& shape, const cl_image_desc& description) {
    const size_t rows = std::max<size_t>(shape.extents.height, 1);
    size_t tight = 0;
    size_t whole = 0;
    const size_t given = description.image_slice_pitch;
    // CL_INVALID_IMAGE_DESCRIPTOR: the rows of a slice are larger than the address space.
    if (__builtin_mul_overflow(shape.row_pitch, rows, &tight))
        return fail(Status::invalid_image_descriptor);
    shape.slice_pitch = given ? given : tight;
    // CL_INVALID_IMAGE_DESCRIPTOR: the slice pitch is less than a slice, or not a multiple of the row pitch, or so large that
    // the size of the image overflows.
    if (shape.slice_pitch < tight || shape.slice_pitch % shape.row_pitch != 0 ||
        __builtin_mul_overflow(shape.slice_pitch, std::max(shape.extents.depth, shape.extents.array_size), &whole))
        return fail(Status::invalid_image_descriptor);
    return {};
}

Result<void> set_pitches(ImageShape& shape, const cl_image_desc& description, Pitches pitches) {
    const size_t given = description.image_row_pitch;
    // CL_INVALID_IMAGE_DESCRIPTOR: a pitch is not 0, and both host_ptr and mem_object are null.
    if (pitches == Pitches::none && (given || description.image_slice_pitch))
        return fail(Status::invalid_image_descriptor);
    const bool has_slices = shape.extents.depth || shape.extents.array_size;
    // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR: a pitch of an image from a buffer is not a multiple of the alignment that
    // clGetImageRequirementsInfoEXT reports.
    if (pitches == Pitches::aligned &&
        (given % alignment_of(shape) != 0 || (has_slices && description.image_slice_pitch % alignment_of(shape) != 0)))
        return fail(Status::invalid_image_format_descriptor);
    const size_t tight = shape.extents.width * shape.element_bytes;
    shape.row_pitch = given ? given : tight;
    // CL_INVALID_IMAGE_DESCRIPTOR: the row pitch is less than a row, or not a multiple of the element size.
    if (shape.row_pitch < tight || shape.row_pitch % shape.element_bytes != 0)
        return fail(Status::invalid_image_descriptor);
    if (has_slices)
        return set_slice_pitch(shape, description);
    size_t whole = 0;
    // CL_INVALID_IMAGE_DESCRIPTOR: the image is larger than the address space.
    if (__builtin_mul_overflow(shape.row_pitch, std::max<size_t>(shape.extents.height, 1), &whole))
        return fail(Status::invalid_image_descriptor);
    return {};
}

// OpenCL 3.0, table "Compatible Image Channel Orders".
bool are_compatible(cl_channel_order view, cl_channel_order source) {
    constexpr std::pair<cl_channel_order, cl_channel_order> both_ways[] = {
        {CL_sBGRA, CL_BGRA}, {CL_sRGBA, CL_RGBA}, {CL_sRGB, CL_RGB}, {CL_sRGBx, CL_RGBx}};
    for (const auto& [a, b] : both_ways)
        if ((view == a && source == b) || (view == b && source == a))
            return true;
    return view == CL_DEPTH && source == CL_R;
}

}  // namespace

Result<void> check_extents(const cl_image_desc& description) {
    const ImageExtents extents = extents_of(description);
    const ImageExtents largest = runtime::largest_extents(description.image_type);
    const auto is_valid = [](size_t extent, size_t max) { return max == 0 || (extent >= 1 && extent <= max); };
    // CL_INVALID_IMAGE_SIZE: an extent is 0 or exceeds its maximum.
    if (!is_valid(extents.width, largest.width) || !is_valid(extents.height, largest.height) ||
        !is_valid(extents.depth, largest.depth) || !is_valid(extents.array_size, largest.array_size))
        return fail(Status::invalid_image_size);
    return {};
}

Result<void> check_format(const cl_image_format* format) {
    // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR: image_format is null, or its values are not valid together.
    if (!format || !runtime::element_bytes(*format))
        return fail(Status::invalid_image_format_descriptor);
    return {};
}

Result<MemObject*> check_source(const cl_image_desc& description) {
    // CL_INVALID_IMAGE_DESCRIPTOR: image_type is unknown.
    if (!runtime::is_image_type(description.image_type))
        return fail(Status::invalid_image_descriptor);
    // CL_INVALID_IMAGE_DESCRIPTOR: num_mip_levels or num_samples is not 0, and no extension allows that.
    if (description.num_mip_levels != 0 || description.num_samples != 0)
        return fail(Status::invalid_image_descriptor);
    if (!description.mem_object) {
        // CL_INVALID_IMAGE_DESCRIPTOR: image_type is CL_MEM_OBJECT_IMAGE1D_BUFFER, and mem_object is null.
        if (description.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
            return fail(Status::invalid_image_descriptor);
        return nullptr;
    }
    const auto object = from_handle<MemObject>(description.mem_object);
    // CL_INVALID_IMAGE_DESCRIPTOR: mem_object is not valid, or a pipe, or an image and image_type is not CL_MEM_OBJECT_IMAGE2D.
    if (!object || (*object)->pipe() || ((*object)->image() && description.image_type != CL_MEM_OBJECT_IMAGE2D))
        return fail(Status::invalid_image_descriptor);
    return *object;
}

Result<ImageShape> check_shape(const cl_image_format& format, const cl_image_desc& description, Pitches pitches) {
    ImageShape shape;
    shape.type = description.image_type;
    shape.format = format;
    shape.element_bytes = *runtime::element_bytes(format);
    shape.extents = extents_of(description);
    POLDER_TRY(check_extents(description));
    POLDER_TRY(set_pitches(shape, description, pitches));
    // CL_IMAGE_FORMAT_NOT_SUPPORTED: no device supports the format for images of this type.
    if (!runtime::is_supported(format, shape.type))
        return fail(Status::image_format_not_supported);
    return shape;
}

Result<void> check_fits(const MemObject& buffer, const ImageShape& shape) {
    // CL_INVALID_IMAGE_SIZE: the buffer is too small.
    if (shape.size() > buffer.size())
        return fail(Status::invalid_image_size);
    // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR: the buffer's host_ptr is not aligned to CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT.
    const auto address = reinterpret_cast<uintptr_t>(buffer.host_pointer());
    if (address % alignment_of(shape) != 0)
        return fail(Status::invalid_image_format_descriptor);
    return {};
}

Result<ImageShape> check_view(const MemObject& image, const cl_image_format& format, const cl_image_desc& description) {
    const ImageShape& source = *image.image();
    // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR: the channel type differs from that of mem_object, or the channel order is not compatible.
    if (format.image_channel_data_type != source.format.image_channel_data_type ||
        !are_compatible(format.image_channel_order, source.format.image_channel_order))
        return fail(Status::invalid_image_format_descriptor);
    // CL_INVALID_IMAGE_DESCRIPTOR: type, extents or pitches differ from those of mem_object. Pitches of 0 are allowed.
    const bool is_same = source.type == description.image_type && source.extents == extents_of(description) &&
                         (!description.image_row_pitch || description.image_row_pitch == source.row_pitch) &&
                         (!description.image_slice_pitch || description.image_slice_pitch == source.slice_pitch);
    if (!is_same)
        return fail(Status::invalid_image_descriptor);
    // CL_IMAGE_FORMAT_NOT_SUPPORTED: no device supports the format.
    if (!runtime::is_supported(format, source.type))
        return fail(Status::image_format_not_supported);
    ImageShape view = source;
    view.format = format;
    return view;
}

}  // namespace polder::api
