#include <algorithm>
#include <cuda/registered_regions.h>

namespace polder::cuda {

Result<void> RegisteredRegions::add(const CudaContext& gpu, std::span<std::byte> region) {
    const Lock changing(changing_);
    {
        const Lock lock(mutex_);
        const auto known = regions_.find(region.data());
        if (known != regions_.end() && known->second.size == region.size() &&
            std::ranges::find(known->second.gpus, &gpu) == known->second.gpus.end()) {
            known->second.gpus.push_back(&gpu);
            return {};
        }
    }
    // What is registered must be known, so all memory for it comes first.
    std::map<const std::byte*, Region> made;
    Region& fresh = made[region.data()] = {region.size(), gpu.device, nullptr, {&gpu}};
    POLDER_CUDA_TRY(gpu.api, primary_context_retain(&fresh.context, gpu.device), "cuDevicePrimaryCtxRetain");
    const CudaContext::Current current(gpu);
    if (const Code code =
            gpu.api.host_register(region.data(), region.size(), host_memory_portable | host_memory_mapped)) {
        gpu.api.primary_context_release(gpu.device);
        return fail(gpu.api.error(code, "cuMemHostRegister"));
    }
    const Lock lock(mutex_);
    regions_.merge(made);
    return {};
}

void RegisteredRegions::remove(const CudaContext& gpu, std::span<std::byte> region) {
    const Lock changing(changing_);
    drop(gpu, region.data());
}

void RegisteredRegions::remove_all(const CudaContext& gpu) {
    const Lock changing(changing_);
    while (const std::byte* const begin = any_of(gpu))
        drop(gpu, begin);
}

const std::byte* RegisteredRegions::any_of(const CudaContext& gpu) const {
    const Lock lock(mutex_);
    for (const auto& [begin, region] : regions_)
        if (std::ranges::find(region.gpus, &gpu) != region.gpus.end())
            return begin;
    return nullptr;
}

void RegisteredRegions::drop(const CudaContext& gpu, const std::byte* begin) {
    Region last;
    {
        const Lock lock(mutex_);
        const auto known = regions_.find(begin);
        if (known == regions_.end() || std::erase(known->second.gpus, &gpu) == 0 || !known->second.gpus.empty())
            return;
        // From now on, copies are staged again.
        last = std::move(known->second);
        regions_.erase(known);
    }
    unregister(gpu, begin, last);
}

void RegisteredRegions::unregister(const CudaContext& gpu, const std::byte* begin, const Region& region) {
    if (gpu.is_lost())
        return;
    {
        const CudaContext::Current current(gpu.api, region.context, region.device);
        gpu.api.host_unregister(const_cast<std::byte*>(begin));
    }
    gpu.api.primary_context_release(region.device);
}

uint64_t RegisteredRegions::bytes_from(const std::byte* begin, uint64_t size) const {
    const Lock lock(mutex_);
    auto after = regions_.upper_bound(begin);
    if (after == regions_.begin())
        return 0;
    const auto& [first, region] = *--after;
    const auto offset = static_cast<uint64_t>(begin - first);
    return offset < region.size ? std::min(size, region.size - offset) : 0;
}

bool RegisteredRegions::cover(const std::byte* begin, uint64_t size) const {
    for (uint64_t done = 0; done < size;) {
        const uint64_t bytes = bytes_from(begin + done, size - done);
        if (bytes == 0)
            return false;
        done += bytes;
    }
    return true;
}

}  // namespace polder::cuda
