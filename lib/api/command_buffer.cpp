// Command buffers: creation, finalizing, enqueueing, queries. OpenCL 3.1, chapter "Command-Buffers".
#include "command_buffer.h"

using namespace polder;
using namespace polder::api;
using runtime::CommandBuffer;
using runtime::Queue;

namespace polder::api::command_buffer {
namespace {

struct BufferProperties {
    CommandBuffer::Mutability mutability = CommandBuffer::Mutability::fixed;
    bool needs_device_side_sync = false;
    std::vector<cl_properties> list;  // with its terminating zero, or empty
};

Result<BufferProperties> check_buffer_properties(const Property* given) {
    BufferProperties properties;
    if (!given)
        return properties;
    for (; *given != 0; given += 2) {
        const bool is_flags = given[0] == CL_COMMAND_BUFFER_FLAGS_KHR;
        const bool is_asserts = given[0] == mutable_dispatch_asserts_of_buffer;
        // CL_INVALID_VALUE: a property is unknown.
        if (!is_flags && !is_asserts)
            return fail(Status::invalid_value);
        // CL_INVALID_VALUE: a property is in the list twice.
        for (size_t i = 0; i < properties.list.size(); i += 2)
            if (properties.list[i] == given[0])
                return fail(Status::invalid_value);
        // CL_INVALID_VALUE: a flag is unknown.
        constexpr cl_properties known_flags =
            CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR | CL_COMMAND_BUFFER_MUTABLE_KHR | flag_device_side_sync;
        if (given[1] & ~(is_flags ? known_flags : assert_no_additional_work_groups))
            return fail(Status::invalid_value);
        if (is_flags && (given[1] & CL_COMMAND_BUFFER_MUTABLE_KHR))
            properties.mutability = CommandBuffer::Mutability::updatable;
        properties.needs_device_side_sync |= is_flags && (given[1] & flag_device_side_sync);
        properties.list.insert(properties.list.end(), {given[0], given[1]});
    }
    properties.list.push_back(0);
    return properties;
}

// The queues on which the buffer executes: those of its creation, or those that the application passed.
Result<std::vector<Queue*>> queues_to_execute_on(const CommandBuffer& buffer, cl_uint num_queues,
                                                 const cl_command_queue* queues) {
    // CL_INVALID_VALUE: one of num_queues and queues is 0 (null) and the other is not, or num_queues differs from that at creation.
    if ((num_queues == 0) != (queues == nullptr) || (queues && num_queues != buffer.queues().size()))
        return fail(Status::invalid_value);
    std::vector<Queue*> result;
    for (size_t i = 0; i < buffer.queues().size(); ++i) {
        Queue& own = *buffer.queues()[i];
        if (!queues) {
            result.push_back(&own);
            continue;
        }
        POLDER_ASSIGN(queue, from_handle<Queue>(queues[i]));
        // CL_INVALID_DEVICE: the queue is of another device than the one at creation.
        if (&queue->device() != &own.device())
            return fail(Status::invalid_device);
        // CL_INVALID_CONTEXT: the queue is of another context than the one at creation.
        if (&queue->context() != &buffer.context())
            return fail(Status::invalid_context);
        result.push_back(queue);
    }
    return result;
}

cl_command_buffer_state_khr state_of(const CommandBuffer& buffer) {
    switch (buffer.state()) {
    case CommandBuffer::State::recording: return CL_COMMAND_BUFFER_STATE_RECORDING_KHR;
    case CommandBuffer::State::finalized: return state_finalized;
    default: return CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR;
    }
}

}  // namespace

bool can_sync(const runtime::Device& one, const runtime::Device& other) {
    return one.driver_name() == other.driver_name();
}

Result<std::vector<Ref<Queue>>> queues_of(cl_uint count, const cl_command_queue* queues) {
    std::vector<Ref<Queue>> list;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(queue, from_handle<Queue>(queues[i]));
        list.push_back(Ref<Queue>::share(queue));
        // CL_INVALID_CONTEXT: the queues are not all of one context.
        if (&queue->context() != &list.front()->context())
            return fail(Status::invalid_context);
    }
    return list;
}

