// cl_intel_unified_shared_memory: host, device and shared allocations by their address. Revision 1.2.0.
//
// An allocation is a storage that is pinned in one memory (runtime/svm.h): host and shared allocations in host memory, device
// allocations in the memory of their device. Host and shared allocations are only supported by devices that compute in host memory or
// use it in place, because the host uses them at any time, without maps. Device allocations are supported by every device whose
// kernels use addresses.
#include "enqueue.h"
#include "pointer_commands.h"
#include "type_alignment.h"
#include "unified_memory.h"

#include <runtime/buffer_commands.h>
#include <runtime/kernel.h>
#include <runtime/svm.h>

#include <algorithm>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {

cl_device_unified_shared_memory_capabilities_intel memory_capabilities(const Device& device, Allocation::Kind kind) {
    constexpr cl_device_unified_shared_memory_capabilities_intel by_one =
        CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL | CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL;
    if (device.space_id().is_host())
        return by_one | CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL |
               CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ATOMIC_ACCESS_INTEL;
    if (kind == Allocation::Kind::device)
        return device.has_addresses() ? by_one : 0;
    // No atomic access: atomic operations of a device on a bus are not atomic for the processor and other devices.
    return device.in_place_regions() ? by_one | CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL : 0;
}

cl_device_unified_shared_memory_capabilities_intel system_memory_capabilities(const Device& device) {
    return device.space_id().is_host() ? memory_capabilities(device, Allocation::Kind::shared) : 0;
}

bool has_memory_of(const Context& context, Allocation::Kind kind) {
    return std::ranges::any_of(context.devices(),
                               [&](const auto& device) { return memory_capabilities(*device, kind) != 0; });
}

namespace {

using Kind = Allocation::Kind;

Result<cl_mem_alloc_flags_intel> allocation_flags(const cl_mem_properties_intel* properties, Kind kind) {
    constexpr cl_mem_alloc_flags_intel placement =
        CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL | CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL;
    const cl_mem_alloc_flags_intel known =
        CL_MEM_ALLOC_WRITE_COMBINED_INTEL | (kind == Kind::shared ? placement : cl_mem_alloc_flags_intel{0});
    cl_mem_alloc_flags_intel flags = 0;
    bool is_set = false;
    for (; properties && properties[0] != 0; properties += 2) {
        // CL_INVALID_PROPERTY: a property is unknown or listed twice.
        if (properties[0] != CL_MEM_ALLOC_FLAGS_INTEL || is_set)
            return fail(Status::invalid_property);
        is_set = true;
        flags = properties[1];
        // CL_INVALID_PROPERTY: flags are unknown, or contain an initial placement and the memory is not shared, or contain both placements.
        if ((flags & ~known) || (flags & placement) == placement)
            return fail(Status::invalid_property);
    }
    return flags;
}

struct Request {
    Kind kind;
    Device* device;  // null: none
    const cl_mem_properties_intel* properties;
    size_t size;
    cl_uint alignment;
};

// The largest size, in bytes, that is valid for all devices that may use the allocation.
uint64_t size_max(const Context& context, const Request& request) {
    if (request.device)
        return max_allocation_bytes(*request.device);
    uint64_t smallest = ~uint64_t{0};
    for (const Ref<Device>& device : context.devices())
        if (memory_capabilities(*device, request.kind) != 0)
            smallest = std::min(smallest, max_allocation_bytes(*device));
    return smallest;
}

Result<void*> allocate_unified(Context& context, const Request& request) {
    // CL_INVALID_OPERATION: the device (or, if device is null, every device of the context) does not support allocations of this kind.
    if (request.device ? memory_capabilities(*request.device, request.kind) == 0
                       : !has_memory_of(context, request.kind))
        return fail(Status::invalid_operation);
    // CL_INVALID_VALUE: alignment is not a power of two, or exceeds that of the largest OpenCL type.
    if (!is_type_alignment(request.alignment))
        return fail(Status::invalid_value);
    POLDER_ASSIGN(flags, allocation_flags(request.properties, request.kind));
    // CL_INVALID_BUFFER_SIZE: size is 0, or greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE of a device that may use the allocation.
    if (request.size == 0 || request.size > size_max(context, request))
        return fail(Status::invalid_buffer_size);
    const SpaceId space = request.kind == Kind::device ? request.device->space_id() : host_space;
    auto allocation = context.reported(allocate(
        context,
        {.kind = request.kind, .size = request.size, .space = space, .device = request.device, .flags = flags}));
    // CL_OUT_OF_HOST_MEMORY: host memory has no room. CL_OUT_OF_RESOURCES: the device's memory has no room.
    if (!allocation)
        return fail(space.is_host() ? Status::out_of_host_memory : Status::out_of_resources,
                    std::string(allocation.error().detail()));
    return reinterpret_cast<void*>(static_cast<uintptr_t>((*allocation)->address()));
}

Result<Device*> device_of(const Context& context, cl_device_id handle) {
    POLDER_ASSIGN(device, from_handle<Device>(handle));
    // CL_INVALID_DEVICE: device is not one of the context.
    if (!context.has(*device))
        return fail(Status::invalid_device);
    return device;
}

Result<void> free_unified(cl_context handle, const void* pointer,
                          bool (*free)(Context& context, const void* pointer, uint32_t kinds)) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    // CL_INVALID_VALUE: ptr is not the beginning of an allocation.
    if (pointer && !free(*context, pointer, unified_kinds))
        return fail(Status::invalid_value);
    return {};
}

