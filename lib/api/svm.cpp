// Shared virtual memory: coarse-grained, fine-grained and system sharing on devices that compute in host memory.
//
// An allocation is a storage that is pinned in host memory (runtime/svm.h), so it stays coherent with buffers over the same
// bytes on every device. A pointer that is not in an allocation points to plain host memory: system sharing.
#include "enqueue.h"
#include "pointer_commands.h"
#include "type_alignment.h"

#include <runtime/buffer_commands.h>
#include <runtime/svm.h>
#include <runtime/svm_commands.h>

#include <bit>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

// Reports the reason to the context's callback, because clSVMAlloc has no error code.
Error refuse_fine_grain(const Context& context) {
    std::string text = "clSVMAlloc: fine-grained memory needs devices that all compute in host memory; these do not:";
    for (const Ref<Device>& device : context.devices())
        if (!device->has_svm())
            text += ' ' + device->info().name;
    context.notify(text);
    return Error{Status::invalid_operation, std::move(text)};
}

Result<void*> svm_alloc(cl_context handle, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    constexpr cl_svm_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
    constexpr cl_svm_mem_flags known = access | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
    const bool atomics_alone = (flags & CL_MEM_SVM_ATOMICS) && !(flags & CL_MEM_SVM_FINE_GRAIN_BUFFER);
    // Null (CL_INVALID_VALUE): flags are unknown or exclude each other.
    if ((flags & ~known) || std::popcount(flags & access) > 1 || atomics_alone)
        return fail(Status::invalid_value);
    // Null (CL_INVALID_OPERATION): no device of the context has SVM.
    if (!context->has_svm())
        return fail(Status::invalid_operation);
    // Null (CL_INVALID_OPERATION): CL_MEM_SVM_FINE_GRAIN_BUFFER, and a device of the context does not have fine-grained SVM.
    if ((flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) && !context->has_fine_grained_svm())
        return fail(refuse_fine_grain(*context));
    // Null (CL_INVALID_BUFFER_SIZE): size is 0, or greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE of any device in the context.
    if (size == 0 || size > context->max_svm_allocation_bytes())
        return fail(Status::invalid_buffer_size);
    // Null (CL_INVALID_VALUE): alignment is not a power of two, or exceeds that of the largest OpenCL type.
    if (!is_type_alignment(alignment))
        return fail(Status::invalid_value);
    POLDER_ASSIGN(allocation, allocate(*context, {.kind = Allocation::Kind::svm, .size = size, .space = host_space}));
    return reinterpret_cast<void*>(static_cast<uintptr_t>(allocation->address()));
}

Result<EnqueueCall> check_svm_call(cl_command_queue queue, cl_uint count, const cl_event* list, cl_event* event) {
    POLDER_ASSIGN(call, EnqueueCall::check(queue, count, list, event));
    // CL_INVALID_OPERATION: the device has no SVM.
    if (!call.queue().device().has_svm())
        return fail(Status::invalid_operation);
    return call;
}

using FreeCallback = void(CL_CALLBACK*)(cl_command_queue queue, cl_uint count, void** pointers, void* user);

// The data of an SVM free command. When the command executes, it frees the pointers or calls the application's function.
struct SvmFree {
    Ref<Queue> queue;
    std::vector<void*> pointers;
    FreeCallback callback;
    void* user;

    static void run(void* data) {
        const std::unique_ptr<SvmFree> self(static_cast<SvmFree*>(data));
        if (self->callback) {
            self->callback(handle_of<cl_command_queue>(self->queue.get()), static_cast<cl_uint>(self->pointers.size()),
                           self->pointers.data(), self->user);
            return;
        }
        for (void* pointer : self->pointers)
            free_allocation(self->queue->context(), pointer, svm_kind);
    }
    static void discard(void* data) { delete static_cast<SvmFree*>(data); }
};

Result<void> enqueue_svm_free(const EnqueueCall& call, cl_uint count, void** pointers, FreeCallback callback,
                              void* user) {
    // CL_INVALID_VALUE: num_svm_pointers is 0 and svm_pointers is not null, or the other way round.
    if ((count == 0) != (pointers == nullptr))
        return fail(Status::invalid_value);
    auto job = std::make_unique<SvmFree>(
        SvmFree{Ref<Queue>::share(&call.queue()), std::vector<void*>(pointers, pointers + count), callback, user});
    // CL_INVALID_VALUE: a pointer is null.
    for (const void* pointer : job->pointers)
        if (!pointer)
            return fail(Status::invalid_value);
    SvmFree* const data = job.get();
    POLDER_TRY(call.enqueue(CL_COMMAND_SVM_FREE, HostCallCommand(SvmFree::run, SvmFree::discard, data)));
    static_cast<void>(job.release());
    return {};
}

Result<memory::MapAccess> check_map_flags(cl_map_flags flags) {
    constexpr cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    const bool contradictory = (flags & CL_MAP_WRITE_INVALIDATE_REGION) && (flags & (CL_MAP_READ | CL_MAP_WRITE));
    // CL_INVALID_VALUE: map_flags are unknown or exclude each other.
    if ((flags & ~known) || contradictory)
        return fail(Status::invalid_value);
    if (flags & CL_MAP_WRITE_INVALIDATE_REGION)
        return memory::MapAccess::write_invalidate;
    if (flags & CL_MAP_WRITE)
        return flags & CL_MAP_READ ? memory::MapAccess::read_write : memory::MapAccess::write;
    return memory::MapAccess::read;
}

