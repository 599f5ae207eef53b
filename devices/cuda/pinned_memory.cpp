// Three independent parts: StagingPool (chunks for copies of pageable memory), PinnedRegions (memory that the application or the
// memory layer registered), PinnedCounter (the word of a queue's timeline).
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
    if (chunk_count_ >= chunks_max)
        return false;
    const CudaContext::Current current(context_);
    void* memory = nullptr;
    if (context_.api.host_allocate(&memory, chunk_bytes * chunks_per_slab, host_memory_portable) != code_success)
        return false;
    slabs_.push_back(static_cast<std::byte*>(memory));
    for (size_t i = 0; i < chunks_per_slab; ++i) {
        StagingChunk chunk{slabs_.back() + i * chunk_bytes, nullptr};
        if (context_.api.event_create(&chunk.used, event_disable_timing) != code_success)
            break;
        free_.push_back(chunk);
        ++chunk_count_;
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

PinnedRegions::~PinnedRegions() {
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    for (const auto& [begin, size] : regions_)
        context_.api.host_unregister(const_cast<std::byte*>(begin));
}

Result<void> PinnedRegions::add(std::span<std::byte> region) {
    const CudaContext::Current current(context_);
    POLDER_CUDA_TRY(context_.api, host_register(region.data(), region.size(), host_memory_portable),
                    "cuMemHostRegister");
    Lock lock(mutex_);
    regions_[region.data()] = region.size();
    return {};
}

void PinnedRegions::remove(std::span<std::byte> region) {
    {
        Lock lock(mutex_);
        regions_.erase(region.data());
    }
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    context_.api.host_unregister(region.data());
}

bool PinnedRegions::contain(const std::byte* begin, uint64_t size) const {
    Lock lock(mutex_);
    auto after = regions_.upper_bound(begin);
    if (after == regions_.begin())
        return false;
    const auto& [first, bytes] = *--after;
    return static_cast<uint64_t>(begin - first) + size <= bytes;
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