cl_unified_shared_memory_type_intel type_of(const Allocation* allocation) {
    if (!allocation)
        return CL_MEM_TYPE_UNKNOWN_INTEL;
    switch (allocation->kind()) {
    case Kind::host: return CL_MEM_TYPE_HOST_INTEL;
    case Kind::device: return CL_MEM_TYPE_DEVICE_INTEL;
    case Kind::shared: return CL_MEM_TYPE_SHARED_INTEL;
    default: return CL_MEM_TYPE_UNKNOWN_INTEL;
    }
}

Result<void> answer(const Context& context, const void* pointer, cl_mem_info_intel name, const Info& info) {
    const Ref<const Allocation> found = context.addresses().find(pointer);
    const Allocation* const allocation = found && (kind_bit(found->kind()) & unified_kinds) ? found.get() : nullptr;
    switch (name) {
    case CL_MEM_ALLOC_TYPE_INTEL: return info.value<cl_unified_shared_memory_type_intel>(type_of(allocation));
    case CL_MEM_ALLOC_BASE_PTR_INTEL:
        return info.value<void*>(
            reinterpret_cast<void*>(static_cast<uintptr_t>(allocation ? allocation->address() : 0)));
    case CL_MEM_ALLOC_SIZE_INTEL: return info.value<size_t>(allocation ? allocation->size() : 0);
    case CL_MEM_ALLOC_DEVICE_INTEL:
        return info.value<cl_device_id>(allocation ? handle_of<cl_device_id>(allocation->device()) : nullptr);
    case CL_MEM_ALLOC_FLAGS_INTEL: return info.value<cl_mem_alloc_flags_intel>(allocation ? allocation->flags() : 0);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

Result<void> set_pointer(Kernel& kernel, cl_uint index, const void* value) {
    // CL_INVALID_ARG_INDEX: the kernel has no argument arg_index.
    if (index >= kernel.info().arguments.size())
        return fail(Status::invalid_arg_index);
    const compiler::ArgumentKind kind = kernel.info().arguments[index].kind;
    // CL_INVALID_ARG_VALUE: the argument is not a pointer to global or constant memory.
    if (kind != compiler::ArgumentKind::global_pointer && kind != compiler::ArgumentKind::constant_pointer)
        return fail(Status::invalid_arg_value);
    kernel.set_address(index, known_address(kernel.context(), value));
    return {};
}

// Migrates a device allocation to the device of the queue, if the allocation is pinned there. Other allocations never move: for them and
// for plain memory, the hint is ignored.
Result<void> migrate(const EnqueueCall& call, const void* pointer, size_t size, cl_mem_migration_flags flags) {
    // CL_INVALID_VALUE: flags are unknown.
    if (flags & ~(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED))
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: the range extends beyond the end of an allocation.
    POLDER_ASSIGN(range, find_range(call.context(), pointer, size));
    const bool moves = range.allocation && size > 0 && !range.allocation->is_always_on_host() &&
                       range.allocation->space() == call.queue().space() && !(flags & CL_MIGRATE_MEM_OBJECT_HOST);
    Ref<MemObject> view = moves ? range.view(call.context()) : nullptr;
    if (!view)
        return call.enqueue(CL_COMMAND_MIGRATEMEM_INTEL, MarkerCommand{});
    using Content = memory::Domain::Content;
    const Content content = flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED ? Content::undefined : Content::kept;
    std::vector<Ref<MemObject>> views;
    views.push_back(std::move(view));
    return call.enqueue(CL_COMMAND_MIGRATEMEM_INTEL, MigrateCommand(std::move(views), call.queue().space(), content));
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;

CL_API_ENTRY void* CL_API_CALL clHostMemAllocINTEL(cl_context context, const cl_mem_properties_intel* properties,
                                                   size_t size, cl_uint alignment, cl_int* errcode_ret) {
    return create<void*>(errcode_ret, [&]() -> Result<void*> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return allocate_unified(*checked, {Allocation::Kind::host, nullptr, properties, size, alignment});
    });
}

CL_API_ENTRY void* CL_API_CALL clDeviceMemAllocINTEL(cl_context context, cl_device_id device,
                                                     const cl_mem_properties_intel* properties, size_t size,
                                                     cl_uint alignment, cl_int* errcode_ret) {
    return create<void*>(errcode_ret, [&]() -> Result<void*> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        POLDER_ASSIGN(owner, device_of(*checked, device));
        return allocate_unified(*checked, {Allocation::Kind::device, owner, properties, size, alignment});
    });
}

CL_API_ENTRY void* CL_API_CALL clSharedMemAllocINTEL(cl_context context, cl_device_id device,
                                                     const cl_mem_properties_intel* properties, size_t size,
                                                     cl_uint alignment, cl_int* errcode_ret) {
    return create<void*>(errcode_ret, [&]() -> Result<void*> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        Device* owner = nullptr;
        if (device) {
            POLDER_ASSIGN(named, device_of(*checked, device));
            owner = named;
        }
        return allocate_unified(*checked, {Allocation::Kind::shared, owner, properties, size, alignment});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clMemFreeINTEL(cl_context context, void* ptr) {
    return entry([&] { return free_unified(context, ptr, free_allocation); });
}

CL_API_ENTRY cl_int CL_API_CALL clMemBlockingFreeINTEL(cl_context context, void* ptr) {
    return entry([&] { return free_unified(context, ptr, free_allocation_when_idle); });
}

CL_API_ENTRY cl_int CL_API_CALL clGetMemAllocInfoINTEL(cl_context context, const void* ptr,
                                                       cl_mem_info_intel param_name, size_t param_value_size,
                                                       void* param_value, size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return answer(*checked, ptr, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgMemPointerINTEL(cl_kernel kernel, cl_uint arg_index,
                                                              const void* arg_value) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        return set_pointer(*object, arg_index, arg_value);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMemFillINTEL(cl_command_queue command_queue, void* dst_ptr,
                                                      const void* pattern, size_t pattern_size, size_t size,
                                                      cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                                      cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events_in_wait_list, event_wait_list, event));
        return enqueue_pointer_fill(call, CL_COMMAND_MEMFILL_INTEL, dst_ptr, pattern, pattern_size, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMemcpyINTEL(cl_command_queue command_queue, cl_bool blocking, void* dst_ptr,
                                                     const void* src_ptr, size_t size, cl_uint num_events_in_wait_list,
                                                     const cl_event* event_wait_list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events_in_wait_list, event_wait_list, event));
        return enqueue_pointer_copy(call, CL_COMMAND_MEMCPY_INTEL, blocking_if(blocking), dst_ptr, src_ptr, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMigrateMemINTEL(cl_command_queue command_queue, const void* ptr, size_t size,
                                                         cl_mem_migration_flags flags, cl_uint num_events_in_wait_list,
                                                         const cl_event* event_wait_list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events_in_wait_list, event_wait_list, event));
        return migrate(call, ptr, size, flags);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMemAdviseINTEL(cl_command_queue command_queue, const void* ptr, size_t size,
                                                        cl_mem_advice_intel advice, cl_uint num_events_in_wait_list,
                                                        const cl_event* event_wait_list, cl_event* event) {
    return entry([&]() -> Result<void> {
        static_cast<void>(ptr);
        static_cast<void>(size);
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events_in_wait_list, event_wait_list, event));
        // CL_INVALID_VALUE: advice is unknown. The extension reserves these numbers, but defines no advice; 0 means no advice.
        constexpr cl_mem_advice_intel reserved_first = 0x4208, reserved_last = 0x420F;
        if (advice != 0 && (advice < reserved_first || advice > reserved_last))
            return fail(Status::invalid_value);
        return call.enqueue(CL_COMMAND_MEMADVISE_INTEL, MarkerCommand{});
    });
}