Result<void> enqueue_svm_map(const EnqueueCall& call, Blocking blocking, cl_map_flags flags, const void* pointer,
                             size_t size) {
    // CL_INVALID_VALUE: svm_ptr is null, or size is 0.
    if (!pointer || size == 0)
        return fail(Status::invalid_value);
    POLDER_ASSIGN(access, check_map_flags(flags));
    // CL_INVALID_VALUE: the range extends beyond the end of an allocation.
    POLDER_ASSIGN(range, find_range(call.context(), pointer, size));
    Ref<memory::Storage> storage = range.allocation ? range.allocation->storage() : nullptr;
    // Plain host memory: the map command only has to be ordered.
    if (!storage)
        return call.enqueue(CL_COMMAND_SVM_MAP, MarkerCommand{}, blocking);
    const auto map = make_ref<AllocationMap>(pointer, range.within_allocation(), access);
    range.allocation->add_map(map);
    auto enqueued =
        call.enqueue(CL_COMMAND_SVM_MAP, SvmMapCommand(range.allocation, std::move(storage), map), blocking);
    if (!enqueued)
        range.allocation->cancel_map(*map);
    return enqueued;
}

Result<void> enqueue_svm_unmap(const EnqueueCall& call, const void* pointer) {
    // CL_INVALID_VALUE: svm_ptr is null.
    if (!pointer)
        return fail(Status::invalid_value);
    const Ref<const Allocation> allocation = call.context().addresses().find(pointer);
    Ref<memory::Storage> storage = allocation ? allocation->storage() : nullptr;
    const Ref<AllocationMap> map = storage ? allocation->take_map(pointer) : nullptr;
    // Fine-grained and system memory need no map.
    if (!map)
        return call.enqueue(CL_COMMAND_SVM_UNMAP, MarkerCommand{});
    auto enqueued = call.enqueue(CL_COMMAND_SVM_UNMAP, SvmUnmapCommand(allocation, std::move(storage), map));
    if (!enqueued)
        allocation->return_map(map);
    return enqueued;
}

// The bytes to migrate. A size of 0 means the whole allocation that contains the pointer.
Result<Ref<MemObject>> migrated_bytes(const EnqueueCall& call, const void* pointer, size_t size) {
    POLDER_ASSIGN(range, find_range(call.context(), pointer, size));
    Ref<MemObject> view;
    if (range.allocation)
        view = size == 0 ? range.allocation->view(call.context()) : range.view(call.context());
    // CL_INVALID_VALUE: a range is not within one SVM allocation.
    if (!view)
        return fail(Status::invalid_value);
    return view;
}

Result<void> enqueue_svm_migrate(const EnqueueCall& call, cl_uint count, const void** pointers, const size_t* sizes,
                                 cl_mem_migration_flags flags) {
    // CL_INVALID_VALUE: num_svm_pointers is 0, svm_pointers is null, or flags are unknown.
    if (count == 0 || !pointers || (flags & ~(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED)))
        return fail(Status::invalid_value);
    std::vector<Ref<MemObject>> objects;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(object, migrated_bytes(call, pointers[i], sizes ? sizes[i] : 0));
        objects.push_back(std::move(object));
    }
    const SpaceId target = flags & CL_MIGRATE_MEM_OBJECT_HOST ? host_space : call.queue().space();
    using Content = memory::Domain::Content;
    const Content content = flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED ? Content::undefined : Content::kept;
    return call.enqueue(CL_COMMAND_SVM_MIGRATE_MEM, MigrateCommand(std::move(objects), target, content));
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;

CL_API_ENTRY void* CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
    return create<void*>(nullptr, [&] { return svm_alloc(context, flags, size, alignment); });
}

CL_API_ENTRY void CL_API_CALL clSVMFree(cl_context context, void* svm_pointer) {
    // clSVMFree has no error code; invalid contexts are ignored.
    static_cast<void>(entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        if (svm_pointer)
            free_allocation(*checked, svm_pointer, svm_kind);
        return {};
    }));
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMFree(cl_command_queue queue, cl_uint num_svm_pointers, void* svm_pointers[],
                                                 FreeCallback pfn_free_func, void* user_data, cl_uint num_events,
                                                 const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, check_svm_call(queue, num_events, list, event));
        return enqueue_svm_free(call, num_svm_pointers, svm_pointers, pfn_free_func, user_data);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* dst_ptr,
                                                   const void* src_ptr, size_t size, cl_uint num_events,
                                                   const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, check_svm_call(queue, num_events, list, event));
        return enqueue_pointer_copy(call, CL_COMMAND_SVM_MEMCPY, blocking_if(blocking), dst_ptr, src_ptr, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMemFill(cl_command_queue queue, void* svm_ptr, const void* pattern,
                                                    size_t pattern_size, size_t size, cl_uint num_events,
                                                    const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, check_svm_call(queue, num_events, list, event));
        return enqueue_pointer_fill(call, CL_COMMAND_SVM_MEMFILL, svm_ptr, pattern, pattern_size, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                                                void* svm_ptr, size_t size, cl_uint num_events, const cl_event* list,
                                                cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, check_svm_call(queue, num_events, list, event));
        return enqueue_svm_map(call, blocking_if(blocking), flags, svm_ptr, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMUnmap(cl_command_queue queue, void* svm_ptr, cl_uint num_events,
                                                  const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, check_svm_call(queue, num_events, list, event));
        return enqueue_svm_unmap(call, svm_ptr);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint num_svm_pointers,
                                                       const void** svm_pointers, const size_t* sizes,
                                                       cl_mem_migration_flags flags, cl_uint num_events,
                                                       const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, check_svm_call(queue, num_events, list, event));
        return enqueue_svm_migrate(call, num_svm_pointers, svm_pointers, sizes, flags);
    });
}
