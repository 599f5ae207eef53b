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
EXPORT void fake_cuda_fail_always(const char* function, int code) {
    const std::lock_guard lock(state().mutex);
    state().lasting_failures.erase(function);
    if (code != 0)
        state().lasting_failures[function] = code;
}
EXPORT void fake_cuda_fail_call(int64_t index, int code) {
    const std::lock_guard lock(state().mutex);
    state().calls_until_failure = index;
    state().failure_of_call = code;
    state().failed_call = nullptr;
}
EXPORT const char* fake_cuda_failed_call() {
    const std::lock_guard lock(state().mutex);
    return state().failed_call;
}
EXPORT void fake_cuda_lose_device(int device) {
    state().contexts[static_cast<size_t>(device)].lost_by.store(launch_failed);
}
EXPORT void fake_cuda_restore_devices() {
    for (polder::cuda::ContextOfCuda& context : state().contexts)
        context.lost_by.store(0);
}
EXPORT void fake_cuda_last_fault(char* text, uint64_t size) {
    const std::lock_guard lock(state().mutex);
    std::snprintf(text, size, "%s", state().last_fault.c_str());
}
EXPORT void fake_cuda_set_version(int version) { state().driver_version = version; }
EXPORT uint64_t fake_cuda_calls(const char* function) {
    const std::lock_guard lock(state().mutex);
    return state().calls[function];
}

EXPORT uint64_t fake_cuda_calls_here(const char* function) { return calls_here(function); }
EXPORT uint64_t fake_cuda_bytes(const char* function) {
    const std::lock_guard lock(state().mutex);
    return state().bytes[function];
}
EXPORT void fake_cuda_hold_streams(bool held) {
    state().is_held.store(held);
    state().is_held.notify_all();
}

// --- devices and contexts ---

