// Commands on buffers: read, write, copy, fill, their rectangular forms, map. Unmap and migrate, for images too.
#include "enqueue_commands.h"
#include "mem_checks.h"
#include "mem_references.h"
#include "pattern.h"
#include "rect.h"

#include <runtime/buffer_commands.h>

using namespace polder;
using namespace polder::runtime;
using memory::StorageRect;

namespace polder::api {
namespace {

Result<ByteRange> check_range(const MemObject& buffer, uint64_t offset, uint64_t size) {
    // CL_INVALID_VALUE: the region is out of the bounds of buffer.
    if (offset > buffer.size() || size > buffer.size() - offset)
        return fail(Status::invalid_value);
    return ByteRange::at(buffer.origin() + offset, ByteCount{size});
}

Result<StorageRect> check_buffer_rect(const MemObject& buffer, const RectArguments& arguments, const size_t* region) {
    POLDER_ASSIGN(rect, check_rect(arguments, region, buffer.size()));
    rect.offset += buffer.origin();
    return rect;
}

struct HostRows {
    std::byte* first;
    driver::RectLayout layout;
};

Result<HostRows> check_host_rect(void* pointer, const RectArguments& arguments, const size_t* region) {
    // CL_INVALID_VALUE: ptr is null.
    if (!pointer)
        return fail(Status::invalid_value);
    POLDER_ASSIGN(rect, check_rect(arguments, region, ~uint64_t{0}));
    return HostRows{static_cast<std::byte*>(pointer) + rect.offset, rect.layout};
}

Result<void> read(const EnqueueCall& call, MemObject* buffer, const StorageRect& rect, HostRows to,
                  cl_command_type type, Blocking blocking) {
    POLDER_TRY(check_host_reads(*buffer));
    if (rect.shape.row_bytes == 0)
        return call.enqueue(type, MarkerCommand{}, blocking);
    return call.enqueue(type, ReadCommand(borrow(buffer), rect, to.first, to.layout), blocking);
}

Result<void> write(const EnqueueCall& call, MemObject* buffer, const StorageRect& rect, HostRows from,
                   cl_command_type type, Blocking blocking) {
    POLDER_TRY(check_host_writes(*buffer));
    if (rect.shape.row_bytes == 0)
        return call.enqueue(type, MarkerCommand{}, blocking);
    return call.enqueue(type, WriteCommand(borrow(buffer), rect, from.first, from.layout), blocking);
}

Result<void> copy(const EnqueueCall& call, MemObject* from, const StorageRect& from_rect, MemObject* to,
                  const StorageRect& to_rect, cl_command_type type) {
    POLDER_TRY(check_writes(*to));
    if (from_rect.shape.row_bytes == 0)
        return call.enqueue(type, MarkerCommand{});
    // CL_MEM_COPY_OVERLAP: the regions overlap within one buffer.
    if (&from->storage() == &to->storage() && rects_overlap(from_rect, to_rect))
        return fail(Status::mem_copy_overlap);
    return call.enqueue(type, CopyCommand(borrow(from), from_rect, borrow(to), to_rect));
}

Result<void*> map(const EnqueueCall& call, cl_mem handle, Blocking blocking, cl_map_flags flags, size_t offset,
                  size_t size) {
    POLDER_ASSIGN(buffer, check_buffer(call, handle));
    POLDER_ASSIGN(range, check_range(*buffer, offset, size));
    // CL_INVALID_VALUE: size is 0.
    if (size == 0)
        return fail(Status::invalid_value);
    POLDER_ASSIGN(access, check_map_flags(*buffer, flags));
    // CL_INVALID_OPERATION: the map is for writing, and some of the bytes are already mapped for writing.
    POLDER_ASSIGN(command, MapCommand::create(share(buffer), StorageRect::of(range), access));
    std::byte* const pointer = command.pointer();
    const MapCommand registered = command;  // `command` is moved from when it has to wait
    auto enqueued = call.enqueue(CL_COMMAND_MAP_BUFFER, std::move(command), blocking);
    if (!enqueued) {
        registered.abandon();
        return fail(enqueued.error());
    }
    return pointer;
}

Result<void> unmap(const EnqueueCall& call, cl_mem handle, const void* pointer) {
    POLDER_ASSIGN(buffer, from_handle<MemObject>(handle));
    // CL_INVALID_CONTEXT: memobj and command_queue have different contexts.
    if (&buffer->context() != &call.context())
        return fail(Status::invalid_context);
    // CL_INVALID_VALUE: mapped_ptr was not returned by a map of memobj, or was unmapped already.
    const Ref<MapRecord> record = buffer->take_map(pointer);
    if (!record)
        return fail(Status::invalid_value);
    auto enqueued = call.enqueue(CL_COMMAND_UNMAP_MEM_OBJECT, UnmapCommand(share(buffer), record));
    if (!enqueued)
        buffer->return_map(record);
    return enqueued;
}

Result<void> migrate(const EnqueueCall& call, cl_uint count, const cl_mem* list, cl_mem_migration_flags flags) {
    // CL_INVALID_VALUE: num_mem_objects is 0, mem_objects is null, or flags are unknown.
    if (count == 0 || !list || (flags & ~(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED)))
        return fail(Status::invalid_value);
    const SpaceId target = flags & CL_MIGRATE_MEM_OBJECT_HOST ? host_space : call.queue().space();
    std::vector<Ref<MemObject>> objects;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(object, from_handle<MemObject>(list[i]));
        POLDER_ASSIGN(checked, object->image() ? check_image(call, list[i]) : check_buffer(call, list[i]));
        objects.push_back(share(checked));
    }
    using Content = memory::Domain::Content;
    const Content content = flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED ? Content::undefined : Content::kept;
    return call.enqueue(CL_COMMAND_MIGRATE_MEM_OBJECTS, MigrateCommand(std::move(objects), target, content));
}

} // namespace

