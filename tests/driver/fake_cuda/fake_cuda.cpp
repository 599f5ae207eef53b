// The functions of the fake libcuda. Each has the signature that the table of devices/cuda/cuda_api.h gives it.
#include "fake_entry.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <vector>

using namespace polder::cuda;
using namespace polder::cuda::fake;

namespace {

constexpr uint64_t granularity = uint64_t{2} << 20;

std::byte* pointer(DevicePointer address) { return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address)); }

} // namespace

// --- steering ---

EXPORT void fake_cuda_register_kernel(const char* entry, const polder::fake_cuda::Kernel* kernel) {
    const std::lock_guard lock(state().mutex);
    state().kernels[entry] = *kernel;
}
EXPORT void fake_cuda_fail_next(const char* function, int code) {
    const std::lock_guard lock(state().mutex);
    state().failures[function] = code;
}
EXPORT void fake_cuda_lose_device(int device) { state().contexts[static_cast<size_t>(device)].is_lost.store(true); }
EXPORT void fake_cuda_set_version(int version) { state().driver_version = version; }
EXPORT uint64_t fake_cuda_calls(const char* function) {
    const std::lock_guard lock(state().mutex);
    return state().calls[function];
}

EXPORT uint64_t fake_cuda_bytes(const char* function) {
    const std::lock_guard lock(state().mutex);
    return state().bytes[function];
}
EXPORT void fake_cuda_hold_streams(bool held) {
    state().is_held.store(held);
    state().is_held.notify_all();
}

// --- devices and contexts ---

EXPORT Code cuInit(unsigned) {
    ENTER("cuInit");
    return state().contexts.empty() ? static_cast<Code>(100) : code_success;
}
EXPORT Code cuDriverGetVersion(int* version) {
    ENTER("cuDriverGetVersion");
    *version = state().driver_version;
    return code_success;
}
EXPORT Code cuDeviceGetCount(int* count) {
    *count = static_cast<int>(state().contexts.size());
    return code_success;
}
EXPORT Code cuDeviceGet(Device* device, int ordinal) {
    if (ordinal < 0 || static_cast<size_t>(ordinal) >= state().contexts.size())
        return invalid_device;
    *device = ordinal;
    return code_success;
}
EXPORT Code cuDeviceGetName(char* name, int size, Device device) {
    std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
    return code_success;
}
EXPORT Code cuDeviceGetAttribute(int* value, Attribute attribute, Device) {
    switch (static_cast<int>(attribute)) {
    case attribute_max_threads_per_block:
    case attribute_max_block_dim_x:
    case attribute_max_block_dim_x + 1: *value = 1024; break;
    case attribute_max_block_dim_x + 2: *value = 64; break;
    case attribute_max_grid_dim_x: *value = 0x7fffffff; break;
    // Small, so that ranges take several grids.
    case attribute_max_grid_dim_x + 1: *value = 300; break;
    case attribute_max_grid_dim_x + 2: *value = 3; break;
    case attribute_max_shared_memory_per_block: *value = 48 << 10; break;
    case attribute_max_shared_memory_per_block_optin: *value = max_shared_bytes; break;
    case attribute_warp_size: *value = 32; break;
    case attribute_clock_rate_khz: *value = 1'000'000; break;
    case attribute_multiprocessor_count: *value = 4; break;
    case attribute_l2_cache_bytes: *value = 1 << 20; break;
    case attribute_compute_capability_major: *value = 9; break;
    case attribute_compute_capability_minor: *value = 0; break;
    case attribute_virtual_memory_management:
    case attribute_64_bit_stream_memory_operations: *value = 1; break;
    default: return invalid_value;
    }
    return code_success;
}
EXPORT Code cuDeviceTotalMem_v2(size_t* bytes, Device device) {
    *bytes = state().contexts[static_cast<size_t>(device)].memory_bytes;
    return code_success;
}
EXPORT Code cuDeviceCanAccessPeer(int* can, Device device, Device peer) {
    *can = device != peer;
    return code_success;
}
// GPUs 0 and 1 have an NVLink, and so have 2 and 3; all others are farther from each other.
EXPORT Code cuDeviceGetP2PAttribute(int* value, PeerAttribute attribute, Device device, Device peer) {
    if (device == peer)
        return invalid_value;
    const bool has_nvlink = device / 2 == peer / 2;
    switch (static_cast<int>(attribute)) {
    case peer_performance_rank: *value = has_nvlink ? 0 : 1; return code_success;
    case peer_native_atomics: *value = has_nvlink; return code_success;
    default: return invalid_value;
    }
}
EXPORT Code cuDevicePrimaryCtxRetain(Context* context, Device device) {
    ENTER("cuDevicePrimaryCtxRetain");
    const std::lock_guard lock(state().mutex);
    *context = &state().contexts[static_cast<size_t>(device)];
    ++(*context)->users;
    return code_success;
}
// The last user takes with it what the context has registered.
EXPORT Code cuDevicePrimaryCtxRelease_v2(Device device) {
    const std::lock_guard lock(state().mutex);
    if (--state().contexts[static_cast<size_t>(device)].users == 0)
        std::erase_if(state().registered, [device](const auto& one) { return one.second.device == device; });
    return code_success;
}
EXPORT Code cuCtxSetCurrent(Context context) {
    current = context;
    return code_success;
}
EXPORT Code cuCtxGetCurrent(Context* context) {
    *context = current;
    return code_success;
}
EXPORT Code cuMemGetInfo_v2(size_t* free, size_t* total) {
    NEEDS_CONTEXT();
    const std::lock_guard lock(current->mutex);
    *total = current->memory_bytes;
    *free = current->memory_bytes - current->used_bytes;
    return code_success;
}
EXPORT Code cuGetErrorName(Code code, const char** name) {
    switch (static_cast<int>(code)) {
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case 218: *name = "CUDA_ERROR_INVALID_PTX"; break;
    case 719: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: return invalid_value;
    }
    return code_success;
}