EXPORT Code cuInit(unsigned) try {
    ENTER("cuInit");
    return state().contexts.empty() ? static_cast<Code>(100) : code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDriverGetVersion(int* version) try {
    ENTER("cuDriverGetVersion");
    *version = state().driver_version;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDeviceGetCount(int* count) try {
    ENTER("cuDeviceGetCount");
    *count = static_cast<int>(state().contexts.size());
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDeviceGet(Device* device, int ordinal) try {
    ENTER("cuDeviceGet");
    if (ordinal < 0 || static_cast<size_t>(ordinal) >= state().contexts.size())
        return invalid_device;
    *device = ordinal;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDeviceGetName(char* name, int size, Device device) try {
    ENTER("cuDeviceGetName");
    std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDeviceGetAttribute(int* value, Attribute attribute, Device) try {
    ENTER("cuDeviceGetAttribute");
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
    case attribute_compute_capability_major: *value = static_cast<int>(state().processor / 10); break;
    case attribute_compute_capability_minor: *value = static_cast<int>(state().processor % 10); break;
    case attribute_host_pointer_of_registered_memory:
        *value = std::getenv("FAKE_CUDA_OTHER_POINTERS") == nullptr ? 1 : 0;
        break;
    case attribute_unified_addressing:
    case attribute_virtual_memory_management:
    case attribute_64_bit_stream_memory_operations: *value = 1; break;
    default: return invalid_value;
    }
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDeviceTotalMem_v2(size_t* bytes, Device device) try {
    ENTER("cuDeviceTotalMem_v2");
    *bytes = state().contexts[static_cast<size_t>(device)].memory_bytes;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDeviceCanAccessPeer(int* can, Device device, Device peer) try {
    ENTER("cuDeviceCanAccessPeer");
    *can = device != peer;
    return code_success;
}
CATCH_OUT_OF_MEMORY
// GPUs 0 and 1 have an NVLink, and so have 2 and 3; all others are farther from each other.
EXPORT Code cuDeviceGetP2PAttribute(int* value, PeerAttribute attribute, Device device, Device peer) try {
    ENTER("cuDeviceGetP2PAttribute");
    if (device == peer)
        return invalid_value;
    const bool has_nvlink = device / 2 == peer / 2;
    switch (static_cast<int>(attribute)) {
    case peer_performance_rank: *value = has_nvlink ? 0 : 1; return code_success;
    case peer_native_atomics: *value = has_nvlink; return code_success;
    default: return invalid_value;
    }
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuDevicePrimaryCtxRetain(Context* context, Device device) try {
    ENTER("cuDevicePrimaryCtxRetain");
    const std::lock_guard lock(state().mutex);
    *context = &state().contexts[static_cast<size_t>(device)];
    ++(*context)->users;
    return code_success;
}
CATCH_OUT_OF_MEMORY
// The last release ends all registrations of the context.
EXPORT Code cuDevicePrimaryCtxRelease_v2(Device device) try {
    ENTER("cuDevicePrimaryCtxRelease_v2");
    const std::lock_guard lock(state().mutex);
    if (--state().contexts[static_cast<size_t>(device)].users == 0)
        std::erase_if(state().registered, [device](const auto& one) { return one.second.device == device; });
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuCtxSetCurrent(Context context) try {
    if (context && fails_for_ever("cuCtxSetCurrent"))
        kill_streams(*context);
    ENTER("cuCtxSetCurrent");
    current = context;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuCtxGetCurrent(Context* context) try {
    ENTER("cuCtxGetCurrent");
    *context = current;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemGetInfo_v2(size_t* free, size_t* total) try {
    ENTER("cuMemGetInfo_v2");
    NEEDS_CONTEXT();
    const std::lock_guard lock(current->mutex);
    *total = current->memory_bytes;
    *free = current->memory_bytes - current->used_bytes;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuGetErrorName(Code code, const char** name) try {
    ENTER("cuGetErrorName");
    switch (static_cast<int>(code)) {
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case 218: *name = "CUDA_ERROR_INVALID_PTX"; break;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case 715: *name = "CUDA_ERROR_ILLEGAL_INSTRUCTION"; break;
    case 716: *name = "CUDA_ERROR_MISALIGNED_ADDRESS"; break;
    case 718: *name = "CUDA_ERROR_INVALID_PC"; break;
    case 719: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: return invalid_value;
    }
    return code_success;
}
CATCH_OUT_OF_MEMORY

// --- streams and events ---

EXPORT Code cuStreamCreateWithPriority(Stream* stream, unsigned, int) try {
    ENTER("cuStreamCreateWithPriority");
    NEEDS_CONTEXT();
    *stream = new StreamOfCuda(*current);
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuStreamDestroy_v2(Stream stream) try { RELEASE("cuStreamDestroy_v2", delete stream); }
CATCH_OUT_OF_MEMORY
EXPORT Code cuStreamQuery(Stream stream) try {
    if (fails_for_ever("cuStreamQuery"))
        kill_streams(stream->context);
    ENTER("cuStreamQuery");
    NEEDS_STREAM(stream);
    return stream->is_idle() ? code_success : code_not_ready;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuStreamWaitEvent(Stream stream, Event event, unsigned) try {
    ENTER("cuStreamWaitEvent");
    NEEDS_STREAM(stream);
    if (const std::shared_ptr<FakeRecord> record = event->record())
        stream->push_wait([record] { record->wait(); });
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuStreamWaitValue64_v2(Stream, DevicePointer, uint64_t, unsigned) { return static_cast<Code>(801); }
EXPORT Code cuStreamWriteValue64_v2(Stream stream, DevicePointer address, uint64_t value, unsigned) try {
    ENTER("cuStreamWriteValue64_v2");
    NEEDS_STREAM(stream);
    if (!state().is_pinned(pointer(address), sizeof value))
        return invalid_value;
    stream->push([address, value] {
        reinterpret_cast<std::atomic<uint64_t>*>(pointer(address))->store(value, std::memory_order_release);
    });
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuEventCreate(Event* event, unsigned) try {
    ENTER("cuEventCreate");
    NEEDS_CONTEXT();
    *event = new EventOfCuda;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuEventDestroy_v2(Event event) try { RELEASE("cuEventDestroy_v2", delete event); }
CATCH_OUT_OF_MEMORY
EXPORT Code cuEventRecord(Event event, Stream stream) try {
    ENTER("cuEventRecord");
    NEEDS_STREAM(stream);
    auto record = std::make_shared<FakeRecord>();
    // When this throws for lack of memory, the event is unchanged.
    stream->push([record] { record->reach(); });
    const std::lock_guard lock(event->mutex);
    event->newest = std::move(record);
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuEventQuery(Event event) try {
    ENTER("cuEventQuery");
    NEEDS_CONTEXT();
    const std::shared_ptr<FakeRecord> record = event->record();
    if (!record)
        return code_success;
    const std::lock_guard lock(record->mutex);
    return record->is_reached ? code_success : code_not_ready;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuEventSynchronize(Event event) try {
    ENTER("cuEventSynchronize");
    if (const std::shared_ptr<FakeRecord> record = event->record())
        record->wait();
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuEventElapsedTime(float* ms, Event start, Event end) try {
    ENTER("cuEventElapsedTime");
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
CATCH_OUT_OF_MEMORY

// --- memory ---

EXPORT Code cuMemGetAllocationGranularity(size_t* size, const AllocationProperties*, int) try {
    ENTER("cuMemGetAllocationGranularity");
    *size = granularity;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemAddressReserve(DevicePointer* address, size_t size, size_t alignment, DevicePointer,
                                unsigned long long) try {
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
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemAddressFree(DevicePointer address, size_t size) try {
    ENTER("cuMemAddressFree");
    {
        const std::lock_guard lock(state().mutex);
        const auto mapped = state().mappings.lower_bound(address);
        if (mapped != state().mappings.end() && mapped->first < address + size)
            return invalid_value;
    }
    munmap(pointer(address), size);
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemCreate(MemoryHandle* handle, size_t size, const AllocationProperties* properties,
                        unsigned long long) try {
    ENTER("cuMemCreate");
    NEEDS_CONTEXT();
    if (size % granularity != 0)
        return invalid_value;
    const int device = properties->location.id;
    ContextOfCuda& context = state().contexts[static_cast<size_t>(device)];
    const std::lock_guard lock(state().mutex);
    const std::lock_guard of_context(context.mutex);
    if (size > context.memory_bytes - context.used_bytes)
        return code_out_of_memory;
    state().allocations[state().next_handle] = {device, size};
    context.used_bytes += size;
    *handle = state().next_handle++;
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemRelease(MemoryHandle handle) try {
    ENTER("cuMemRelease");
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
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemMap(DevicePointer address, size_t size, size_t, MemoryHandle handle, unsigned long long) try {
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
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemUnmap(DevicePointer address, size_t size) try {
    ENTER("cuMemUnmap");
    const std::lock_guard lock(state().mutex);
    // Exactly what one cuMemMap has mapped.
    const auto found = state().mappings.find(address);
    if (found == state().mappings.end() || found->second.size != size)
        return invalid_value;
    state().mappings.erase(found);
    mmap(pointer(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemSetAccess(DevicePointer address, size_t size, const AccessDescription* descriptions,
                           size_t count) try {
    ENTER("cuMemSetAccess");
    const std::lock_guard lock(state().mutex);
    if (count == 0 || descriptions[0].flags != 3)
        return invalid_value;
    // Whole mappings, one behind the other.
    for (DevicePointer at = address; at != address + size;) {
        const auto found = state().mappings.find(at);
        if (found == state().mappings.end() || found->second.size > address + size - at)
            return invalid_value;
        for (size_t i = 0; i < count; ++i)
            found->second.devices |= uint64_t{1} << descriptions[i].location.id;
        at += found->second.size;
    }
    return mprotect(pointer(address), size, PROT_READ | PROT_WRITE) == 0 ? code_success : code_out_of_memory;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemHostAlloc(void** memory, size_t size, unsigned) try {
    ENTER("cuMemHostAlloc");
    NEEDS_CONTEXT();
    count_bytes("cuMemHostAlloc", size);
    struct Free {
        void operator()(void* unused) const { ::operator delete(unused, std::align_val_t{4096}); }
    };
    std::unique_ptr<void, Free> made(::operator new(size, std::align_val_t{4096}));
    // Nothing may depend on zeros. The beginning is enough: unused pages stay without memory.
    std::memset(made.get(), 0xab, std::min(size, size_t{64} << 10));
    const std::lock_guard lock(state().mutex);
    state().pinned[static_cast<const std::byte*>(made.get())] = size;
    *memory = made.release();
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemFreeHost(void* memory) try {
    ENTER("cuMemFreeHost");
    const std::lock_guard lock(state().mutex);
    if (state().pinned.erase(static_cast<const std::byte*>(memory)) == 0)
        return invalid_value;
    ::operator delete(memory, std::align_val_t{4096});
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemHostRegister_v2(void* memory, size_t size, unsigned flags) try {
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
CATCH_OUT_OF_MEMORY
// Memory is unregistered in the context that has registered it.
EXPORT Code cuMemHostUnregister(void* memory) try {
    ENTER("cuMemHostUnregister");
    NEEDS_CONTEXT();
    const std::lock_guard lock(state().mutex);
    const auto found = state().registered.find(static_cast<const std::byte*>(memory));
    if (found == state().registered.end() || found->second.device != current->device)
        return host_memory_not_registered;
    state().registered.erase(found);
    return code_success;
}
CATCH_OUT_OF_MEMORY
EXPORT Code cuMemHostGetDevicePointer_v2(DevicePointer* address, void* memory, unsigned) try {
    ENTER("cuMemHostGetDevicePointer_v2");
    *address = reinterpret_cast<uintptr_t>(memory);
    return code_success;
}
CATCH_OUT_OF_MEMORY
