// Command buffers: recording commands. The arguments are checked by the same functions as those of clEnqueue* (enqueue_commands.h).
#include "command_buffer.h"
#include "enqueue_commands.h"
#include "pointer_commands.h"

#include <algorithm>

using namespace polder;
using namespace polder::api;
using runtime::CommandBuffer;
using runtime::DispatchState;
using runtime::Kernel;
using runtime::RecordedCommand;
using runtime::RecordedOperation;

namespace polder::api::command_buffer {
namespace {

// What all clCommand*KHR functions share.
struct RecordArguments {
    cl_command_buffer_khr command_buffer;
    cl_command_queue queue;
    cl_uint num_sync_points;
    const cl_sync_point_khr* sync_points;
    cl_sync_point_khr* sync_point;
};

// Where a command is recorded.
struct Place {
    CommandBuffer& buffer;
    RecordedCommand command;  // its operation is set later

    [[nodiscard]] runtime::Queue& queue() const { return *buffer.queues()[command.queue]; }
    [[nodiscard]] Result<void> append(Ref<const RecordedOperation> operation, bool is_complete = true,
                                      Ref<const runtime::Dispatch> dispatch = nullptr) {
        command.operation = std::move(operation);
        return buffer.append({std::move(command), is_complete, std::move(dispatch)});
    }
};

// The index of the queue among the queues of the buffer.
Result<uint32_t> number_of_queue(const CommandBuffer& buffer, cl_command_queue handle) {
    if (!handle) {
        // CL_INVALID_COMMAND_QUEUE: command_queue is null, and the buffer has several queues.
        if (buffer.queues().size() > 1)
            return fail(Status::invalid_command_queue);
        return 0;
    }
    POLDER_ASSIGN(queue, from_handle<runtime::Queue>(handle));
    // CL_INVALID_CONTEXT: command_queue and the command buffer have different contexts.
    if (&queue->context() != &buffer.context())
        return fail(Status::invalid_context);
    const auto found = std::ranges::find(buffer.queues(), queue, &Ref<runtime::Queue>::get);
    // CL_INVALID_COMMAND_QUEUE: the buffer was created without command_queue.
    if (found == buffer.queues().end())
        return fail(Status::invalid_command_queue);
    return static_cast<uint32_t>(found - buffer.queues().begin());
}

Result<Place> check(const RecordArguments& given) {
    POLDER_ASSIGN(buffer, from_handle<CommandBuffer>(given.command_buffer));
    POLDER_ASSIGN(queue, number_of_queue(*buffer, given.queue));
    // CL_INVALID_OPERATION: the command buffer is finalized.
    if (buffer->state() != CommandBuffer::State::recording)
        return fail(Status::invalid_operation);
    // CL_INVALID_SYNC_POINT_WAIT_LIST_KHR: one of list and count is null (0) and the other is not (this check), or a sync point does
    // not belong to a command of this buffer (the next check).
    if ((given.num_sync_points == 0) != (given.sync_points == nullptr))
        return fail(runtime::invalid_sync_point_wait_list);
    const uint32_t recorded = buffer->size();
    const std::span<const cl_sync_point_khr> points{given.sync_points, given.num_sync_points};
    if (std::ranges::any_of(points, [&](cl_sync_point_khr point) { return point >= recorded; }))
        return fail(runtime::invalid_sync_point_wait_list);
    Place place{*buffer, {nullptr, queue}};
    if (buffer->queues().size() > 1)
        place.command.waits_for.assign(points.begin(), points.end());
    return place;
}

void give_sync_point(const CommandBuffer& buffer, cl_sync_point_khr* place) {
    if (place)
        *place = buffer.size() - 1;
}

enum class FixedKind : uint8_t { barrier, other };

// Records a command that has no properties and cannot be updated. `enqueue(call)` checks the arguments and makes the operation.
template <class Enqueue>
cl_int record_fixed(const RecordArguments& given, const Property* properties,
                    const cl_mutable_command_khr* mutable_handle, Enqueue enqueue, FixedKind kind = FixedKind::other,
                    const char* function = __builtin_FUNCTION()) {
    return entry(
        [&]() -> Result<void> {
            POLDER_ASSIGN(place, check(given));
            // CL_INVALID_VALUE: properties are not empty, or mutable_handle is not null.
            if ((properties && *properties != 0) || mutable_handle)
                return fail(Status::invalid_value);
            Ref<const RecordedOperation> operation;
            POLDER_TRY(enqueue(EnqueueCall::recording(place.queue(), operation)));
            place.command.waits_for_all = kind == FixedKind::barrier && given.num_sync_points == 0;
            POLDER_TRY(place.append(std::move(operation)));
            give_sync_point(place.buffer, given.sync_point);
            return {};
        },
        function);
}

Result<void> check_svm(const EnqueueCall& call) {
    // CL_INVALID_OPERATION: the device of the queue has no SVM.
    if (!call.queue().device().has_svm())
        return fail(Status::invalid_operation);
    return {};
}

bool asserts_no_additional_groups(std::span<const cl_properties> list, cl_properties name) {
    for (size_t i = 0; i + 1 < list.size(); i += 2)
        if (list[i] == name)
            return list[i + 1] & assert_no_additional_work_groups;
    return false;
}

struct KernelProperties {
    cl_bitfield updatable_fields = mutable_fields;
    std::vector<cl_properties> list;  // with its terminating zero, or empty
};

Result<KernelProperties> check_kernel_properties(const Property* given) {
    KernelProperties properties;
    if (!given)
        return properties;
    for (; *given != 0; given += 2) {
        if (given[0] == CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR) {
            // CL_INVALID_VALUE: a bit is not a field. All fields are in CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR.
            if (given[1] & ~mutable_fields)
                return fail(Status::invalid_value);
            properties.updatable_fields = given[1];
        } else if (given[0] != mutable_dispatch_asserts || (given[1] & ~assert_no_additional_work_groups)) {
            // CL_INVALID_VALUE: a property or its value is unknown.
            return fail(Status::invalid_value);
        }
        properties.list.insert(properties.list.end(), {given[0], given[1]});
    }
    properties.list.push_back(0);
    return properties;
}

DispatchState state_of(const Kernel& kernel, const SizeArrays& sizes) {
    DispatchState state;
    state.kernel = kernel.clone();
    state.work_dim = sizes.work_dim;
    if (sizes.offset)
        std::copy_n(sizes.offset, sizes.work_dim, state.offset.begin());
    if (sizes.global)
        std::copy_n(sizes.global, sizes.work_dim, state.global.begin());
    if (sizes.local) {
        state.local.emplace(runtime::Size3{1, 1, 1});
        std::copy_n(sizes.local, sizes.work_dim, state.local->begin());
    }
    return state;
}

// True when arguments of the kernel are not set, and an update may set them later.
bool waits_for_arguments(const CommandBuffer& buffer, const Kernel& kernel, const KernelProperties& properties,
                         const cl_mutable_command_khr* mutable_handle) {
    return kernel.arguments()->unset_count && mutable_handle &&
           buffer.mutability() == CommandBuffer::Mutability::updatable &&
           (properties.updatable_fields & CL_MUTABLE_DISPATCH_ARGUMENTS_KHR);
}

Result<void> record_kernel(const RecordArguments& given, const Property* properties, cl_kernel kernel_handle,
                           const SizeArrays& sizes, cl_mutable_command_khr* mutable_handle) {
    POLDER_ASSIGN(place, check(given));
    CommandBuffer& buffer = place.buffer;
    POLDER_ASSIGN(checked, check_kernel_properties(properties));
    POLDER_ASSIGN(kernel, from_handle<Kernel>(kernel_handle));
    // CL_INVALID_CONTEXT: kernel and command buffer are of different contexts.
    if (&kernel->context() != &buffer.context())
        return fail(Status::invalid_context);
    // CL_INVALID_VALUE: CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR is set, and local_work_size is null.
    if (!sizes.local && (asserts_no_additional_groups(checked.list, mutable_dispatch_asserts) ||
                         asserts_no_additional_groups(buffer.properties(), mutable_dispatch_asserts_of_buffer)))
        return fail(Status::invalid_value);
    const bool is_complete = !waits_for_arguments(buffer, *kernel, checked, mutable_handle);
    Ref<const RecordedOperation> operation;
    if (is_complete) {
        POLDER_TRY(enqueue_launch(EnqueueCall::recording(place.queue(), operation), *kernel, CL_COMMAND_NDRANGE_KERNEL,
                                  sizes));
    } else if (sizes.work_dim < 1 || sizes.work_dim > 3) {
        // CL_INVALID_WORK_DIMENSION: work_dim is not 1, 2 or 3.
        return fail(Status::invalid_work_dimension);
    }
    POLDER_TRY(place.append(std::move(operation), is_complete, make_ref<runtime::Dispatch>(state_of(*kernel, sizes))));
    if (mutable_handle) {
        POLDER_ASSIGN(handle,
                      buffer.expose_command(buffer.size() - 1, {Ref<Kernel>::share(kernel), checked.updatable_fields,
                                                                std::move(checked.list)}));
        *mutable_handle = static_cast<cl_mutable_command_khr>(handle);
    }
    give_sync_point(buffer, given.sync_point);
    return {};
}

}  // namespace

cl_int CL_API_CALL clCommandBarrierWithWaitListKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                                   const Property* properties, cl_uint num_sync_points,
                                                   const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                                   cl_mutable_command_khr* mutable_handle) {
    return record_fixed(
        {command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
        // The commands of one queue execute in the order of recording, so a barrier needs no operation.
        [](const EnqueueCall&) { return Result<void>{}; }, FixedKind::barrier);
}

cl_int CL_API_CALL clCommandCopyBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                          const Property* properties, cl_mem src_buffer, cl_mem dst_buffer,
                                          size_t src_offset, size_t dst_offset, size_t size, cl_uint num_sync_points,
                                          const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                          cl_mutable_command_khr* mutable_handle) {
    return record_fixed({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
                        [&](const EnqueueCall& call) {
                            return enqueue_copy(call, src_buffer, dst_buffer, src_offset, dst_offset, size);
                        });
}

cl_int CL_API_CALL clCommandCopyBufferRectKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                              const Property* properties, cl_mem src_buffer, cl_mem dst_buffer,
                                              const size_t* src_origin, const size_t* dst_origin, const size_t* region,
                                              size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch,
                                              size_t dst_slice_pitch, cl_uint num_sync_points,
                                              const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                              cl_mutable_command_khr* mutable_handle) {
    return record_fixed({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
                        [&](const EnqueueCall& call) {
                            return enqueue_copy_rect(call, src_buffer, dst_buffer,
                                                     {src_origin, src_row_pitch, src_slice_pitch},
                                                     {dst_origin, dst_row_pitch, dst_slice_pitch}, region);
                        });
}

cl_int CL_API_CALL clCommandFillBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                          const Property* properties, cl_mem buffer, const void* pattern,
                                          size_t pattern_size, size_t offset, size_t size, cl_uint num_sync_points,
                                          const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                          cl_mutable_command_khr* mutable_handle) {
    return record_fixed(
        {command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
        [&](const EnqueueCall& call) { return enqueue_fill(call, buffer, pattern, pattern_size, offset, size); });
}

cl_int CL_API_CALL clCommandCopyImageKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                         const Property* properties, cl_mem src_image, cl_mem dst_image,
                                         const size_t* src_origin, const size_t* dst_origin, const size_t* region,
                                         cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                         cl_sync_point_khr* sync_point, cl_mutable_command_khr* mutable_handle) {
    return record_fixed({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
                        [&](const EnqueueCall& call) {
                            return enqueue_image_copy(call, src_image, dst_image, src_origin, dst_origin, region);
                        });
}

cl_int CL_API_CALL clCommandCopyImageToBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                                 const Property* properties, cl_mem src_image, cl_mem dst_buffer,
                                                 const size_t* src_origin, const size_t* region, size_t dst_offset,
                                                 cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                                 cl_sync_point_khr* sync_point,
                                                 cl_mutable_command_khr* mutable_handle) {
    return record_fixed({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
                        [&](const EnqueueCall& call) {
                            return enqueue_image_to_buffer(call, src_image, dst_buffer, {src_origin, region},
                                                           dst_offset);
                        });
}

cl_int CL_API_CALL clCommandCopyBufferToImageKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                                 const Property* properties, cl_mem src_buffer, cl_mem dst_image,
                                                 size_t src_offset, const size_t* dst_origin, const size_t* region,
                                                 cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                                 cl_sync_point_khr* sync_point,
                                                 cl_mutable_command_khr* mutable_handle) {
    return record_fixed({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
                        [&](const EnqueueCall& call) {
                            return enqueue_buffer_to_image(call, src_buffer, dst_image, src_offset,
                                                           {dst_origin, region});
                        });
}

cl_int CL_API_CALL clCommandFillImageKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                         const Property* properties, cl_mem image, const void* fill_color,
                                         const size_t* origin, const size_t* region, cl_uint num_sync_points,
                                         const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                         cl_mutable_command_khr* mutable_handle) {
    return record_fixed(
        {command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
        [&](const EnqueueCall& call) { return enqueue_image_fill(call, image, fill_color, {origin, region}); });
}

cl_int CL_API_CALL clCommandNDRangeKernelKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                             const Property* properties, cl_kernel kernel, cl_uint work_dim,
                                             const size_t* global_work_offset, const size_t* global_work_size,
                                             const size_t* local_work_size, cl_uint num_sync_points,
                                             const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                             cl_mutable_command_khr* mutable_handle) {
    return entry([&] {
        return record_kernel({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, kernel,
                             {work_dim, global_work_offset, global_work_size, local_work_size}, mutable_handle);
    });
}

cl_int CL_API_CALL clCommandSVMMemcpyKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                         const Property* properties, void* dst_ptr, const void* src_ptr, size_t size,
                                         cl_uint num_sync_points, const cl_sync_point_khr* sync_points,
                                         cl_sync_point_khr* sync_point, cl_mutable_command_khr* mutable_handle) {
    return record_fixed({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
                        [&](const EnqueueCall& call) -> Result<void> {
                            POLDER_TRY(check_svm(call));
                            return enqueue_pointer_copy(call, CL_COMMAND_SVM_MEMCPY, Blocking::no, dst_ptr, src_ptr,
                                                        size);
                        });
}

cl_int CL_API_CALL clCommandSVMMemFillKHR(cl_command_buffer_khr command_buffer, cl_command_queue queue,
                                          const Property* properties, void* svm_ptr, const void* pattern,
                                          size_t pattern_size, size_t size, cl_uint num_sync_points,
                                          const cl_sync_point_khr* sync_points, cl_sync_point_khr* sync_point,
                                          cl_mutable_command_khr* mutable_handle) {
    return record_fixed({command_buffer, queue, num_sync_points, sync_points, sync_point}, properties, mutable_handle,
                        [&](const EnqueueCall& call) -> Result<void> {
                            POLDER_TRY(check_svm(call));
                            return enqueue_pointer_fill(call, CL_COMMAND_SVM_MEMFILL, svm_ptr, pattern, pattern_size,
                                                        size);
                        });
}

}  // namespace polder::api::command_buffer
