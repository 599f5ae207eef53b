// Buffers and sub-buffers: creation, queries, callbacks.
#include "entry.h"
#include "mem_flags.h"
#include "mem_properties.h"

#include <runtime/mem_object.h>
#include <runtime/svm.h>

#include <algorithm>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

bool all_use_in_place(const Context& context, const Allocation& allocation) {
    return std::ranges::all_of(context.devices(), [&](const auto& device) {
        return device->space_id().is_host() || allocation.is_for_kernels_in(device->space_id());
    });
}

// A buffer whose host_ptr lies within an SVM or unified shared memory allocation: it shares the allocation's storage if it can.
Result<Ref<MemObject>> create_buffer_in(Context& context, const Allocation& allocation, cl_mem_flags flags, size_t size,
                                        void* host_ptr, std::vector<cl_mem_properties> properties) {
    const uint64_t begin = DeviceAddress::of(host_ptr).value - allocation.address();
    // CL_INVALID_BUFFER_SIZE: host_ptr is in an allocation, and the buffer would extend beyond its end.
    if (allocation.kind() != Allocation::Kind::buffer && size > allocation.size() - begin)
        return fail(Status::invalid_buffer_size);
    const bool is_unified = kind_bit(allocation.kind()) & unified_kinds;
    // CL_INVALID_HOST_PTR: CL_MEM_USE_HOST_PTR with unified shared memory, and not all devices use it in place. The host uses that memory
    // without maps, so a device with a copy in its own memory could not share it.
    if (is_unified && (flags & CL_MEM_USE_HOST_PTR) && !all_use_in_place(context, allocation))
        return fail(Status::invalid_host_ptr);
    // CL_INVALID_HOST_PTR: host_ptr is in the memory of a device.
    if (is_unified && !allocation.space().is_host())
        return fail(Status::invalid_host_ptr);
    if (!(flags & CL_MEM_USE_HOST_PTR) || allocation.kind() == Allocation::Kind::buffer)
        return context.reported(
            MemObject::create_buffer(Ref<Context>::share(&context), flags, size, host_ptr, std::move(properties)));
    Ref<memory::Storage> storage = allocation.storage();
    // CL_INVALID_HOST_PTR: the allocation has been freed.
    if (!storage)
        return fail(Status::invalid_host_ptr);
    return MemObject::create_view(Ref<Context>::share(&context), std::move(storage), flags, {begin, begin + size},
                                  host_ptr, std::move(properties));
}

bool has_addresses(const Context& context) {
    return std::ranges::all_of(context.devices(), [](const auto& device) { return device->has_addresses(); });
}

Result<void> check_size(const Context& context, size_t size) {
    // CL_INVALID_BUFFER_SIZE: size is 0, or greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE of all devices in the context.
    if (size == 0 || size > context.max_allocation_bytes())
        return fail(Status::invalid_buffer_size);
    return {};
}

Result<Ref<MemObject>> create_external_buffer(Context& context, MemProperties properties, cl_mem_flags flags,
                                              size_t size, const void* host_ptr) {
    POLDER_TRY(ExternalProperties::check_arguments(flags, host_ptr));
    POLDER_TRY(check_size(context, size));
    flags = default_access(flags);
    POLDER_ASSIGN(memory, context.reported(std::move(properties.external).import(size, flags)));
    return context.reported(MemObject::create_external(Ref<Context>::share(&context), std::move(memory), flags, size,
                                                       std::move(properties.list)));
}

// Inlined always, with the functions around it: the calls would take a quarter of the time of creating a buffer.
[[gnu::always_inline]] inline Result<Ref<MemObject>> create_plain_buffer(Context* context,
                                                                         std::vector<cl_mem_properties>&& kept,
                                                                         cl_mem_flags flags, size_t size,
                                                                         void* host_ptr) {
    POLDER_TRY(check_contents(flags));
    POLDER_TRY(check_size(*context, size));
    // CL_INVALID_HOST_PTR: host_ptr is null and flags require it, or host_ptr is not null and flags do not use it.
    const bool needs_pointer = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    if (needs_pointer != (host_ptr != nullptr))
        return fail(Status::invalid_host_ptr);
    flags = default_access(flags);
    if (needs_pointer)
        if (const Ref<const Allocation> allocation = context->addresses().find(host_ptr))
            return create_buffer_in(*context, *allocation, flags, size, host_ptr, std::move(kept));
    return context->reported(
        MemObject::create_buffer(Ref<Context>::share(context), flags, size, host_ptr, std::move(kept)));
}

