// Commands and events.
#include "fake_functions.h"

#include <cstdio>
#include <cstring>

using namespace polder::fake_icd;

namespace {}  // namespace

cl_int enqueue(cl_command_queue queue, const WaitList& list, std::function<void()> work, bool is_blocking) {
    _cl_command_queue::Command command;
    for (cl_uint i = 0; i < list.count; ++i)
        command.waits.push_back(keep(list.events[i]));
    const std::shared_ptr<_cl_event> event(new _cl_event, release<_cl_event>);
    if (list.done)
        count("event");
    command.event = event;
    command.work = std::move(work);
    queue->add(std::move(command));
    const cl_int status = is_blocking ? event->wait() : CL_COMPLETE;
    if (list.done) {
        retain(event.get());
        *list.done = event.get();
    }
    return status;
}

namespace {

bool is_inside(cl_mem buffer, size_t offset, size_t size) {
    return size != 0 && offset <= buffer->size && size <= buffer->size - offset;
}

// Rows within `region`, from `from` to `to`.
struct Rows {
    const std::byte* from;
    std::byte* to;
    size_t region[3];
    size_t from_pitch;
    size_t to_pitch;
    void copy() const {
        for (size_t y = 0; y < region[1]; ++y)
            std::memcpy(to + y * to_pitch, from + y * from_pitch, region[0]);
    }
};

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                                const void* from, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueWriteBuffer"))
        return code;
    if (!is_inside(buffer, offset, size))
        return CL_INVALID_VALUE;
    if (blocking == CL_FALSE)
        return enqueue(queue, {count, waits, done},
                       [kept = keep(buffer), offset, size, from] { std::memcpy(kept->data() + offset, from, size); });
    // As OpenCL allows: the call returns when the bytes have been copied, and writes them later.
    const auto* const bytes = static_cast<const std::byte*>(from);
    return enqueue(queue, {count, waits, done},
                   [kept = keep(buffer), offset, copied = std::vector<std::byte>(bytes, bytes + size)] {
                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                       std::memcpy(kept->data() + offset, copied.data(), copied.size());
                   });
}
cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                               void* to, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueReadBuffer"))
        return code;
    if (!is_inside(buffer, offset, size))
        return CL_INVALID_VALUE;
    return enqueue(
        queue, {count, waits, done},
        [kept = keep(buffer), offset, size, to] { std::memcpy(to, kept->data() + offset, size); },
        blocking != CL_FALSE);
}
cl_int CL_API_CALL copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                        size_t size, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueCopyBuffer"))
        return code;
    if (!is_inside(from, from_offset, size) || !is_inside(to, to_offset, size))
        return CL_INVALID_VALUE;
    if (from == to && from_offset < to_offset + size && to_offset < from_offset + size)
        return CL_MEM_COPY_OVERLAP;
    return enqueue(queue, {count, waits, done}, [a = keep(from), b = keep(to), from_offset, to_offset, size] {
        std::memcpy(b->data() + to_offset, a->data() + from_offset, size);
    });
}
cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t pattern_size, size_t offset,
                        size_t size, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueFillBuffer"))
        return code;
    if (!is_inside(buffer, offset, size) || offset % pattern_size != 0 || size % pattern_size != 0)
        return CL_INVALID_VALUE;
    const auto* const bytes = static_cast<const std::byte*>(pattern);
    return enqueue(queue, {count, waits, done},
                   [kept = keep(buffer), offset, size, repeated = std::vector<std::byte>(bytes, bytes + pattern_size)] {
                       for (size_t at = 0; at < size; at += repeated.size())
                           std::memcpy(kept->data() + offset + at, repeated.data(), repeated.size());
                   });
}

bool is_rect(const size_t* region, size_t pitch) { return region[2] == 1 && pitch >= region[0]; }

