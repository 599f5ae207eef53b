// Properties of imported memory, and the commands that acquire and release it. OpenCL 3.1, section "Acquiring and Releasing External Memory
// Objects".
#include "external_memory.h"

#include "enqueue.h"
#include "mem_flags.h"

#include <runtime/external_commands.h>

#include <limits>

using namespace polder;
using namespace polder::api;
using runtime::Context;
using runtime::Device;
using runtime::ExternalMemory;
using runtime::HandOverCommand;
using runtime::MemObject;

namespace polder::api {
namespace {

constexpr cl_mem_properties device_handle_list = 0x2051;

Result<std::vector<Ref<Device>>> check_devices(const Context& context, const cl_mem_properties* list) {
    std::vector<Ref<Device>> devices;
    for (; *list != 0; ++list) {
        // CL_INVALID_DEVICE: an entry of the list is not a device, or not a device of the context.
        POLDER_ASSIGN(device, from_handle<Device>(reinterpret_cast<const void*>(*list)));
        if (!context.has(*device))
            return fail(Status::invalid_device);
        devices.push_back(Ref<Device>::share(device));
    }
    // CL_INVALID_PROPERTY: the list of devices is empty.
    if (devices.empty())
        return fail(Status::invalid_property);
    return devices;
}

}  // namespace

Result<size_t> ExternalProperties::take(const Context& context, const cl_mem_properties* at) {
    if (at[0] == device_handle_list) {
        // CL_INVALID_PROPERTY: there are two lists of devices.
        if (devices_)
            return fail(Status::invalid_property);
        POLDER_ASSIGN(devices, check_devices(context, at + 1));
        const size_t count = devices.size() + 2;
        devices_ = std::move(devices);
        return count;
    }
    if (at[0] != CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR && at[0] != CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR)
        return size_t{0};
    // CL_INVALID_PROPERTY: there is more than one descriptor, or the number is too large for a descriptor.
    if (source_ || at[1] > static_cast<cl_mem_properties>(std::numeric_limits<int>::max()))
        return fail(Status::invalid_property);
    using Type = ExternalMemory::Type;
    source_ = {
        at[0] == CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR ? Type::dma_buf : Type::opaque_fd, static_cast<int>(at[1]), {}};
    return size_t{2};
}

Result<void> ExternalProperties::check_complete() const {
    // CL_INVALID_PROPERTY: there are devices, but no descriptor.
    if (devices_ && !source_)
        return fail(Status::invalid_property);
    return {};
}

Result<void> ExternalProperties::check_arguments(cl_mem_flags flags, const void* host_ptr) {
    // CL_INVALID_VALUE: flags contain CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR or CL_MEM_COPY_HOST_PTR.
    if (flags & host_pointer_use)
        return fail(Status::invalid_value);
    // CL_INVALID_HOST_PTR: host_ptr is not null.
    if (host_ptr)
        return fail(Status::invalid_host_ptr);
    return {};
}

Result<Ref<ExternalMemory>> ExternalProperties::import(uint64_t size, cl_mem_flags flags) && {
    if (devices_)
        source_->devices = std::move(*devices_);
    using Protection = ExternalMemory::Protection;
    return ExternalMemory::import(std::move(*source_), ByteCount{size},
                                  flags & immutable ? Protection::read : Protection::read_write);
}

namespace {

Result<std::vector<Ref<MemObject>>> check_objects(const EnqueueCall& call, cl_uint count, const cl_mem* list) {
    // CL_INVALID_VALUE: num_mem_objects is 0 and mem_objects is not null, or the other way round.
    if ((count == 0) != (list == nullptr))
        return fail(Status::invalid_value);
    std::vector<Ref<MemObject>> objects;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(object, from_handle<MemObject>(list[i]));
        // CL_INVALID_MEM_OBJECT: the object was not created from a descriptor.
        if (!object->external())
            return fail(Status::invalid_mem_object);
        // CL_INVALID_COMMAND_QUEUE: the object belongs to another context, or was created for other devices.
        if (&object->context() != &call.context() || !object->external()->is_for(call.queue().device()))
            return fail(Status::invalid_command_queue);
        objects.push_back(Ref<MemObject>::share(object));
    }
    return objects;
}

Result<void> hand_over(const EnqueueCall& call, cl_uint count, const cl_mem* list, HandOverCommand::Direction direction,
                       cl_command_type type) {
    POLDER_ASSIGN(objects, check_objects(call, count, list));
    POLDER_TRY(call.check_wait_list());
    if (objects.empty())
        return call.enqueue(type, runtime::MarkerCommand{});
    return call.enqueue(type, HandOverCommand(std::move(objects), direction));
}

}  // namespace
}  // namespace polder::api

CL_API_ENTRY cl_int CL_API_CALL clEnqueueAcquireExternalMemObjectsKHR(cl_command_queue command_queue,
                                                                      cl_uint num_mem_objects,
                                                                      const cl_mem* mem_objects, cl_uint num_events,
                                                                      const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events, list, event));
        return hand_over(call, num_mem_objects, mem_objects, HandOverCommand::Direction::acquire,
                         CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReleaseExternalMemObjectsKHR(cl_command_queue command_queue,
                                                                      cl_uint num_mem_objects,
                                                                      const cl_mem* mem_objects, cl_uint num_events,
                                                                      const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events, list, event));
        return hand_over(call, num_mem_objects, mem_objects, HandOverCommand::Direction::release,
                         CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR);
    });
}
