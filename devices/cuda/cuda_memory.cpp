// `reserve` and `commit` create physical memory, map it, and grant access to this GPU and its peers; a failure undoes the steps
// before it.
#include <algorithm>
#include <bit>
#include <cuda/cuda_memory.h>

namespace polder::cuda {
namespace {

constexpr uint64_t page_bytes_max = uint64_t{32} << 20;

AllocationProperties properties_of(Device device) {
    AllocationProperties properties;
    properties.location.id = device;
    return properties;
}

}  // namespace

Result<std::unique_ptr<CudaMemory>> CudaMemory::create(CudaContext& context) {
    const CudaContext::Current current(context);
    const AllocationProperties properties = properties_of(context.device);
    size_t granularity = 0;
    POLDER_CUDA_TRY(context.api, memory_granularity(&granularity, &properties, granularity_recommended),
                    "cuMemGetAllocationGranularity");
    const uint64_t size = Alignment{granularity}.round_up(2 * context.facts.memory_bytes);
    DevicePointer base = 0;
    POLDER_CUDA_TRY(context.api, address_reserve(&base, size, granularity, 0, 0), "cuMemAddressReserve");
    return std::unique_ptr<CudaMemory>(new CudaMemory(context, base, size, granularity));
}

CudaMemory::CudaMemory(CudaContext& context, DevicePointer base, uint64_t size, uint64_t granularity)
    : context_(context), base_(base), size_(size), granularity_(granularity),
      page_(std::clamp(std::bit_floor(context.facts.memory_bytes / 256), granularity,
                       std::max(granularity, page_bytes_max))),
      addresses_({DeviceAddress{base}, ByteCount{size}, Alignment{granularity}}), readers_{context.device} {}

CudaMemory::~CudaMemory() {
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    for (const auto& [address, region] : regions_) {
        context_.api.memory_unmap(address, region.block.size.value);
        context_.api.memory_release(region.handle);
    }
    for (const auto& [address, handle] : pages_) {
        context_.api.memory_unmap(address, page_.value);
        context_.api.memory_release(handle);
    }
    context_.api.address_free(base_, size_);
}

Code CudaMemory::grant(DevicePointer address, uint64_t size) {
    std::vector<AccessDescription> all(readers_.size());
    for (size_t i = 0; i < all.size(); ++i)
        all[i].location.id = readers_[i];
    return context_.api.memory_set_access(address, size, all.data(), all.size());
}

Result<MemoryHandle> CudaMemory::map(DevicePointer address, uint64_t size) {
    const AllocationProperties properties = properties_of(context_.device);
    MemoryHandle handle = 0;
    POLDER_CUDA_TRY(context_.api, memory_create(&handle, size, &properties, 0), "cuMemCreate");
    if (const Code code = context_.api.memory_map(address, size, 0, handle, 0)) {
        context_.api.memory_release(handle);
        return fail(context_.api.error(code, "cuMemMap"));
    }
    return handle;
}

void CudaMemory::unmap(DevicePointer address, uint64_t size, MemoryHandle handle) {
    if (context_.is_lost())
        return;
    context_.api.memory_unmap(address, size);
    context_.api.memory_release(handle);
}

Result<driver::Memory> CudaMemory::reserve(ByteCount size) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    const auto block = addresses_.allocate(ByteCount{granularity_.round_up(size.value)}, granularity_);
    if (!block)
        return fail(Status::mem_object_allocation_failure, "no addresses for " + std::to_string(size.value) + " bytes");
    const DevicePointer address = base_ + block->offset;
    Result<MemoryHandle> handle = map(address, block->size.value);
    if (!handle) {
        addresses_.free(*block);
        return fail(handle.error());
    }
    if (const Code code = grant(address, block->size.value)) {
        unmap(address, block->size.value, *handle);
        addresses_.free(*block);
        return fail(context_.api.error(code, "cuMemSetAccess"));
    }
    regions_.emplace(address, Region{*block, *handle});
    return driver::Memory{DeviceAddress{address}, block->size.value};
}

void CudaMemory::release(driver::Memory memory) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    const auto found = regions_.find(memory.address.value);
    assert(found != regions_.end());
    unmap(found->first, found->second.block.size.value, found->second.handle);
    addresses_.free(found->second.block);
    regions_.erase(found);
}

// --- virtual memory ---

Result<DeviceAddress> CudaMemory::reserve_addresses(ByteCount size) {
    const CudaContext::Current current(context_);
    DevicePointer address = 0;
    POLDER_CUDA_TRY(context_.api, address_reserve(&address, page_.round_up(size.value), page_.value, 0, 0),
                    "cuMemAddressReserve");
    return DeviceAddress{address};
}

void CudaMemory::release_addresses(driver::Memory range) {
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    context_.api.address_free(range.address.value, page_.round_up(range.size));
}

// Access is granted once for the whole range, which is the slowest step.
Result<void> CudaMemory::commit(driver::Memory range) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    for (uint64_t done = 0; done < range.size; done += page_.value) {
        const DevicePointer address = range.address.value + done;
        Result<MemoryHandle> handle = map(address, page_.value);
        if (!handle) {
            decommit_pages({range.address, done});
            return fail(handle.error());
        }
        pages_.emplace(address, *handle);
    }
    if (const Code code = grant(range.address.value, range.size)) {
        decommit_pages(range);
        return fail(context_.api.error(code, "cuMemSetAccess"));
    }
    return {};
}

void CudaMemory::decommit(driver::Memory range) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    decommit_pages(range);
}

void CudaMemory::decommit_pages(driver::Memory range) {
    const auto first = pages_.lower_bound(range.address.value);
    const auto end = pages_.lower_bound(range.address.value + range.size);
    for (auto page = first; page != end; ++page)
        unmap(page->first, page_.value, page->second);
    pages_.erase(first, end);
}

ByteCount CudaMemory::available() const {
    if (context_.is_lost())
        return ByteCount{0};
    const CudaContext::Current current(context_);
    size_t free = 0;
    size_t total = 0;
    if (context_.api.memory_info(&free, &total) != code_success)
        return ByteCount{0};
    return ByteCount{free};
}

void CudaMemory::grant_to(Device peer) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    readers_.push_back(peer);
    for (const auto& [address, region] : regions_)
        if (const Code code = grant(address, region.block.size.value))
            context_.lose("cuMemSetAccess", code);
    for (const auto& [address, handle] : pages_)
        if (const Code code = grant(address, page_.value))
            context_.lose("cuMemSetAccess", code);
}

}  // namespace polder::cuda