Result<void> enqueue_copy(const EnqueueCall& call, cl_mem src_buffer, cl_mem dst_buffer, size_t src_offset,
                          size_t dst_offset, size_t size) {
    POLDER_ASSIGN(from, check_buffer(call, src_buffer));
    POLDER_ASSIGN(to, check_buffer(call, dst_buffer));
    POLDER_ASSIGN(from_range, check_range(*from, src_offset, size));
    POLDER_ASSIGN(to_range, check_range(*to, dst_offset, size));
    return copy(call, from, StorageRect::of(from_range), to, StorageRect::of(to_range), CL_COMMAND_COPY_BUFFER);
}

Result<void> enqueue_copy_rect(const EnqueueCall& call, cl_mem src_buffer, cl_mem dst_buffer, const CopyRectPlaces& src,
                               const CopyRectPlaces& dst, const size_t* region) {
    POLDER_ASSIGN(from, check_buffer(call, src_buffer));
    POLDER_ASSIGN(to, check_buffer(call, dst_buffer));
    POLDER_ASSIGN(from_rect, check_buffer_rect(*from, {src.origin, src.row_pitch, src.slice_pitch}, region));
    POLDER_ASSIGN(to_rect, check_buffer_rect(*to, {dst.origin, dst.row_pitch, dst.slice_pitch}, region));
    // CL_INVALID_VALUE: src_buffer and dst_buffer are the same, and their row pitches or slice pitches differ.
    if (from == to && (from_rect.layout.row_pitch != to_rect.layout.row_pitch ||
                       from_rect.layout.slice_pitch != to_rect.layout.slice_pitch))
        return fail(Status::invalid_value);
    return copy(call, from, from_rect, to, to_rect, CL_COMMAND_COPY_BUFFER_RECT);
}

Result<void> enqueue_fill(const EnqueueCall& call, cl_mem handle, const void* pattern, size_t pattern_size,
                          size_t offset, size_t size) {
    POLDER_ASSIGN(buffer, check_buffer(call, handle));
    POLDER_TRY(check_pattern(pattern, pattern_size));
    POLDER_ASSIGN(range, check_range(*buffer, offset, size));
    // CL_INVALID_VALUE: offset or size is not a multiple of pattern_size.
    if (offset % pattern_size != 0 || size % pattern_size != 0)
        return fail(Status::invalid_value);
    POLDER_TRY(check_writes(*buffer));
    if (size == 0)
        return call.enqueue(CL_COMMAND_FILL_BUFFER, MarkerCommand{});
    return call.enqueue(CL_COMMAND_FILL_BUFFER,
                        FillCommand(borrow(buffer), range, {static_cast<const std::byte*>(pattern), pattern_size}));
}

} // namespace polder::api

