// Host memory of the driver that the GPU reads and writes directly. (For memory of others, see registered_regions.h.)
//
// StagingPool: pinned chunks through which pageable memory is copied, since the driver's asynchronous copies from pageable
// memory are neither asynchronous nor fast. Chunks are made when needed, and kept.
//
// Any thread.
#pragma once

#include <base/mutex.h>

#include <algorithm>
#include <cuda/cuda_context.h>
#include <cuda/parameters.h>
#include <polder/driver.h>
#include <vector>

namespace polder::cuda {

// The GPU may still use a chunk that was given back, until `used` is complete.
struct StagingChunk {
    std::byte* memory = nullptr;
    Event used = nullptr;
    Stream stream = nullptr;  // that used it last
};

class StagingPool {
public:
    StagingPool(CudaContext& context, const Parameters& parameters) : context_(context), parameters_(parameters) {}
    StagingPool(const StagingPool&) = delete;
    StagingPool& operator=(const StagingPool&) = delete;
    ~StagingPool();

    [[nodiscard]] const Parameters& parameters() const { return parameters_; }
    // The chunk that was given back first, of parameters().copy_chunk_bytes; wait for its event before use. Empty when chunks of
    // `bytes_max` are in use or there is no memory to pin: a thread that has one gives it back without waiting for another.
    struct Taken {
        StagingChunk chunk;
        size_t in_use = 0;  // by other threads
    };
    [[nodiscard]] Taken take();
    // Needs no memory. `stream` has used it.
    void give_back(StagingChunk chunk, Stream stream) noexcept;
    // The stream has stopped and may still use its chunks, so they are not used again, and are kept until the pool is destroyed.
    void discard(Stream stream) noexcept;
    [[nodiscard]] bool is_discarded(const StagingChunk& chunk) {
        const Lock lock(mutex_);
        return is_discarded(chunk.stream);
    }

private:
    static constexpr uint64_t bytes_max = uint64_t{256} << 20;
    static constexpr uint64_t slab_bytes = uint64_t{16} << 20;

    [[nodiscard]] bool grow() POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool is_discarded(Stream stream) const POLDER_REQUIRES(mutex_) {
        return std::ranges::find(discarded_, stream) != discarded_.end();
    }

    CudaContext& context_;
    const Parameters parameters_;
    Mutex mutex_;
    std::vector<std::byte*> slabs_ POLDER_GUARDED_BY(mutex_);
    std::vector<StagingChunk> free_ POLDER_GUARDED_BY(mutex_);  // the oldest one first; room for all that were made
    std::vector<Stream> discarded_ POLDER_GUARDED_BY(mutex_);
    size_t in_use_ POLDER_GUARDED_BY(mutex_) = 0;
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
