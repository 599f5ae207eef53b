// Two independent parts: StagingPool (chunks for copies of pageable memory) and PinnedCounter (the word of a queue's timeline).
#include <cuda/pinned_memory.h>
#include <new>

namespace polder::cuda {

StagingPool::~StagingPool() {
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    for (const StagingChunk& chunk : free_) {
        context_.api.event_synchronize(chunk.used);
        context_.api.event_destroy(chunk.used);
    }
    for (std::byte* const slab : slabs_)
        context_.api.host_free(slab);
}

bool StagingPool::grow() {
    if ((slabs_.size() + 1) * slab_bytes > bytes_max)
        return false;
    const CudaContext::Current current(context_);
    void* memory = nullptr;
    if (context_.api.host_allocate(&memory, slab_bytes, host_memory_portable) != code_success)
        return false;
    slabs_.push_back(static_cast<std::byte*>(memory));
    const uint64_t chunk_bytes = parameters_.copy_chunk_bytes;
    for (uint64_t offset = 0; offset + chunk_bytes <= slab_bytes; offset += chunk_bytes) {
        StagingChunk chunk{slabs_.back() + offset, nullptr};
        if (context_.api.event_create(&chunk.used, event_disable_timing) != code_success)
            break;
        free_.push_back(chunk);
    }
    return !free_.empty();
}

StagingChunk StagingPool::take() {
    Lock lock(mutex_);
    if (free_.empty() && !grow())
        return {};
    const StagingChunk chunk = free_.front();
    free_.pop_front();
    return chunk;
}

void StagingPool::give_back(StagingChunk chunk) {
    Lock lock(mutex_);
    free_.push_back(chunk);
}

Result<std::unique_ptr<PinnedCounter>> PinnedCounter::create(CudaContext& context) {
    const CudaContext::Current current(context);
    void* memory = nullptr;
    POLDER_CUDA_TRY(context.api, host_allocate(&memory, 64, host_memory_portable), "cuMemHostAlloc");
    DevicePointer address = 0;
    if (const Code code = context.api.host_device_pointer(&address, memory, 0)) {
        context.api.host_free(memory);
        return fail(context.api.error(code, "cuMemHostGetDevicePointer"));
    }
    auto* const value = new (memory) std::atomic<uint64_t>{0};
    return std::unique_ptr<PinnedCounter>(new PinnedCounter(context, value, address));
}

PinnedCounter::~PinnedCounter() {
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    context_.api.host_free(value_);
}

}  // namespace polder::cuda
