// Images: creation and queries. OpenCL 3.0, sections 5.3.1 to 5.3.3 and 5.3.8.
#include "image_checks.h"
#include "mem_checks.h"
#include "mem_flags.h"
#include "mem_properties.h"

#include <runtime/device_images.h>
#include <runtime/mem_object.h>

#include <algorithm>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

struct ImageArguments {
    const cl_mem_properties* properties;
    cl_mem_flags flags;
    const cl_image_format* format;
    const cl_image_desc* description;
    void* host_pointer;
};

// The flags of an image that shows the bytes of `source`.
Result<cl_mem_flags> inherited_flags(cl_mem_flags source, cl_mem_flags flags) {
    // CL_INVALID_VALUE: flags contain CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR or CL_MEM_COPY_HOST_PTR.
    if (flags & host_pointer_use)
        return fail(Status::invalid_value);
    POLDER_TRY(check_access_within(source, flags));
    // CL_INVALID_VALUE: mem_object was created with CL_MEM_IMMUTABLE_EXT, and flags do not contain it.
    if ((source & immutable) && !(flags & immutable))
        return fail(Status::invalid_value);
    if (!(flags & device_access))
        flags |= source & device_access;
    if (!(flags & host_access))
        flags |= source & host_access;
    return flags | (source & host_pointer_use);
}

// Of a shape that Polder has.
Result<void> check_devices(const Context& context, cl_mem_flags flags, const ImageShape& shape) {
    const auto some = [&](auto can) {
        return std::ranges::any_of(context.devices(), [&](const Ref<Device>& device) { return can(*device); });
    };
    // CL_INVALID_IMAGE_SIZE: larger than the images of all devices.
    if (!some([&](const Device& device) { return fits(device, shape); }))
        return fail(Status::invalid_image_size);
    // CL_IMAGE_FORMAT_NOT_SUPPORTED: by no device.
    if (!some([&](const Device& device) { return supports(device, shape.format, shape.type, flags); }))
        return fail(Status::image_format_not_supported);
    return {};
}

Result<Ref<MemObject>> create_from(MemObject& source, const Context& context, const ImageArguments& arguments) {
    // CL_INVALID_CONTEXT: mem_object is of another context.
    if (&source.context() != &context)
        return fail(Status::invalid_context);
    POLDER_ASSIGN(flags, inherited_flags(source.flags(), arguments.flags));
    // CL_INVALID_HOST_PTR: host_ptr is not null.
    if (arguments.host_pointer)
        return fail(Status::invalid_host_ptr);
    POLDER_ASSIGN(shape, source.image() ? check_view(source, *arguments.format, *arguments.description)
                                        : check_shape(*arguments.format, *arguments.description, Pitches::aligned));
    if (!source.image())
        POLDER_TRY(check_fits(source, shape));
    POLDER_TRY(check_devices(context, flags, shape));
    return MemObject::create_image(
        Ref<Context>::share(&source.context()), Ref<MemObject>::share(&source), flags, shape, nullptr,
        arguments.properties ? std::vector<cl_mem_properties>{0} : std::vector<cl_mem_properties>{});
}

Result<void> check_size(const Context& context, const ImageShape& shape) {
    // CL_MEM_OBJECT_ALLOCATION_FAILURE: the image is larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE of all devices.
    if (shape.size() > context.max_allocation_bytes())
        return fail(Status::mem_object_allocation_failure);
    return {};
}

