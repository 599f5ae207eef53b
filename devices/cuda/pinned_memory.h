// Host memory that the GPU reads and writes directly.
//
// StagingPool: pinned chunks through which pageable memory is copied, since the driver's asynchronous copies from pageable
// memory are neither asynchronous nor fast. Chunks are made when needed, and kept.
// PinnedRegions: memory of the application or the memory layer that was registered with the driver. Each region is registered
// once, because this takes about 0.1 ms for each MiB.
//
// Any thread.
#pragma once

#include <base/mutex.h>

#include <cuda/cuda_context.h>
#include <deque>
#include <map>
#include <polder/driver.h>
#include <vector>

namespace polder::cuda {

// The GPU may still use a chunk that was given back, until `used` is complete.
struct StagingChunk {
    std::byte* memory = nullptr;
    Event used = nullptr;
};

class StagingPool {
public:
    static constexpr uint64_t chunk_bytes = uint64_t{4} << 20;

    explicit StagingPool(CudaContext& context) : context_(context) {}
    StagingPool(const StagingPool&) = delete;
    StagingPool& operator=(const StagingPool&) = delete;
    ~StagingPool();

    // The chunk that was given back first; wait for its event before use. Empty when `chunks_max` are in use or there is
    // no memory to pin: a thread that has one gives it back without waiting for another.
    [[nodiscard]] StagingChunk take();
    void give_back(StagingChunk chunk);

private:
    static constexpr size_t chunks_max = 32;
    static constexpr size_t chunks_per_slab = 4;

    [[nodiscard]] bool grow() POLDER_REQUIRES(mutex_);

    CudaContext& context_;
    Mutex mutex_;
    size_t chunk_count_ POLDER_GUARDED_BY(mutex_) = 0;
    std::vector<std::byte*> slabs_ POLDER_GUARDED_BY(mutex_);
    std::deque<StagingChunk> free_ POLDER_GUARDED_BY(mutex_);
};

class PinnedRegions {
public:
    explicit PinnedRegions(CudaContext& context) : context_(context) {}
    PinnedRegions(const PinnedRegions&) = delete;
    PinnedRegions& operator=(const PinnedRegions&) = delete;
    ~PinnedRegions();

    [[nodiscard]] Result<void> add(std::span<std::byte> region);
    void remove(std::span<std::byte> region);
    [[nodiscard]] bool contain(const std::byte* begin, uint64_t size) const;

private:
    CudaContext& context_;
    mutable Mutex mutex_;
    std::map<const std::byte*, uint64_t> regions_ POLDER_GUARDED_BY(mutex_);  // sizes
};

// The counter of a timeline in pinned memory, which the GPU writes and the host reads.
class PinnedCounter {
public:
    [[nodiscard]] static Result<std::unique_ptr<PinnedCounter>> create(CudaContext& context);
    PinnedCounter(const PinnedCounter&) = delete;
    PinnedCounter& operator=(const PinnedCounter&) = delete;
    ~PinnedCounter();

    std::atomic<uint64_t>& value() { return *value_; }
    [[nodiscard]] DevicePointer address() const { return address_; }

private:
    PinnedCounter(CudaContext& context, std::atomic<uint64_t>* value, DevicePointer address)
        : context_(context), value_(value), address_(address) {}

    CudaContext& context_;
    std::atomic<uint64_t>* const value_;
    const DevicePointer address_;
};

}  // namespace polder::cuda