cl_int CL_API_CALL write_rect(cl_command_queue queue, cl_mem buffer, cl_bool, const size_t* origin, const size_t*,
                              const size_t* region, size_t pitch, size_t, size_t host_pitch, size_t, const void* from,
                              cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueWriteBufferRect"))
        return code;
    if (!is_rect(region, pitch) || !is_inside(buffer, origin[0], (region[1] - 1) * pitch + region[0]))
        return CL_INVALID_VALUE;
    const Rows rows{
        static_cast<const std::byte*>(from), buffer->data() + origin[0], {region[0], region[1], 1}, host_pitch, pitch};
    return enqueue(queue, {count, waits, done}, [kept = keep(buffer), rows] { rows.copy(); });
}
cl_int CL_API_CALL read_rect(cl_command_queue queue, cl_mem buffer, cl_bool, const size_t* origin, const size_t*,
                             const size_t* region, size_t pitch, size_t, size_t host_pitch, size_t, void* to,
                             cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueReadBufferRect"))
        return code;
    if (!is_rect(region, pitch) || !is_inside(buffer, origin[0], (region[1] - 1) * pitch + region[0]))
        return CL_INVALID_VALUE;
    const Rows rows{
        buffer->data() + origin[0], static_cast<std::byte*>(to), {region[0], region[1], 1}, pitch, host_pitch};
    return enqueue(queue, {count, waits, done}, [kept = keep(buffer), rows] { rows.copy(); });
}
cl_int CL_API_CALL copy_rect(cl_command_queue queue, cl_mem from, cl_mem to, const size_t* from_origin,
                             const size_t* to_origin, const size_t* region, size_t from_pitch, size_t, size_t to_pitch,
                             size_t, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueCopyBufferRect"))
        return code;
    if (!is_rect(region, from_pitch) || !is_rect(region, to_pitch) || (from == to && from_pitch != to_pitch))
        return CL_INVALID_VALUE;
    const Rows rows{
        from->data() + from_origin[0], to->data() + to_origin[0], {region[0], region[1], 1}, from_pitch, to_pitch};
    return enqueue(queue, {count, waits, done}, [a = keep(from), b = keep(to), rows] { rows.copy(); });
}

// --- kernels ---

// A launch with its arguments as they were.
struct Launch {
    Kernel code;
    polder::LaunchContext context{};
    std::vector<std::byte> block;
    std::vector<std::shared_ptr<_cl_mem>> buffers;

    void run() const {
        if (!code.function)
            return;
        const auto aligned = [](std::vector<std::byte>& bytes) {
            const auto address = reinterpret_cast<uintptr_t>(bytes.data());
            return reinterpret_cast<std::byte*>((address + 127) & ~uintptr_t{127});
        };
        uint64_t items = 1;
        for (const uint64_t size : context.local_size)
            items *= size;
        std::vector<std::byte> local(context.local_bytes + 256);
        std::vector<std::byte> scratch(code.scratch_bytes_per_work_item * items + 4096 + 256);
        uint64_t group[3];
        for (group[2] = 0; group[2] < context.num_groups[2]; ++group[2])
            for (group[1] = 0; group[1] < context.num_groups[1]; ++group[1])
                for (group[0] = 0; group[0] < context.num_groups[0]; ++group[0])
                    code.function(block.data(), &context, group, aligned(local), aligned(scratch));
    }
};

std::shared_ptr<Launch> freeze(const _cl_kernel& kernel) {
    auto launch = std::make_shared<Launch>();
    launch->code = kernel.code;
    launch->block.resize(256);
    uint64_t local = kernel.code.local_bytes;
    for (size_t i = 0; i < kernel.code.parameters.size(); ++i) {
        const polder::driver::KernelParameter& parameter = kernel.code.parameters[i];
        const _cl_kernel::Argument& argument = kernel.arguments[i];
        std::byte* const place = launch->block.data() + parameter.offset;
        using Kind = polder::driver::KernelParameter::Kind;
        if (parameter.kind == Kind::value) {
            std::memcpy(place, argument.value.data(), argument.value.size());
        } else if (parameter.kind == Kind::local_pointer) {
            std::memcpy(place, &local, sizeof local);
            local += argument.local_bytes;
        } else if (parameter.kind == Kind::sampler) {
            cl_sampler sampler = nullptr;
            std::memcpy(&sampler, argument.value.data(), sizeof sampler);
            std::memcpy(place, &sampler->bits, sizeof sampler->bits);
        } else if (parameter.kind == Kind::image) {
            cl_mem image = nullptr;
            std::memcpy(&image, argument.value.data(), sizeof image);
            polder::ImageDescriptor descriptor = image->image;
            descriptor.data = reinterpret_cast<uintptr_t>(image->data());
            std::memcpy(place, &descriptor, sizeof descriptor);
            launch->buffers.push_back(keep(image));
        } else {
            cl_mem buffer = nullptr;
            std::memcpy(&buffer, argument.value.data(), sizeof buffer);
            std::byte* const data = buffer ? buffer->data() : nullptr;
            std::memcpy(place, &data, sizeof data);
            if (buffer)
                launch->buffers.push_back(keep(buffer));
        }
    }
    launch->context.local_bytes = static_cast<uint32_t>(local);
    launch->context.print = [](void*, const char* text, size_t size) {
        std::fwrite(text, 1, size, stdout);
        std::fflush(stdout);
    };
    return launch;
}

