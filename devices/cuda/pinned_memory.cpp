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
    // An abandoned stream may still use some of it.
    if (discarded_.empty())
        for (std::byte* const slab : slabs_)
            context_.api.host_free(slab);
}

bool StagingPool::grow() {
    if ((slabs_.size() + 1) * slab_bytes > bytes_max)
        return false;
    const uint64_t chunk_bytes = parameters_.copy_chunk_bytes;
    try {
        slabs_.reserve(slabs_.size() + 1);
        free_.reserve((slabs_.size() + 1) * (slab_bytes / chunk_bytes));
    } catch (const std::bad_alloc&) {
        return false;
    }
    const CudaContext::Current current(context_);
    void* memory = nullptr;
    if (context_.api.host_allocate(&memory, slab_bytes, host_memory_portable) != code_success)
        return false;
    for (uint64_t offset = 0; offset + chunk_bytes <= slab_bytes; offset += chunk_bytes) {
        StagingChunk chunk{static_cast<std::byte*>(memory) + offset};
        if (context_.api.event_create(&chunk.used, event_disable_timing) != code_success)
            break;
        free_.push_back(chunk);
    }
    if (free_.empty())
        context_.api.host_free(memory);
    else
        slabs_.push_back(static_cast<std::byte*>(memory));
    return !free_.empty();
}

StagingPool::Taken StagingPool::take() {
    Lock lock(mutex_);
    if (free_.empty() && !grow())
        return {{}, in_use_};
    const StagingChunk chunk = free_.front();
    free_.erase(free_.begin());
    return {chunk, in_use_++};
}

void StagingPool::give_back(StagingChunk chunk, Stream stream) noexcept {
    Lock lock(mutex_);
    --in_use_;
    if (is_discarded(chunk.stream) || is_discarded(stream))
        return;
    chunk.stream = stream;
    free_.push_back(chunk);
}

void StagingPool::discard(Stream stream) noexcept {
    Lock lock(mutex_);
    try {
        discarded_.push_back(stream);
    } catch (const std::bad_alloc&) {
        return;  // its chunks seem to be in use for ever
    }
    std::erase_if(free_, [stream](const StagingChunk& chunk) { return chunk.stream == stream; });
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
    try {
        return std::unique_ptr<PinnedCounter>(new PinnedCounter(context, value, address));
    } catch (...) {
        context.api.host_free(memory);
        throw;
    }
}

PinnedCounter::~PinnedCounter() {
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    context_.api.host_free(value_);
}

}  // namespace polder::cuda
