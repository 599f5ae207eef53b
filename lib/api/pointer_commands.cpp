#include "pointer_commands.h"

#include "pattern.h"

#include <runtime/buffer_commands.h>
#include <runtime/svm.h>
#include <runtime/svm_commands.h>

using namespace polder::runtime;
using polder::memory::StorageRect;

namespace polder::api {
namespace {

bool overlap(const std::byte* a, const std::byte* b, size_t size) { return a < b + size && b < a + size; }

// A buffer over the bytes; null for plain host memory.
Result<Ref<MemObject>> buffer_of(const EnqueueCall& call, const PointerRange& range) {
    if (!range.allocation)
        return Ref<MemObject>{};
    Ref<MemObject> view = range.view(call.context());
    // CL_INVALID_VALUE: another thread has freed the allocation.
    if (!view)
        return fail(Status::invalid_value);
    return view;
}

// True when the queue's device has its own memory and must not hold the newest bytes there, because the host uses them without a map.
bool must_stay_on_host(const EnqueueCall& call, const PointerRange& range) {
    return range.allocation && range.allocation->is_always_on_host() &&
           !range.allocation->is_for_kernels_in(call.queue().space());
}

}  // namespace

Result<void> enqueue_pointer_copy(const EnqueueCall& call, cl_command_type type, Blocking blocking, void* to,
                                  const void* from, size_t size) {
    // CL_INVALID_VALUE: dst_ptr or src_ptr is null.
    if (!to || !from)
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: a range extends beyond the end of an allocation.
    POLDER_ASSIGN(target_range, find_range(call.context(), to, size));
    POLDER_ASSIGN(source_range, find_range(call.context(), from, size));
    // CL_MEM_COPY_OVERLAP: the ranges overlap.
    if (overlap(target_range.pointer, source_range.pointer, size))
        return fail(Status::mem_copy_overlap);
    if (size == 0)
        return call.enqueue(type, MarkerCommand{}, blocking);
    POLDER_ASSIGN(target, buffer_of(call, target_range));
    POLDER_ASSIGN(source, buffer_of(call, source_range));
    if (must_stay_on_host(call, target_range) || must_stay_on_host(call, source_range)) {
        HostEndCopyCommand::End to_end{std::move(target), target_range.pointer, must_stay_on_host(call, target_range)};
        HostEndCopyCommand::End from_end{std::move(source), source_range.pointer,
                                         must_stay_on_host(call, source_range)};
        return call.enqueue(type, HostEndCopyCommand(std::move(to_end), std::move(from_end), ByteCount{size}),
                            blocking);
    }
    if (target && source) {
        const StorageRect from_rect = StorageRect::of(source->range());
        const StorageRect to_rect = StorageRect::of(target->range());
        return call.enqueue(type, CopyCommand(std::move(source), from_rect, std::move(target), to_rect), blocking);
    }
    if (target) {
        const StorageRect rect = StorageRect::of(target->range());
        return call.enqueue(type, WriteCommand(std::move(target), rect, source_range.pointer, {}), blocking);
    }
    if (source) {
        const StorageRect rect = StorageRect::of(source->range());
        return call.enqueue(type, ReadCommand(std::move(source), rect, target_range.pointer, {}), blocking);
    }
    return call.enqueue(type, HostCopyCommand(target_range.pointer, source_range.pointer, ByteCount{size}), blocking);
}

Result<void> enqueue_pointer_fill(const EnqueueCall& call, cl_command_type type, void* to, const void* pattern,
                                  size_t pattern_size, size_t size) {
    POLDER_TRY(check_pattern(pattern, pattern_size));
    // CL_INVALID_VALUE: the pointer is null or not aligned to pattern_size, or size is not a multiple of it.
    if (!to || reinterpret_cast<uintptr_t>(to) % pattern_size != 0 || size % pattern_size != 0)
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: the range extends beyond the end of an allocation.
    POLDER_ASSIGN(range, find_range(call.context(), to, size));
    // CL_INVALID_VALUE: the memory is not accessible by the device of the queue.
    if (must_stay_on_host(call, range) || (!range.allocation && !call.queue().space().is_host()))
        return fail(Status::invalid_value);
    if (size == 0)
        return call.enqueue(type, MarkerCommand{});
    const std::span<const std::byte> bytes{static_cast<const std::byte*>(pattern), pattern_size};
    POLDER_ASSIGN(target, buffer_of(call, range));
    if (target) {
        const ByteRange filled = target->range();
        return call.enqueue(type, FillCommand(std::move(target), filled, bytes));
    }
    return call.enqueue(type, HostFillCommand(range.pointer, ByteCount{size}, bytes));
}

}  // namespace polder::api
