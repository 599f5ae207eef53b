// Commands on images: read, write, copy, fill, map, and copies between images and buffers. Each is a command on rectangles of
// bytes. OpenCL 3.0, sections 5.3.4 to 5.3.7.
#include "enqueue_commands.h"
#include "mem_checks.h"
#include "mem_references.h"
#include "rect.h"

#include <runtime/buffer_commands.h>
#include <runtime/image_commands.h>

#include <algorithm>

using namespace polder;
using namespace polder::runtime;
using memory::StorageRect;

namespace polder::api {
namespace {

// An image that the device of the queue can use. A command other than a launch may use a format that kernels there only read, or only write.
Result<MemObject*> check_command_image(const EnqueueCall& call, cl_mem handle) {
    POLDER_ASSIGN(image, check_image(call, handle));
    POLDER_TRY(
        check_support(call.queue().device(), *image->image(), {driver::ImageUse::read, driver::ImageUse::write}));
    return image;
}

// The bytes of a region, within the image's storage.
Result<StorageRect> check_region(const MemObject& object, const size_t* origin, const size_t* region) {
    // CL_INVALID_VALUE: origin or region is null.
    if (!origin || !region)
        return fail(Status::invalid_value);
    const std::array<size_t, 3> size = object.image()->region();
    for (size_t i = 0; i < 3; ++i) {
        // CL_INVALID_VALUE: an extent of region is 0, or the region is out of bounds. Dimensions that the image does not
        // have are of extent 1, so that their origin must be 0 and their region 1.
        if (region[i] == 0 || origin[i] >= size[i] || region[i] > size[i] - origin[i])
            return fail(Status::invalid_value);
    }
    StorageRect rect = object.image()->rect(origin, region);
    rect.offset += object.origin();
    return rect;
}

struct HostPitches {
    size_t row;
    size_t slice;
};

// The layout of the host memory that a region is read to or written from. A pitch of 0 means that there are no gaps.
Result<driver::RectLayout> check_host_layout(const MemObject& object, const StorageRect& rect,
                                             const HostPitches& given) {
    const cl_mem_object_type type = object.image()->type;
    const bool has_slices = object.image()->slice_pitch != 0;
    const size_t row = given.row ? given.row : rect.shape.row_bytes;
    // CL_INVALID_VALUE: the row pitch is less than a row of the region.
    if (row < rect.shape.row_bytes)
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: the slice pitch is not 0, and the image has neither slices nor layers.
    if (given.slice && !has_slices)
        return fail(Status::invalid_value);
    const size_t rows = type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? 1 : rect.shape.rows;
    size_t tight = 0;
    size_t whole = 0;
    // CL_INVALID_VALUE (both checks): the slice pitch is less than a slice of the region, or the region is larger than the address
    // space.
    if (__builtin_mul_overflow(row, rows, &tight))
        return fail(Status::invalid_value);
    const size_t slice = given.slice ? given.slice : tight;
    const size_t slices = type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? rect.shape.rows : rect.shape.slices;
    if (slice < tight || __builtin_mul_overflow(slice, slices, &whole))
        return fail(Status::invalid_value);
    return type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? driver::RectLayout{slice, whole} : driver::RectLayout{row, slice};
}

Result<void> read(const EnqueueCall& call, cl_mem image, Blocking blocking, const ImageRegion& region,
                  const HostPitches& pitches, void* to) {
    POLDER_ASSIGN(from, check_command_image(call, image));
    POLDER_ASSIGN(rect, check_region(*from, region.origin, region.size));
    POLDER_ASSIGN(layout, check_host_layout(*from, rect, pitches));
    // CL_INVALID_VALUE: ptr is null.
    if (!to)
        return fail(Status::invalid_value);
    POLDER_TRY(check_host_reads(*from));
    return call.enqueue(CL_COMMAND_READ_IMAGE, ReadCommand(borrow(from), rect, static_cast<std::byte*>(to), layout),
                        blocking);
}

Result<void> write(const EnqueueCall& call, cl_mem image, Blocking blocking, const ImageRegion& region,
                   const HostPitches& pitches, const void* from) {
    POLDER_ASSIGN(to, check_command_image(call, image));
    POLDER_ASSIGN(rect, check_region(*to, region.origin, region.size));
    POLDER_ASSIGN(layout, check_host_layout(*to, rect, pitches));
    // CL_INVALID_VALUE: ptr is null.
    if (!from)
        return fail(Status::invalid_value);
    POLDER_TRY(check_host_writes(*to));
    return call.enqueue(CL_COMMAND_WRITE_IMAGE,
                        WriteCommand(borrow(to), rect, static_cast<const std::byte*>(from), layout), blocking);
}

bool same_format(const ImageShape& a, const ImageShape& b) {
    return a.format.image_channel_order == b.format.image_channel_order &&
           a.format.image_channel_data_type == b.format.image_channel_data_type;
}

// The bytes of a buffer, one row after the other, that a region is copied to or from.
Result<StorageRect> check_buffer_part(const MemObject& buffer, const StorageRect& region, uint64_t offset) {
    const uint64_t row = region.shape.row_bytes;
    const uint64_t slice = row * region.shape.rows;
    const uint64_t bytes = slice * region.shape.slices;
    // CL_INVALID_VALUE: the region is out of the bounds of the buffer.
    if (offset > buffer.size() || bytes > buffer.size() - offset)
        return fail(Status::invalid_value);
    return StorageRect{buffer.origin() + offset, region.shape, {row, slice}};
}

// CL_INVALID_MEM_OBJECT: the image was created from the buffer.
Result<void> check_distinct(const MemObject& image, const MemObject& buffer) {
    if (image.parent() == &buffer)
        return fail(Status::invalid_mem_object);
    return {};
}

Result<void> copy_between(const EnqueueCall& call, MemObject* from, const StorageRect& from_rect, MemObject* to,
                          const StorageRect& to_rect, cl_command_type type) {
    POLDER_TRY(check_writes(*to));
    // CL_MEM_COPY_OVERLAP: the image shares bytes with the buffer, and the regions overlap.
    if (&from->storage() == &to->storage() && rects_overlap(from_rect, to_rect))
        return fail(Status::mem_copy_overlap);
    return call.enqueue(type, CopyCommand(borrow(from), from_rect, borrow(to), to_rect));
}

struct PitchPlaces {
    size_t* row;
    size_t* slice;
};

Result<void*> map(const EnqueueCall& call, cl_mem image, Blocking blocking, cl_map_flags flags,
                  const ImageRegion& region, const PitchPlaces& pitches) {
    POLDER_ASSIGN(object, check_command_image(call, image));
    POLDER_ASSIGN(rect, check_region(*object, region.origin, region.size));
    POLDER_ASSIGN(access, check_map_flags(*object, flags));
    const ImageShape& shape = *object->image();
    // CL_INVALID_VALUE: image_row_pitch is null, or image_slice_pitch is null for an image with slices or layers.
    if (!pitches.row || (shape.slice_pitch && !pitches.slice))
        return fail(Status::invalid_value);
    // CL_INVALID_OPERATION: the map is for writing, and a part of the region is already mapped for writing.
    POLDER_ASSIGN(command, MapCommand::create(share(object), rect, access));
    std::byte* const pointer = command.pointer();
    const MapCommand registered = command;  // `command` is moved from when it has to wait
    auto enqueued = call.enqueue(CL_COMMAND_MAP_IMAGE, std::move(command), blocking);
    if (!enqueued) {
        registered.abandon();
        return fail(enqueued.error());
    }
    *pitches.row = shape.row_pitch;
    if (pitches.slice)
        *pitches.slice = shape.slice_pitch;
    return pointer;
}

}  // namespace

Result<void> enqueue_image_copy(const EnqueueCall& call, cl_mem from_image, cl_mem to_image, const size_t* from_origin,
                                const size_t* to_origin, const size_t* region) {
    POLDER_ASSIGN(from, check_command_image(call, from_image));
    POLDER_ASSIGN(to, check_command_image(call, to_image));
    // CL_IMAGE_FORMAT_MISMATCH: the images have different formats.
    if (!same_format(*from->image(), *to->image()))
        return fail(Status::image_format_mismatch);
    POLDER_ASSIGN(from_rect, check_region(*from, from_origin, region));
    POLDER_ASSIGN(to_rect, check_region(*to, to_origin, region));
    POLDER_TRY(check_writes(*to));
    // CL_MEM_COPY_OVERLAP: the regions overlap within one image, or within bytes that two images share.
    if (&from->storage() == &to->storage() && rects_overlap(from_rect, to_rect))
        return fail(Status::mem_copy_overlap);
    return call.enqueue(CL_COMMAND_COPY_IMAGE, CopyCommand(borrow(from), from_rect, borrow(to), to_rect));
}

Result<void> enqueue_image_to_buffer(const EnqueueCall& call, cl_mem image, cl_mem buffer, const ImageRegion& region,
                                     size_t offset) {
    POLDER_ASSIGN(from, check_command_image(call, image));
    POLDER_ASSIGN(to, check_buffer(call, buffer));
    POLDER_TRY(check_distinct(*from, *to));
    POLDER_ASSIGN(from_rect, check_region(*from, region.origin, region.size));
    POLDER_ASSIGN(to_rect, check_buffer_part(*to, from_rect, offset));
    return copy_between(call, from, from_rect, to, to_rect, CL_COMMAND_COPY_IMAGE_TO_BUFFER);
}

Result<void> enqueue_buffer_to_image(const EnqueueCall& call, cl_mem buffer, cl_mem image, size_t offset,
                                     const ImageRegion& region) {
    POLDER_ASSIGN(from, check_buffer(call, buffer));
    POLDER_ASSIGN(to, check_command_image(call, image));
    POLDER_TRY(check_distinct(*to, *from));
    POLDER_ASSIGN(to_rect, check_region(*to, region.origin, region.size));
    POLDER_ASSIGN(from_rect, check_buffer_part(*from, to_rect, offset));
    return copy_between(call, from, from_rect, to, to_rect, CL_COMMAND_COPY_BUFFER_TO_IMAGE);
}

Result<void> enqueue_image_fill(const EnqueueCall& call, cl_mem image, const void* color, const ImageRegion& region) {
    POLDER_ASSIGN(to, check_command_image(call, image));
    // CL_INVALID_VALUE: fill_color is null.
    if (!color)
        return fail(Status::invalid_value);
    POLDER_ASSIGN(rect, check_region(*to, region.origin, region.size));
    POLDER_TRY(check_writes(*to));
    return call.enqueue(CL_COMMAND_FILL_IMAGE,
                        FillImageCommand(share(to), rect, element_of_color(to->image()->format, color)));
}

}  // namespace polder::api