Result<Ref<MemObject>> create_external(Context& context, MemProperties properties, const ImageArguments& arguments) {
    POLDER_TRY(ExternalProperties::check_arguments(arguments.flags, arguments.host_pointer));
    // CL_INVALID_IMAGE_DESCRIPTOR: mem_object is not null, and the properties import memory.
    if (arguments.description->mem_object)
        return fail(Status::invalid_image_descriptor);
    POLDER_ASSIGN(shape, check_shape(*arguments.format, *arguments.description, Pitches::free));
    POLDER_TRY(check_size(context, shape));
    const cl_mem_flags flags = default_access(arguments.flags);
    POLDER_TRY(check_devices(context, flags, shape));
    auto memory = std::move(properties.external).import(shape.size(), flags);
    // CL_INVALID_IMAGE_SIZE: the imported memory is smaller than the image.
    if (!memory && memory.error().status() == Status::invalid_buffer_size)
        return fail(Status::invalid_image_size);
    POLDER_ASSIGN(imported, context.reported(std::move(memory)));
    return context.reported(MemObject::create_external_image(Ref<Context>::share(&context), std::move(imported), flags,
                                                             shape, std::move(properties.list)));
}

Result<Ref<MemObject>> create_own(Context& context, const ImageArguments& arguments) {
    POLDER_TRY(check_contents(arguments.flags));
    // CL_INVALID_HOST_PTR: host_ptr is null and flags require it, or host_ptr is not null and flags do not use it. Checked after the
    // descriptor, whose pitches depend on host_ptr.
    const bool needs_pointer = arguments.flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    POLDER_ASSIGN(shape, check_shape(*arguments.format, *arguments.description,
                                     arguments.host_pointer ? Pitches::free : Pitches::none));
    if (needs_pointer != (arguments.host_pointer != nullptr))
        return fail(Status::invalid_host_ptr);
    POLDER_TRY(check_size(context, shape));
    const cl_mem_flags flags = default_access(arguments.flags);
    POLDER_TRY(check_devices(context, flags, shape));
    return context.reported(MemObject::create_image(
        Ref<Context>::share(&context), nullptr, flags, shape, arguments.host_pointer,
        arguments.properties ? std::vector<cl_mem_properties>{0} : std::vector<cl_mem_properties>{}));
}

Result<cl_mem> create_image(cl_context handle, const ImageArguments& arguments) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    // CL_INVALID_OPERATION: no device of the context supports images.
    if (!has_images(*context))
        return fail(Status::invalid_operation);
    POLDER_ASSIGN(properties, check_mem_properties(*context, PropertiesOf::image, arguments.properties));
    POLDER_TRY(check_flags(arguments.flags));
    POLDER_TRY(check_format(arguments.format));
    // CL_INVALID_IMAGE_DESCRIPTOR: image_desc is null.
    if (!arguments.description)
        return fail(Status::invalid_image_descriptor);
    POLDER_ASSIGN(source, check_source(*arguments.description));
    const auto create = [&] {
        if (properties.external.has_source())
            return create_external(*context, std::move(properties), arguments);
        return source ? create_from(*source, *context, arguments) : create_own(*context, arguments);
    };
    POLDER_ASSIGN(image, create());
    return expose<cl_mem>(std::move(image));
}

// CL_INVALID_IMAGE_SIZE: clCreateImage2D and clCreateImage3D have no descriptor, so wrong pitches are a wrong size.
Result<cl_mem> create_with_size_errors(cl_context context, const ImageArguments& arguments) {
    auto image = create_image(context, arguments);
    if (!image && image.error().status() == Status::invalid_image_descriptor)
        return fail(Status::invalid_image_size);
    return image;
}

Result<void> list_formats(cl_context context, cl_mem_flags flags, cl_mem_object_type type,
                          std::span<cl_image_format> place, cl_uint* count) {
    POLDER_ASSIGN(checked, from_handle<Context>(context));
    // CL_INVALID_VALUE: image_type is unknown, or num_entries is 0 and image_formats is not null.
    if (!is_image_type(type) || (place.data() && place.empty()))
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: flags are not valid. CL_MEM_KERNEL_READ_AND_WRITE is valid in this call only, with all other flags.
    POLDER_TRY(check_flags(flags & ~cl_mem_flags{CL_MEM_KERNEL_READ_AND_WRITE}));
    const std::vector<cl_image_format> list = supported_formats(*checked, default_access(flags), type);
    if (place.data())
        std::copy_n(list.begin(), std::min(list.size(), place.size()), place.begin());
    if (count)
        *count = static_cast<cl_uint>(list.size());
    return {};
}