[[gnu::always_inline]] inline Result<Ref<MemObject>> create_buffer(cl_context handle, cl_mem_flags flags, size_t size,
                                                                   void* host_ptr) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    POLDER_TRY(check_flags(flags));
    return create_plain_buffer(context, {}, flags, size, host_ptr);
}

Result<Ref<MemObject>> create_buffer(cl_context handle, const cl_mem_properties* list, cl_mem_flags flags, size_t size,
                                     void* host_ptr) {
    if (!list)
        return create_buffer(handle, flags, size, host_ptr);
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    POLDER_ASSIGN(properties, check_mem_properties(*context, PropertiesOf::buffer, list));
    const bool wants_addresses = properties.wants_addresses.value_or(false);
    // CL_INVALID_DEVICE: properties request device addresses, and a device of the context has none.
    if (wants_addresses && !has_addresses(*context))
        return fail(Status::invalid_device);
    POLDER_TRY(check_flags(flags));
    auto buffer = properties.external.has_source()
                      ? create_external_buffer(*context, std::move(properties), flags, size, host_ptr)
                      : create_plain_buffer(context, std::move(properties.list), flags, size, host_ptr);
    if (buffer && wants_addresses)
        POLDER_TRY(context->reported((*buffer)->fix_addresses()));
    return buffer;
}

// The flags of a sub-buffer: those that are not given are inherited from the parent. Flags that exceed the parent's are errors.
Result<cl_mem_flags> sub_buffer_flags(cl_mem_flags parent, cl_mem_flags flags) {
    POLDER_TRY(check_flags(flags));
    // CL_INVALID_VALUE: flags contain CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR or CL_MEM_COPY_HOST_PTR.
    if (flags & host_pointer_use)
        return fail(Status::invalid_value);
    POLDER_TRY(check_access_within(parent, flags));
    // CL_INVALID_VALUE: the parent was created with CL_MEM_IMMUTABLE_EXT, and flags allow writing.
    if ((parent & immutable) && (flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_HOST_WRITE_ONLY)))
        return fail(Status::invalid_value);
    if (!(flags & device_access))
        flags |= parent & device_access;
    if (!(flags & host_access))
        flags |= parent & host_access;
    return flags | (parent & (host_pointer_use | immutable));
}

Result<Ref<MemObject>> create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                         const void* info) {
    POLDER_ASSIGN(parent, from_handle<MemObject>(buffer));
    // CL_INVALID_MEM_OBJECT: buffer is a sub-buffer, an image or a pipe.
    if (parent->parent() || !parent->is_buffer())
        return fail(Status::invalid_mem_object);
    POLDER_ASSIGN(all_flags, sub_buffer_flags(parent->flags(), flags));
    // CL_INVALID_VALUE: buffer_create_type is unknown, or buffer_create_info is null.
    if (type != CL_BUFFER_CREATE_TYPE_REGION || !info)
        return fail(Status::invalid_value);
    const auto region = *static_cast<const cl_buffer_region*>(info);
    // CL_INVALID_BUFFER_SIZE: the size of the region is 0.
    if (region.size == 0)
        return fail(Status::invalid_buffer_size);
    // CL_INVALID_VALUE: the region is out of the bounds of buffer.
    if (region.origin > parent->size() || region.size > parent->size() - region.origin)
        return fail(Status::invalid_value);
    // CL_MISALIGNED_SUB_BUFFER_OFFSET: the origin is not a multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN of any device in the context.
    if (region.origin % parent->context().min_base_alignment() != 0)
        return fail(Status::misaligned_sub_buffer_offset);
    return MemObject::create_sub_buffer(Ref<MemObject>::share(parent), all_flags,
                                        ByteRange::at(region.origin, ByteCount{region.size}));
}