using namespace polder::api;

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                                   const size_t* origin, const size_t* region, size_t row_pitch,
                                                   size_t slice_pitch, void* ptr, cl_uint num_events,
                                                   const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return read(call, image, blocking_if(blocking), {origin, region}, {row_pitch, slice_pitch}, ptr);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                                    const size_t* origin, const size_t* region, size_t row_pitch,
                                                    size_t slice_pitch, const void* ptr, cl_uint num_events,
                                                    const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return write(call, image, blocking_if(blocking), {origin, region}, {row_pitch, slice_pitch}, ptr);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImage(cl_command_queue queue, cl_mem src_image, cl_mem dst_image,
                                                   const size_t* src_origin, const size_t* dst_origin,
                                                   const size_t* region, cl_uint num_events, const cl_event* list,
                                                   cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return enqueue_image_copy(call, src_image, dst_image, src_origin, dst_origin, region);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer,
                                                           const size_t* origin, const size_t* region, size_t offset,
                                                           cl_uint num_events, const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return enqueue_image_to_buffer(call, image, buffer, {origin, region}, offset);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image,
                                                           size_t offset, const size_t* origin, const size_t* region,
                                                           cl_uint num_events, const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return enqueue_buffer_to_image(call, buffer, image, offset, {origin, region});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void* fill_color,
                                                   const size_t* origin, const size_t* region, cl_uint num_events,
                                                   const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return enqueue_image_fill(call, image, fill_color, {origin, region});
    });
}

CL_API_ENTRY void* CL_API_CALL clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                                 cl_map_flags flags, const size_t* origin, const size_t* region,
                                                 size_t* image_row_pitch, size_t* image_slice_pitch, cl_uint num_events,
                                                 const cl_event* list, cl_event* event, cl_int* errcode_ret) {
    return create<void*>(errcode_ret, [&]() -> Result<void*> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return map(call, image, blocking_if(blocking), flags, {origin, region}, {image_row_pitch, image_slice_pitch});
    });
}
