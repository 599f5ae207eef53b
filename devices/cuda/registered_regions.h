// RegisteredRegions: memory of the application or the memory layer that was registered with CUDA, so that copies need no staging.
//
// One object for all GPUs of the driver: CUDA registers memory once in a process and refuses it a second time, and what is registered as
// portable is pinned for every GPU. So the first GPU that adds a region registers it, and the last one that removes it unregisters
// it, in the context that has registered it, which is kept until then. Registering takes about 0.1 ms for each MiB.
//
// Any thread. A lookup does not wait for a registration.
#pragma once

#include <base/mutex.h>

#include <cuda/cuda_context.h>
#include <map>
#include <span>
#include <vector>

namespace polder::cuda {

class RegisteredRegions {
public:
    RegisteredRegions() = default;
    RegisteredRegions(const RegisteredRegions&) = delete;
    RegisteredRegions& operator=(const RegisteredRegions&) = delete;
    ~RegisteredRegions() = default;  // every GPU has called remove_all

    // Once for each GPU and region. Fails when CUDA refuses, and where the region overlaps another one.
    [[nodiscard]] Result<void> add(const CudaContext& gpu, std::span<std::byte> region);
    void remove(const CudaContext& gpu, std::span<std::byte> region);
    // The GPU is closed: whatever it has added and not removed.
    void remove_all(const CudaContext& gpu);
    // Memory of one region. CUDA refuses a copy from several, also where they are neighbours.
    [[nodiscard]] bool contain(const std::byte* begin, uint64_t size) const { return bytes_from(begin, size) == size; }
    // Memory of one region or of neighbours.
    [[nodiscard]] bool cover(const std::byte* begin, uint64_t size) const;
    // How many of the `size` bytes from `begin` on are in the region that `begin` is in; 0 when it is in none.
    [[nodiscard]] uint64_t bytes_from(const std::byte* begin, uint64_t size) const;

private:
    struct Region {
        uint64_t size;
        // Whose context has registered it.
        Device device;
        Context context;
        std::vector<const CudaContext*> gpus;  // that have added it
    };

    // A region that the GPU has added; null when there is none.
    [[nodiscard]] const std::byte* any_of(const CudaContext& gpu) const;
    void drop(const CudaContext& gpu, const std::byte* begin) POLDER_REQUIRES(changing_);
    static void unregister(const CudaContext& gpu, const std::byte* begin, const Region& region);

    Mutex changing_;  // held while CUDA registers, before mutex_
    mutable Mutex mutex_;
    std::map<const std::byte*, Region> regions_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::cuda
