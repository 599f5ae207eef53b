// The requirements of an image before it is created: clGetImageRequirementsInfoEXT (cl_ext_image_requirements_info, and
// cl_ext_image_from_buffer for slice pitches).
#include "image_checks.h"
#include "mem_checks.h"
#include "mem_flags.h"

#include <runtime/image.h>

#include <algorithm>

using namespace polder;
using namespace polder::api;
using namespace polder::runtime;

namespace {

struct Wanted {
    const cl_image_format* format;
    const cl_image_desc* description;
};

Result<void> check(cl_context handle, const cl_mem_properties* properties, cl_mem_flags flags, const Wanted& wanted) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    // CL_INVALID_OPERATION: no device of the context supports images.
    if (!has_images(*context))
        return fail(Status::invalid_operation);
    // CL_INVALID_PROPERTY: properties is not empty; no property is defined for images.
    if (properties && properties[0] != 0)
        return fail(Status::invalid_property);
    // CL_INVALID_VALUE: flags are not valid.
    POLDER_TRY(check_flags(flags & ~cl_mem_flags{CL_MEM_KERNEL_READ_AND_WRITE}));
    if (wanted.format)
        POLDER_TRY(check_format(wanted.format));
    // CL_INVALID_IMAGE_DESCRIPTOR: image_type is neither 0 nor known.
    if (wanted.description && wanted.description->image_type && !is_image_type(wanted.description->image_type))
        return fail(Status::invalid_image_descriptor);
    return {};
}

// CL_INVALID_IMAGE_DESCRIPTOR: the size of the image is not valid. Only queries of limits take sizes of 0.
Result<void> check_size(const Wanted& wanted) {
    if (wanted.description && wanted.description->image_type && !check_extents(*wanted.description))
        return fail(Status::invalid_image_descriptor);
    return {};
}

// Any element may begin an image, a row or a slice, so the alignment is the size of an element, or of the largest element if no format
// is given.
Result<size_t> alignment(const Wanted& wanted) {
    POLDER_TRY(check_size(wanted));
    constexpr size_t largest_element = 16;
    return image_alignment_elements * (wanted.format ? size_t{*element_bytes(*wanted.format)} : largest_element);
}

Result<size_t> size_of_image(const Wanted& wanted) {
    // CL_INVALID_VALUE: image_format or image_desc is null, and the query needs it.
    if (!wanted.format || !wanted.description)
        return fail(Status::invalid_value);
    POLDER_TRY(check_size(wanted));
    POLDER_ASSIGN(shape, check_shape(*wanted.format, *wanted.description, Pitches::free));
    return size_t{shape.size()};
}

using Extent = size_t ImageExtents::*;

// The maximum of an extent for the given image type, or for all types that have the extent.
Result<cl_uint> largest(const Wanted& wanted, Extent extent) {
    const cl_mem_object_type type = wanted.description ? wanted.description->image_type : 0;
    if (type != 0) {
        const size_t most = largest_extents(type).*extent;
        // CL_INVALID_IMAGE_DESCRIPTOR: images of the type have no such extent.
        if (most == 0)
            return fail(Status::invalid_image_descriptor);
        return static_cast<cl_uint>(most);
    }
    size_t least = SIZE_MAX;
    for (cl_mem_object_type any = CL_MEM_OBJECT_IMAGE2D; any <= CL_MEM_OBJECT_IMAGE1D_BUFFER; ++any)
        if (const size_t most = largest_extents(any).*extent)
            least = std::min(least, most);
    return static_cast<cl_uint>(least);
}

template <class T>
Result<void> answer(const Result<T>& value, const Info& info) {
    if (!value)
        return fail(value.error());
    return info.value<T>(*value);
}

Result<void> answer(cl_image_requirements_info_ext name, const Wanted& wanted, const Info& info) {
    switch (name) {
    case CL_IMAGE_REQUIREMENTS_BASE_ADDRESS_ALIGNMENT_EXT:
    case CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT:
    case CL_IMAGE_REQUIREMENTS_SLICE_PITCH_ALIGNMENT_EXT: return answer(alignment(wanted), info);
    case CL_IMAGE_REQUIREMENTS_SIZE_EXT: return answer(size_of_image(wanted), info);
    case CL_IMAGE_REQUIREMENTS_MAX_WIDTH_EXT: return answer(largest(wanted, &ImageExtents::width), info);
    case CL_IMAGE_REQUIREMENTS_MAX_HEIGHT_EXT: return answer(largest(wanted, &ImageExtents::height), info);
    case CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT: return answer(largest(wanted, &ImageExtents::depth), info);
    case CL_IMAGE_REQUIREMENTS_MAX_ARRAY_SIZE_EXT: return answer(largest(wanted, &ImageExtents::array_size), info);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace

CL_API_ENTRY cl_int CL_API_CALL clGetImageRequirementsInfoEXT(cl_context context, const cl_mem_properties* properties,
                                                              cl_mem_flags flags, const cl_image_format* image_format,
                                                              const cl_image_desc* image_desc,
                                                              cl_image_requirements_info_ext param_name,
                                                              size_t param_value_size, void* param_value,
                                                              size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        const Wanted wanted{image_format, image_desc};
        POLDER_TRY(check(context, properties, flags, wanted));
        return answer(param_name, wanted, Info{param_value_size, param_value, param_value_size_ret});
    });
}