Result<void> get_image_info(cl_mem handle, cl_image_info name, const Info& info) {
    POLDER_ASSIGN(object, from_handle<MemObject>(handle));
    const ImageShape* const image = object->image();
    // CL_INVALID_MEM_OBJECT: the object is not an image.
    if (!image)
        return fail(Status::invalid_mem_object);
    const MemObject* const source = object->parent();
    switch (name) {
    case CL_IMAGE_FORMAT: return info.value(image->format);
    case CL_IMAGE_ELEMENT_SIZE: return info.value<size_t>(image->element_bytes);
    case CL_IMAGE_ROW_PITCH: return info.value<size_t>(image->row_pitch);
    case CL_IMAGE_SLICE_PITCH: return info.value<size_t>(image->slice_pitch);
    case CL_IMAGE_WIDTH: return info.value<size_t>(image->extents.width);
    case CL_IMAGE_HEIGHT: return info.value<size_t>(image->extents.height);
    case CL_IMAGE_DEPTH: return info.value<size_t>(image->extents.depth);
    case CL_IMAGE_ARRAY_SIZE: return info.value<size_t>(image->extents.array_size);
    case CL_IMAGE_BUFFER: return info.value<cl_mem>(source && !source->image() ? handle_of<cl_mem>(source) : nullptr);
    case CL_IMAGE_NUM_MIP_LEVELS:
    case CL_IMAGE_NUM_SAMPLES: return info.value<cl_uint>(0);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                              const cl_image_desc* description, void* host_ptr, cl_int* errcode_ret) {
    return create<cl_mem>(errcode_ret,
                          [&] { return create_image(context, {nullptr, flags, format, description, host_ptr}); });
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context, const cl_mem_properties* properties,
                                                            cl_mem_flags flags, const cl_image_format* format,
                                                            const cl_image_desc* description, void* host_ptr,
                                                            cl_int* errcode_ret) {
    return create<cl_mem>(errcode_ret,
                          [&] { return create_image(context, {properties, flags, format, description, host_ptr}); });
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                                size_t width, size_t height, size_t row_pitch, void* host_ptr,
                                                cl_int* errcode_ret) {
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    description.image_width = width;
    description.image_height = height;
    description.image_row_pitch = row_pitch;
    return create<cl_mem>(errcode_ret, [&] {
        return create_with_size_errors(context, {nullptr, flags, format, &description, host_ptr});
    });
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                                size_t width, size_t height, size_t depth, size_t row_pitch,
                                                size_t slice_pitch, void* host_ptr, cl_int* errcode_ret) {
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE3D;
    description.image_width = width;
    description.image_height = height;
    description.image_depth = depth > 1 ? depth : 0;  // CL_INVALID_IMAGE_SIZE: image_depth is 0 or 1.
    description.image_row_pitch = row_pitch;
    description.image_slice_pitch = slice_pitch;
    return create<cl_mem>(errcode_ret, [&] {
        return create_with_size_errors(context, {nullptr, flags, format, &description, host_ptr});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetSupportedImageFormats(cl_context context, cl_mem_flags flags,
                                                           cl_mem_object_type image_type, cl_uint num_entries,
                                                           cl_image_format* image_formats, cl_uint* num_image_formats) {
    return entry(
        [&] { return list_formats(context, flags, image_type, {image_formats, num_entries}, num_image_formats); });
}

CL_API_ENTRY cl_int CL_API_CALL clGetImageInfo(cl_mem image, cl_image_info param_name, size_t param_value_size,
                                               void* param_value, size_t* param_value_size_ret) {
    return entry(
        [&] { return get_image_info(image, param_name, Info{param_value_size, param_value, param_value_size_ret}); });
}