cl_command_buffer_khr CL_API_CALL clCreateCommandBufferKHR(cl_uint num_queues, const cl_command_queue* queues,
                                                           const Property* properties, cl_int* errcode_ret) {
    return create<cl_command_buffer_khr>(errcode_ret, [&]() -> Result<cl_command_buffer_khr> {
        // CL_INVALID_VALUE: num_queues is 0, or queues is null.
        if (num_queues == 0 || !queues)
            return fail(Status::invalid_value);
        POLDER_ASSIGN(list, queues_of(num_queues, queues));
        POLDER_ASSIGN(checked, check_buffer_properties(properties));
        // CL_INCOMPATIBLE_COMMAND_QUEUE_KHR: CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR is set, and the queues' devices cannot synchronize.
        for (const Ref<Queue>& queue : list)
            if (checked.needs_device_side_sync && !can_sync(queue->device(), list.front()->device()))
                return fail(runtime::incompatible_command_queue);
        return expose<cl_command_buffer_khr>(
            make_ref<CommandBuffer>(std::move(list), checked.mutability, std::move(checked.list)));
    });
}

cl_int CL_API_CALL clRetainCommandBufferKHR(cl_command_buffer_khr command_buffer) {
    return entry([&] { return retain<CommandBuffer>(command_buffer); });
}

cl_int CL_API_CALL clReleaseCommandBufferKHR(cl_command_buffer_khr command_buffer) {
    return entry([&] { return release<CommandBuffer>(command_buffer); });
}

cl_int CL_API_CALL clFinalizeCommandBufferKHR(cl_command_buffer_khr command_buffer) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(buffer, from_handle<CommandBuffer>(command_buffer));
        // CL_INVALID_OPERATION: the command buffer is finalized already.
        return buffer->finalize();
    });
}

cl_int CL_API_CALL clEnqueueCommandBufferKHR(cl_uint num_queues, cl_command_queue* queues,
                                             cl_command_buffer_khr command_buffer, cl_uint num_events,
                                             const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(buffer, from_handle<CommandBuffer>(command_buffer));
        // CL_INVALID_OPERATION: the command buffer is not executable.
        POLDER_ASSIGN(schedule, buffer->schedule());
        POLDER_ASSIGN(on, queues_to_execute_on(*buffer, num_queues, queues));
        POLDER_ASSIGN(call, EnqueueCall::check(handle_of<cl_command_queue>(on.front()), num_events, list, event));
        return call.enqueue_by(CL_COMMAND_COMMAND_BUFFER_KHR,
                               [&](const runtime::EnqueueRequest& request) { return schedule->enqueue(on, request); });
    });
}

cl_int CL_API_CALL clGetCommandBufferInfoKHR(cl_command_buffer_khr command_buffer, cl_command_buffer_info_khr name,
                                             size_t value_size, void* value, size_t* value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(buffer, from_handle<CommandBuffer>(command_buffer));
        const Info info{value_size, value, value_size_ret};
        switch (name) {
        case CL_COMMAND_BUFFER_NUM_QUEUES_KHR: return info.value(static_cast<cl_uint>(buffer->queues().size()));
        case CL_COMMAND_BUFFER_QUEUES_KHR: {
            std::vector<cl_command_queue> handles;
            for (const Ref<Queue>& queue : buffer->queues())
                handles.push_back(handle_of<cl_command_queue>(queue.get()));
            return info.array(handles);
        }
        case CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR: return info.value<cl_uint>(buffer->api_references());
        case CL_COMMAND_BUFFER_STATE_KHR: return info.value(state_of(*buffer));
        case CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR: return info.array(buffer->properties());
        case context_info: return info.value(handle_of<cl_context>(&buffer->context()));
        // CL_INVALID_VALUE: param_name is unknown.
        default: return fail(Status::invalid_value);
        }
    });
}

}  // namespace polder::api::command_buffer