using namespace polder::api;

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                    size_t offset, size_t size, void* ptr, cl_uint num_events,
                                                    const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        POLDER_ASSIGN(from, check_buffer(call, buffer));
        POLDER_ASSIGN(range, check_range(*from, offset, size));
        // CL_INVALID_VALUE: ptr is null.
        if (!ptr)
            return fail(Status::invalid_value);
        return read(call, from, StorageRect::of(range), {static_cast<std::byte*>(ptr), {}}, CL_COMMAND_READ_BUFFER,
                    blocking_if(blocking));
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                     size_t offset, size_t size, const void* ptr, cl_uint num_events,
                                                     const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        POLDER_ASSIGN(to, check_buffer(call, buffer));
        POLDER_ASSIGN(range, check_range(*to, offset, size));
        // CL_INVALID_VALUE: ptr is null.
        if (!ptr)
            return fail(Status::invalid_value);
        return write(call, to, StorageRect::of(range), {static_cast<std::byte*>(const_cast<void*>(ptr)), {}},
                     CL_COMMAND_WRITE_BUFFER, blocking_if(blocking));
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                        const size_t* buffer_origin, const size_t* host_origin,
                                                        const size_t* region, size_t buffer_row_pitch,
                                                        size_t buffer_slice_pitch, size_t host_row_pitch,
                                                        size_t host_slice_pitch, void* ptr, cl_uint num_events,
                                                        const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        POLDER_ASSIGN(from, check_buffer(call, buffer));
        POLDER_ASSIGN(rect, check_buffer_rect(*from, {buffer_origin, buffer_row_pitch, buffer_slice_pitch}, region));
        POLDER_ASSIGN(host, check_host_rect(ptr, {host_origin, host_row_pitch, host_slice_pitch}, region));
        return read(call, from, rect, host, CL_COMMAND_READ_BUFFER_RECT, blocking_if(blocking));
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                         const size_t* buffer_origin, const size_t* host_origin,
                                                         const size_t* region, size_t buffer_row_pitch,
                                                         size_t buffer_slice_pitch, size_t host_row_pitch,
                                                         size_t host_slice_pitch, const void* ptr, cl_uint num_events,
                                                         const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        POLDER_ASSIGN(to, check_buffer(call, buffer));
        POLDER_ASSIGN(rect, check_buffer_rect(*to, {buffer_origin, buffer_row_pitch, buffer_slice_pitch}, region));
        POLDER_ASSIGN(host,
                      check_host_rect(const_cast<void*>(ptr), {host_origin, host_row_pitch, host_slice_pitch}, region));
        return write(call, to, rect, host, CL_COMMAND_WRITE_BUFFER_RECT, blocking_if(blocking));
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue queue, cl_mem src_buffer, cl_mem dst_buffer,
                                                    size_t src_offset, size_t dst_offset, size_t size,
                                                    cl_uint num_events, const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return enqueue_copy(call, src_buffer, dst_buffer, src_offset, dst_offset, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem src_buffer, cl_mem dst_buffer,
                                                        const size_t* src_origin, const size_t* dst_origin,
                                                        const size_t* region, size_t src_row_pitch,
                                                        size_t src_slice_pitch, size_t dst_row_pitch,
                                                        size_t dst_slice_pitch, cl_uint num_events,
                                                        const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return enqueue_copy_rect(call, src_buffer, dst_buffer, {src_origin, src_row_pitch, src_slice_pitch},
                                 {dst_origin, dst_row_pitch, dst_slice_pitch}, region);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern,
                                                    size_t pattern_size, size_t offset, size_t size, cl_uint num_events,
                                                    const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return enqueue_fill(call, buffer, pattern, pattern_size, offset, size);
    });
}

CL_API_ENTRY void* CL_API_CALL clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                  cl_map_flags map_flags, size_t offset, size_t size,
                                                  cl_uint num_events, const cl_event* list, cl_event* event,
                                                  cl_int* errcode_ret) {
    return create<void*>(errcode_ret, [&]() -> Result<void*> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return map(call, buffer, blocking_if(blocking), map_flags, offset, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem object, void* mapped_ptr,
                                                        cl_uint num_events, const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return unmap(call, object, mapped_ptr);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint num_mem_objects,
                                                           const cl_mem* mem_objects, cl_mem_migration_flags flags,
                                                           cl_uint num_events, const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(queue, num_events, list, event));
        return migrate(call, num_mem_objects, mem_objects, flags);
    });
}
