#include "mem_checks.h"

#include "mem_flags.h"

#include <runtime/device_images.h>

#include <algorithm>

namespace polder::api {

using runtime::MemObject;

namespace {

Result<MemObject*> check_object(const EnqueueCall& call, cl_mem handle) {
    POLDER_ASSIGN(object, from_handle<MemObject>(handle));
    // CL_INVALID_CONTEXT: the object and the queue are of different contexts.
    if (&object->context() != &call.context())
        return fail(Status::invalid_context);
    return object;
}

} // namespace

Result<MemObject*> check_buffer(const EnqueueCall& call, cl_mem handle) {
    POLDER_ASSIGN(buffer, check_object(call, handle));
    // CL_INVALID_MEM_OBJECT: the object is an image or a pipe.
    if (!buffer->is_buffer())
        return fail(Status::invalid_mem_object);
    // CL_MISALIGNED_SUB_BUFFER_OFFSET: the origin of the sub-buffer is not aligned for the device of the queue.
    if (buffer->offset_in_parent() % call.queue().device().info().base_address_alignment != 0)
        return fail(Status::misaligned_sub_buffer_offset);
    return buffer;
}

Result<MemObject*> check_image(const EnqueueCall& call, cl_mem handle) {
    POLDER_ASSIGN(image, check_object(call, handle));
    // CL_INVALID_MEM_OBJECT: the object is not an image.
    if (!image->image())
        return fail(Status::invalid_mem_object);
    // CL_INVALID_OPERATION: the device of the queue does not support images.
    if (!call.queue().device().has_images())
        return fail(Status::invalid_operation);
    return image;
}

Result<void> check_support(const runtime::Device& device, const runtime::ImageShape& image,
                           std::initializer_list<driver::ImageUse> uses) {
    // Only devices of other implementations support less than Polder.
    if (!device.info().language) [[likely]]
        return {};
    // CL_INVALID_IMAGE_SIZE: the image is larger than images of the device.
    if (!runtime::fits(device, image))
        return fail(Status::invalid_image_size);
    // CL_IMAGE_FORMAT_NOT_SUPPORTED: the device does not support the image's format.
    if (std::ranges::none_of(
            uses, [&](driver::ImageUse use) { return runtime::supports(device, image.format, image.type, use); }))
        return fail(Status::image_format_not_supported);
    return {};
}

Result<void> check_host_reads(const MemObject& object) {
    // CL_INVALID_OPERATION: the object was created with CL_MEM_HOST_WRITE_ONLY or CL_MEM_HOST_NO_ACCESS.
    if (object.flags() & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))
        return fail(Status::invalid_operation);
    return {};
}

Result<void> check_writes(const MemObject& object) {
    // CL_INVALID_OPERATION: the object was created with CL_MEM_IMMUTABLE_EXT.
    if (object.flags() & immutable)
        return fail(Status::invalid_operation);
    return {};
}

Result<void> check_host_writes(const MemObject& object) {
    POLDER_TRY(check_writes(object));
    // CL_INVALID_OPERATION: the object was created with CL_MEM_HOST_READ_ONLY or CL_MEM_HOST_NO_ACCESS.
    if (object.flags() & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))
        return fail(Status::invalid_operation);
    return {};
}

Result<memory::MapAccess> check_map_flags(const MemObject& object, cl_map_flags flags) {
    constexpr cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    // CL_INVALID_VALUE: map_flags are unknown, or CL_MAP_WRITE_INVALIDATE_REGION is combined with another.
    if ((flags & ~known) || ((flags & CL_MAP_WRITE_INVALIDATE_REGION) && (flags & (CL_MAP_READ | CL_MAP_WRITE))))
        return fail(Status::invalid_value);
    if (flags & CL_MAP_READ)
        POLDER_TRY(check_host_reads(object));
    if (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION))
        POLDER_TRY(check_host_writes(object));
    if (flags & CL_MAP_WRITE_INVALIDATE_REGION)
        return memory::MapAccess::write_invalidate;
    if (flags & CL_MAP_WRITE)
        return flags & CL_MAP_READ ? memory::MapAccess::read_write : memory::MapAccess::write;
    return memory::MapAccess::read;
}

} // namespace polder::api
