// Shared virtual memory: coarse-grained, fine-grained and system sharing on devices that compute in host memory.
#include "enqueue.h"
#include "pattern.h"

#include <runtime/buffer_commands.h>
#include <runtime/svm.h>

#include <bit>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

// The largest alignment any OpenCL type needs: that of long16 and double16.
constexpr size_t max_type_alignment = 128;

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
    // CL_INVALID_BUFFER_SIZE: size is 0, or greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE of any device in the context.
    if (size == 0 || size > context->max_svm_allocation_bytes())
        return fail(Status::invalid_buffer_size);
    // Null (CL_INVALID_VALUE): alignment is not a power of two, or larger than the largest type.
    if (alignment && (!std::has_single_bit(alignment) || alignment > max_type_alignment))
        return fail(Status::invalid_value);
    return context->svm().allocate(ByteCount{size}, Alignment{max_type_alignment});
}

Result<EnqueueCall> check_svm_call(cl_command_queue queue, cl_uint count, const cl_event* list, cl_event* event) {
    POLDER_ASSIGN(call, EnqueueCall::check(queue, count, list, event));
    // CL_INVALID_OPERATION: the device has no SVM.
    if (!call.queue().device().has_svm())
        return fail(Status::invalid_operation);
    return call;
}

using FreeCallback = void(CL_CALLBACK*)(cl_command_queue queue, cl_uint count, void** pointers, void* user);

// Frees the pointers, or lets the application do it, when its turn in the queue has come.
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
            self->queue->context().svm().free(pointer);
    }
    static void discard(void* data) { delete static_cast<SvmFree*>(data); }
};

Result<void> enqueue_svm_free(const EnqueueCall& call, cl_uint count, void** pointers, FreeCallback callback,
                              void* user) {
    // CL_INVALID_VALUE: num_svm_pointers and svm_pointers do not agree.
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

bool overlap(const std::byte* a, const std::byte* b, size_t size) { return a < b + size && b < a + size; }

Result<void> enqueue_svm_copy(const EnqueueCall& call, Blocking blocking, void* to, const void* from, size_t size) {
    // CL_INVALID_VALUE: dst_ptr or src_ptr is null.
    if (!to || !from)
        return fail(Status::invalid_value);
    auto* const first_to = static_cast<std::byte*>(to);
    const auto* const first_from = static_cast<const std::byte*>(from);
    // CL_MEM_COPY_OVERLAP: the ranges overlap.
    if (overlap(first_to, first_from, size))
        return fail(Status::mem_copy_overlap);
    return call.enqueue(CL_COMMAND_SVM_MEMCPY, HostCopyCommand(first_to, first_from, ByteCount{size}), blocking);
}

Result<void> enqueue_svm_fill(const EnqueueCall& call, void* to, const void* pattern, size_t pattern_size,
                              size_t size) {
    POLDER_TRY(check_pattern(pattern, pattern_size));
    // CL_INVALID_VALUE: svm_ptr is null or not aligned to pattern_size, or size is not a multiple of it.
    if (!to || reinterpret_cast<uintptr_t>(to) % pattern_size != 0 || size % pattern_size != 0)
        return fail(Status::invalid_value);
    return call.enqueue(CL_COMMAND_SVM_MEMFILL,
                        HostFillCommand(static_cast<std::byte*>(to), ByteCount{size},
                                        {static_cast<const std::byte*>(pattern), pattern_size}));
}

Result<void> enqueue_svm_map(const EnqueueCall& call, Blocking blocking, cl_map_flags flags, const void* pointer,
                             size_t size) {
    constexpr cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    const bool contradictory = (flags & CL_MAP_WRITE_INVALIDATE_REGION) && (flags & (CL_MAP_READ | CL_MAP_WRITE));
    // CL_INVALID_VALUE: svm_ptr is null, size is 0, or map_flags are unknown or exclude each other.
    if (!pointer || size == 0 || (flags & ~known) || contradictory)
        return fail(Status::invalid_value);
    // The memory is the host's: mapping only has to be ordered.
    return call.enqueue(CL_COMMAND_SVM_MAP, MarkerCommand{}, blocking);
}

Result<void> enqueue_svm_migrate(const EnqueueCall& call, cl_uint count, const void** pointers, const size_t* sizes,
                                 cl_mem_migration_flags flags) {
    // CL_INVALID_VALUE: num_svm_pointers is 0, svm_pointers is null, or flags are unknown.
    if (count == 0 || !pointers || (flags & ~(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED)))
        return fail(Status::invalid_value);
    for (cl_uint i = 0; i < count; ++i) {
        const auto within = call.context().svm().find(pointers[i]);
        // CL_INVALID_VALUE: a range is not within one SVM allocation; a size of 0 is all of it.
        if (!within || (sizes && sizes[i] > within->size()))
            return fail(Status::invalid_value);
    }
    return call.enqueue(CL_COMMAND_SVM_MIGRATE_MEM, MarkerCommand{});
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
            checked->svm().free(svm_pointer);
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
        return enqueue_svm_copy(call, blocking_if(blocking), dst_ptr, src_ptr, size);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMemFill(cl_command_queue queue, void* svm_ptr, const void* pattern,
                                                    size_t pattern_size, size_t size, cl_uint num_events,
                                                    const cl_event* list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, check_svm_call(queue, num_events, list, event));
        return enqueue_svm_fill(call, svm_ptr, pattern, pattern_size, size);
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
        // CL_INVALID_VALUE: svm_ptr is null.
        if (!svm_ptr)
            return fail(Status::invalid_value);
        return call.enqueue(CL_COMMAND_SVM_UNMAP, MarkerCommand{});
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