// --- streams and events ---

EXPORT Code cuStreamCreateWithPriority(Stream* stream, unsigned, int) {
    ENTER("cuStreamCreateWithPriority");
    NEEDS_CONTEXT();
    *stream = new StreamOfCuda(*current);
    return code_success;
}
EXPORT Code cuStreamDestroy_v2(Stream stream) {
    delete stream;
    return code_success;
}
EXPORT Code cuStreamQuery(Stream stream) {
    ENTER("cuStreamQuery");
    NEEDS_CONTEXT();
    return stream->is_idle() ? code_success : code_not_ready;
}
EXPORT Code cuStreamWaitEvent(Stream stream, Event event, unsigned) {
    ENTER("cuStreamWaitEvent");
    NEEDS_CONTEXT();
    if (const std::shared_ptr<FakeRecord> record = event->record())
        stream->push([record] { record->wait(); });
    return code_success;
}
EXPORT Code cuStreamWaitValue64_v2(Stream, DevicePointer, uint64_t, unsigned) { return static_cast<Code>(801); }
EXPORT Code cuStreamWriteValue64_v2(Stream stream, DevicePointer address, uint64_t value, unsigned) {
    ENTER("cuStreamWriteValue64_v2");
    NEEDS_CONTEXT();
    if (!state().is_pinned(pointer(address), sizeof value))
        return invalid_value;
    stream->push([address, value] {
        reinterpret_cast<std::atomic<uint64_t>*>(pointer(address))->store(value, std::memory_order_release);
    });
    return code_success;
}
EXPORT Code cuEventCreate(Event* event, unsigned) {
    ENTER("cuEventCreate");
    NEEDS_CONTEXT();
    *event = new EventOfCuda;
    return code_success;
}
EXPORT Code cuEventDestroy_v2(Event event) {
    delete event;
    return code_success;
}
EXPORT Code cuEventRecord(Event event, Stream stream) {
    ENTER("cuEventRecord");
    NEEDS_CONTEXT();
    auto record = std::make_shared<FakeRecord>();
    {
        const std::lock_guard lock(event->mutex);
        event->newest = record;
    }
    stream->push([record] { record->reach(); });
    return code_success;
}
EXPORT Code cuEventQuery(Event event) {
    ENTER("cuEventQuery");
    NEEDS_CONTEXT();
    const std::shared_ptr<FakeRecord> record = event->record();
    if (!record)
        return code_success;
    const std::lock_guard lock(record->mutex);
    return record->is_reached ? code_success : code_not_ready;
}
EXPORT Code cuEventSynchronize(Event event) {
    if (const std::shared_ptr<FakeRecord> record = event->record())
        record->wait();
    return code_success;
}
EXPORT Code cuEventElapsedTime(float* ms, Event start, Event end) {
    NEEDS_CONTEXT();
    const auto time_of = [](Event event) {
        const std::shared_ptr<FakeRecord> record = event->record();
        if (!record)
            return uint64_t{0};
        const std::lock_guard lock(record->mutex);
        return record->is_reached ? record->reached_ns : 0;
    };
    const uint64_t first = time_of(start);
    const uint64_t last = time_of(end);
    if (first == 0 || last == 0)
        return code_not_ready;
    *ms = static_cast<float>(static_cast<double>(last) - static_cast<double>(first)) * 1e-6f;
    return code_success;
}

// --- memory ---