cl_int CL_API_CALL launch_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                                 const size_t* global, const size_t* local, cl_uint count, const cl_event* waits,
                                 cl_event* done) {
    if (const cl_int code = enter("clEnqueueNDRangeKernel"))
        return code;
    for (const _cl_kernel::Argument& argument : kernel->arguments)
        if (argument.value.empty() && argument.local_bytes == 0)
            return CL_INVALID_KERNEL_ARGS;
    const std::shared_ptr<Launch> launch = freeze(*kernel);
    launch->context.work_dim = dimensions;
    for (cl_uint d = 0; d < 3; ++d) {
        launch->context.global_offset[d] = d < dimensions ? offset[d] : 0;
        launch->context.global_size[d] = d < dimensions ? global[d] : 1;
        launch->context.local_size[d] = d < dimensions ? local[d] : 1;
        launch->context.num_groups[d] =
            (launch->context.global_size[d] + launch->context.local_size[d] - 1) / launch->context.local_size[d];
    }
    return enqueue(queue, {count, waits, done}, [launch] { launch->run(); });
}

cl_int CL_API_CALL marker(cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* done) {
    if (const cl_int code = enter("clEnqueueMarkerWithWaitList"))
        return code;
    return enqueue(queue, {count, waits, done}, {});
}

// --- events ---

cl_int CL_API_CALL flush(cl_command_queue) { return enter("clFlush"); }

// Does not report the commands' failures.
cl_int CL_API_CALL finish(cl_command_queue queue) {
    if (const cl_int code = enter("clFinish"))
        return code;
    return enqueue(queue, {}, {}, true);
}

cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
    if (const cl_int code = enter("clWaitForEvents"))
        return code;
    cl_int result = CL_SUCCESS;
    for (cl_uint i = 0; i < count; ++i)
        if (events[i]->wait() < 0)
            result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return result;
}
cl_int CL_API_CALL event_info(cl_event event, cl_event_info, size_t, void* to, size_t*) {
    const std::lock_guard lock(event->mutex);
    std::memcpy(to, &event->status, sizeof event->status);
    return CL_SUCCESS;
}
cl_int CL_API_CALL event_times(cl_event event, cl_profiling_info name, size_t, void* to, size_t*) {
    if (const cl_int code = enter("clGetEventProfilingInfo"))
        return code;
    const std::lock_guard lock(event->mutex);
    const cl_ulong ns = name == CL_PROFILING_COMMAND_START ? event->start_ns : event->end_ns;
    std::memcpy(to, &ns, sizeof ns);
    return CL_SUCCESS;
}
cl_int CL_API_CALL retain_event(cl_event event) {
    retain(event);
    return CL_SUCCESS;
}
cl_int CL_API_CALL release_event(cl_event event) {
    release(event);
    return CL_SUCCESS;
}

} // namespace

void add_command_functions(cl_icd_dispatch& table) {
    table.clEnqueueWriteBuffer = guarded<write_buffer>;
    table.clEnqueueReadBuffer = guarded<read_buffer>;
    table.clEnqueueCopyBuffer = guarded<copy>;
    table.clEnqueueFillBuffer = guarded<fill>;
    table.clEnqueueWriteBufferRect = guarded<write_rect>;
    table.clEnqueueReadBufferRect = guarded<read_rect>;
    table.clEnqueueCopyBufferRect = guarded<copy_rect>;
    table.clEnqueueNDRangeKernel = guarded<launch_kernel>;
    table.clEnqueueMarkerWithWaitList = guarded<marker>;
    table.clFlush = guarded<flush>;
    table.clFinish = guarded<finish>;
    table.clWaitForEvents = guarded<wait_for_events>;
    table.clGetEventInfo = guarded<event_info>;
    table.clGetEventProfilingInfo = guarded<event_times>;
    table.clRetainEvent = guarded<retain_event>;
    table.clReleaseEvent = guarded<release_event>;
}