[[gnu::always_inline]] inline Result<cl_mem> exposed(Result<Ref<MemObject>>&& object) {
    if (!object)
        return fail(object.error());
    return expose<cl_mem>(std::move(*object));
}

bool is_svm_pointer(const MemObject& object) {
    if (!object.host_pointer())
        return false;
    const Ref<const Allocation> allocation = object.context().addresses().find(object.host_pointer());
    return allocation && allocation->kind() == Allocation::Kind::svm;
}

Result<void> answer_addresses(const MemObject& object, const Info& info) {
    const std::vector<cl_mem_device_address_ext> addresses = object.device_addresses();
    // CL_INVALID_OPERATION: the buffer was not created with CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT.
    if (addresses.empty())
        return fail(Status::invalid_operation);
    return info.array(addresses);
}

cl_mem_object_type type_of(const MemObject& object) {
    if (object.pipe())
        return CL_MEM_OBJECT_PIPE;
    return object.image() ? object.image()->type : CL_MEM_OBJECT_BUFFER;
}

Result<void> get_mem_info(cl_mem handle, cl_mem_info name, const Info& info) {
    POLDER_ASSIGN(object, from_handle<MemObject>(handle));
    switch (name) {
    case CL_MEM_TYPE: return info.value<cl_mem_object_type>(type_of(*object));
    case CL_MEM_FLAGS: return info.value<cl_mem_flags>(object->flags());
    case CL_MEM_SIZE: return info.value<size_t>(object->size());
    case CL_MEM_HOST_PTR: return info.value<void*>(object->host_pointer());
    case CL_MEM_MAP_COUNT: return info.value<cl_uint>(object->map_count());
    case CL_MEM_REFERENCE_COUNT: return info.value<cl_uint>(object->api_references());
    case CL_MEM_CONTEXT: return info.value<cl_context>(handle_of<cl_context>(&object->context()));
    case CL_MEM_ASSOCIATED_MEMOBJECT: return info.value<cl_mem>(handle_of<cl_mem>(object->parent()));
    case CL_MEM_OFFSET: return info.value<size_t>(object->offset_in_parent());
    case CL_MEM_USES_SVM_POINTER: return info.value<cl_bool>(is_svm_pointer(*object) ? CL_TRUE : CL_FALSE);
    case CL_MEM_DEVICE_ADDRESS_EXT: return answer_addresses(*object, info);
    case CL_MEM_PROPERTIES: return info.array(object->properties());
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host_ptr,
                                               cl_int* errcode_ret) {
    return create<cl_mem>(errcode_ret, [&] { return exposed(create_buffer(context, flags, size, host_ptr)); });
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties,
                                                             cl_mem_flags flags, size_t size, void* host_ptr,
                                                             cl_int* errcode_ret) {
    return create<cl_mem>(errcode_ret,
                          [&] { return exposed(create_buffer(context, properties, flags, size, host_ptr)); });
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                                  const void* info, cl_int* errcode_ret) {
    return create<cl_mem>(errcode_ret, [&] { return exposed(create_sub_buffer(buffer, flags, type, info)); });
}

CL_API_ENTRY cl_int CL_API_CALL clRetainMemObject(cl_mem object) {
    return entry([&] { return retain<MemObject>(object); });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseMemObject(cl_mem object) {
    return entry([&] { return release<MemObject>(object); });
}

CL_API_ENTRY cl_int CL_API_CALL clSetMemObjectDestructorCallback(cl_mem object,
                                                                 void(CL_CALLBACK* pfn_notify)(cl_mem, void*),
                                                                 void* user_data) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<MemObject>(object));
        // CL_INVALID_VALUE: pfn_notify is null.
        if (!pfn_notify)
            return fail(Status::invalid_value);
        return checked->add_destructor(pfn_notify, user_data);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetMemObjectInfo(cl_mem object, cl_mem_info param_name, size_t param_value_size,
                                                   void* param_value, size_t* param_value_size_ret) {
    return entry(
        [&] { return get_mem_info(object, param_name, Info{param_value_size, param_value, param_value_size_ret}); });
}