EXPORT Code cuMemGetAllocationGranularity(size_t* size, const AllocationProperties*, int) {
    *size = granularity;
    return code_success;
}
EXPORT Code cuMemAddressReserve(DevicePointer* address, size_t size, size_t alignment, DevicePointer,
                                unsigned long long) {
    ENTER("cuMemAddressReserve");
    NEEDS_CONTEXT();
    void* const memory = mmap(nullptr, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return code_out_of_memory;
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t aligned = (begin + alignment - 1) / alignment * alignment;
    if (aligned != begin)
        munmap(memory, aligned - begin);
    munmap(reinterpret_cast<void*>(aligned + size), begin + alignment - aligned);
    *address = aligned;
    return code_success;
}
EXPORT Code cuMemAddressFree(DevicePointer address, size_t size) {
    {
        const std::lock_guard lock(state().mutex);
        const auto mapped = state().mappings.lower_bound(address);
        if (mapped != state().mappings.end() && mapped->first < address + size)
            return invalid_value;
    }
    munmap(pointer(address), size);
    return code_success;
}
EXPORT Code cuMemCreate(MemoryHandle* handle, size_t size, const AllocationProperties* properties, unsigned long long) {
    ENTER("cuMemCreate");
    NEEDS_CONTEXT();
    if (size % granularity != 0)
        return invalid_value;
    const int device = properties->location.id;
    ContextOfCuda& context = state().contexts[static_cast<size_t>(device)];
    {
        const std::lock_guard lock(context.mutex);
        if (size > context.memory_bytes - context.used_bytes)
            return code_out_of_memory;
        context.used_bytes += size;
    }
    const std::lock_guard lock(state().mutex);
    *handle = state().next_handle++;
    state().allocations[*handle] = {device, size};
    return code_success;
}
EXPORT Code cuMemRelease(MemoryHandle handle) {
    const std::lock_guard lock(state().mutex);
    const auto found = state().allocations.find(handle);
    if (found == state().allocations.end())
        return invalid_value;
    ContextOfCuda& context = state().contexts[static_cast<size_t>(found->second.device)];
    {
        const std::lock_guard of_context(context.mutex);
        context.used_bytes -= found->second.size;
    }
    state().allocations.erase(found);
    return code_success;
}
EXPORT Code cuMemMap(DevicePointer address, size_t size, size_t, MemoryHandle handle, unsigned long long) {
    ENTER("cuMemMap");
    const std::lock_guard lock(state().mutex);
    const auto next = state().mappings.lower_bound(address);
    const bool overlaps =
        (next != state().mappings.end() && next->first < address + size) ||
        (next != state().mappings.begin() && std::prev(next)->first + std::prev(next)->second.size > address);
    if (overlaps || state().allocations.at(handle).size < size)
        return invalid_value;
    state().mappings[address] = {size, handle};
    return code_success;
}
EXPORT Code cuMemUnmap(DevicePointer address, size_t size) {
    const std::lock_guard lock(state().mutex);
    // Exactly what one cuMemMap has mapped.
    const auto found = state().mappings.find(address);
    if (found == state().mappings.end() || found->second.size != size)
        return invalid_value;
    state().mappings.erase(found);
    mmap(pointer(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return code_success;
}
EXPORT Code cuMemSetAccess(DevicePointer address, size_t size, const AccessDescription* descriptions, size_t count) {
    ENTER("cuMemSetAccess");
    const std::lock_guard lock(state().mutex);
    if (count == 0 || descriptions[0].flags != 3)
        return invalid_value;
    // Whole mappings, one behind the other.
    for (DevicePointer at = address; at != address + size;) {
        const auto found = state().mappings.find(at);
        if (found == state().mappings.end() || found->second.size > address + size - at)
            return invalid_value;
        at += found->second.size;
    }
    return mprotect(pointer(address), size, PROT_READ | PROT_WRITE) == 0 ? code_success : code_out_of_memory;
}
EXPORT Code cuMemHostAlloc(void** memory, size_t size, unsigned) {
    ENTER("cuMemHostAlloc");
    NEEDS_CONTEXT();
    count_bytes("cuMemHostAlloc", size);
    *memory = ::operator new(size, std::align_val_t{4096});
    std::memset(*memory, 0xab, size);
    const std::lock_guard lock(state().mutex);
    state().pinned[static_cast<const std::byte*>(*memory)] = size;
    return code_success;
}
EXPORT Code cuMemFreeHost(void* memory) {
    const std::lock_guard lock(state().mutex);
    if (state().pinned.erase(static_cast<const std::byte*>(memory)) == 0)
        return invalid_value;
    ::operator delete(memory, std::align_val_t{4096});
    return code_success;
}
EXPORT Code cuMemHostRegister_v2(void* memory, size_t size, unsigned flags) {
    ENTER("cuMemHostRegister_v2");
    NEEDS_CONTEXT();
    if (size == 0 || (flags & host_memory_portable) == 0)
        return invalid_value;
    const auto* const begin = static_cast<const std::byte*>(memory);
    const std::lock_guard lock(state().mutex);
    // Once in a process, whatever the context.
    if (state().touches_pinned(begin, size))
        return code_host_memory_already_registered;
    state().registered[begin] = {size, current->device};
    return code_success;
}
// In the context that has registered it.
EXPORT Code cuMemHostUnregister(void* memory) {
    ENTER("cuMemHostUnregister");
    NEEDS_CONTEXT();
    const std::lock_guard lock(state().mutex);
    const auto found = state().registered.find(static_cast<const std::byte*>(memory));
    if (found == state().registered.end() || found->second.device != current->device)
        return host_memory_not_registered;
    state().registered.erase(found);
    return code_success;
}
EXPORT Code cuMemHostGetDevicePointer_v2(DevicePointer* address, void* memory, unsigned) {
    *address = reinterpret_cast<uintptr_t>(memory);
    return code_success;
}

// --- copies and fills ---

EXPORT Code cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t size, Stream stream) {
    ENTER("cuMemcpyHtoDAsync_v2");
    NEEDS_CONTEXT();
    if (!state().is_pinned(from, size))
        return invalid_value;
    count_bytes("cuMemcpyHtoDAsync_v2", size);
    stream->push([to, from, size] { std::memcpy(pointer(to), from, size); });
    return code_success;
}
EXPORT Code cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t size, Stream stream) {
    ENTER("cuMemcpyDtoHAsync_v2");
    NEEDS_CONTEXT();
    if (!state().is_pinned(to, size))
        return invalid_value;
    count_bytes("cuMemcpyDtoHAsync_v2", size);
    stream->push([to, from, size] { std::memcpy(to, pointer(from), size); });
    return code_success;
}
EXPORT Code cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t size, Stream stream) {
    ENTER("cuMemcpyDtoDAsync_v2");
    NEEDS_CONTEXT();
    count_bytes("cuMemcpyDtoDAsync_v2", size);
    stream->push([to, from, size] { std::memcpy(pointer(to), pointer(from), size); });
    return code_success;
}
EXPORT Code cuMemcpyPeerAsync(DevicePointer to, Context, DevicePointer from, Context, size_t size, Stream stream) {
    NEEDS_CONTEXT();
    count_bytes("cuMemcpyPeerAsync", size);
    stream->push([to, from, size] { std::memcpy(pointer(to), pointer(from), size); });
    return code_success;
}
EXPORT Code cuMemcpy3DAsync_v2(const Copy3D* copy, Stream stream) {
    ENTER("cuMemcpy3DAsync_v2");
    NEEDS_CONTEXT();
    for (const CopyEnd3D* const end : {&copy->from, &copy->to}) {
        const uint64_t bytes = (copy->height - 1) * end->pitch + copy->width_bytes;
        if (end->pitch < copy->width_bytes || copy->depth != 1 ||
            (end->type == memory_of_host && !state().is_pinned(end->host, bytes)))
            return invalid_value;
    }
    count_bytes("cuMemcpy3DAsync_v2", copy->width_bytes * copy->height);
    stream->push([rows = *copy] {
        const auto base = [](const CopyEnd3D& end) {
            return end.type == memory_of_host ? static_cast<std::byte*>(const_cast<void*>(end.host))
                                              : pointer(end.device);
        };
        for (size_t y = 0; y < rows.height; ++y)
            std::memcpy(base(rows.to) + y * rows.to.pitch, base(rows.from) + y * rows.from.pitch, rows.width_bytes);
    });
    return code_success;
}

namespace {
template <class Word>
Code fill(DevicePointer to, Word word, size_t count, Stream stream) {
    NEEDS_CONTEXT();
    if (to % sizeof word != 0)
        return invalid_value;
    stream->push([to, word, count] { std::fill_n(reinterpret_cast<Word*>(pointer(to)), count, word); });
    return code_success;
}
} // namespace

EXPORT Code cuMemsetD8Async(DevicePointer to, unsigned char byte, size_t count, Stream stream) {
    return fill(to, byte, count, stream);
}
EXPORT Code cuMemsetD16Async(DevicePointer to, unsigned short word, size_t count, Stream stream) {
    return fill(to, word, count, stream);
}
EXPORT Code cuMemsetD32Async(DevicePointer to, unsigned word, size_t count, Stream stream) {
    return fill(to, word, count, stream);
}
