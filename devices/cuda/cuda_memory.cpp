// `reserve` and `commit` create physical memory, map it, and grant access to this GPU and its peers; a failure undoes the steps
// before it.
#include <algorithm>
#include <bit>
#include <cuda/cuda_memory.h>

namespace polder::cuda {
namespace {

constexpr uint64_t page_bytes_max = uint64_t{32} << 20;

AccessDescription reader(Device device) {
    AccessDescription description;
    description.location.id = device;
    return description;
}

AllocationProperties properties_of(Device device) {
    AllocationProperties properties;
    properties.location.id = device;
    return properties;
}

}  // namespace

Result<std::unique_ptr<CudaMemory>> CudaMemory::create(CudaContext& context, uint64_t memory_bytes) {
    const CudaContext::Current current(context);
    const AllocationProperties properties = properties_of(context.device);
    size_t granularity = 0;
    POLDER_CUDA_TRY(context.api, memory_granularity(&granularity, &properties, granularity_recommended),
                    "cuMemGetAllocationGranularity");
    const uint64_t size = Alignment{granularity}.round_up(2 * memory_bytes);
    DevicePointer base = 0;
    POLDER_CUDA_TRY(context.api, address_reserve(&base, size, granularity, 0, 0), "cuMemAddressReserve");
    try {
        return std::unique_ptr<CudaMemory>(new CudaMemory(context, base, {size, memory_bytes}, granularity));
    } catch (...) {
        context.api.address_free(base, size);
        throw;
    }
}

CudaMemory::CudaMemory(CudaContext& context, DevicePointer base, Size size, uint64_t granularity)
    : context_(context), base_(base), size_(size), granularity_(granularity),
      page_(std::clamp(std::bit_floor(size.memory_bytes / 256), granularity, std::max(granularity, page_bytes_max))),
      addresses_({DeviceAddress{base}, ByteCount{size.addresses}, Alignment{granularity}}),
      readers_{reader(context.device)} {}

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
    context_.api.address_free(base_, size_.addresses);
}

Code CudaMemory::grant(DevicePointer address, uint64_t size) {
    return context_.api.memory_set_access(address, size, readers_.data(), readers_.size());
}

Result<MemoryHandle> CudaMemory::map(DevicePointer address, uint64_t size) {
    const AllocationProperties properties = properties_of(context_.device);
    MemoryHandle handle = 0;
    if (size > size_.memory_bytes - used_)
        return fail(Status::mem_object_allocation_failure, "the device's memory is full");
    POLDER_CUDA_TRY(context_.api, memory_create(&handle, size, &properties, 0), "cuMemCreate");
    if (const Code code = context_.api.memory_map(address, size, 0, handle, 0)) {
        context_.api.memory_release(handle);
        return fail(context_.api.error(code, "cuMemMap"));
    }
    used_ += size;
    return handle;
}

bool CudaMemory::unmap(DevicePointer address, uint64_t size, MemoryHandle handle) {
    if (context_.is_lost())
        return true;
    if (context_.api.memory_unmap(address, size) != code_success)
        return false;
    context_.api.memory_release(handle);
    used_ -= size;
    return true;
}

Result<driver::Memory> CudaMemory::reserve(ByteCount size) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    const auto block = addresses_.allocate(ByteCount{granularity_.round_up(size.value)}, granularity_);
    if (!block)
        return fail(Status::mem_object_allocation_failure, "no addresses for " + std::to_string(size.value) + " bytes");
    const DevicePointer address = base_ + block->offset;
    const uint64_t bytes = block->size.value;
    std::map<DevicePointer, Region> made;
    Result<MemoryHandle> handle = MemoryHandle{0};
    try {
        made.emplace(address, Region{*block, 0});
        handle = map(address, bytes);
    } catch (...) {
        addresses_.free(*block);
        throw;
    }
    if (!handle) {
        addresses_.free(*block);
        return fail(std::move(handle).error());
    }
    if (const Code code = grant(address, bytes)) {
        // Frees the addresses only when they were unmapped, because mapped addresses cannot be used again.
        if (unmap(address, bytes, *handle))
            addresses_.free(*block);
        return fail(context_.api.error(code, "cuMemSetAccess"));
    }
    made.begin()->second.handle = *handle;
    regions_.merge(made);
    return driver::Memory{DeviceAddress{address}, bytes};
}

void CudaMemory::release(driver::Memory memory) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    const auto found = regions_.find(memory.address.value);
    assert(found != regions_.end());
    if (unmap(found->first, found->second.block.size.value, found->second.handle))
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

Result<void> CudaMemory::commit_page(DevicePointer address) {
    if (pages_.contains(address))
        return {};
    std::map<DevicePointer, MemoryHandle> made{{address, 0}};
    POLDER_ASSIGN(handle, map(address, page_.value));
    made.begin()->second = handle;
    pages_.merge(made);
    return {};
}

// Access is granted once for the whole range, which is the slowest step.
Result<void> CudaMemory::commit(driver::Memory range) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    Result<void> committed;
    try {
        for (uint64_t done = 0; done < range.size && committed; done += page_.value)
            committed = commit_page(range.address.value + done);
        if (committed)
            if (const Code code = grant(range.address.value, range.size))
                committed = fail(context_.api.error(code, "cuMemSetAccess"));
    } catch (...) {
        decommit_pages(range);
        throw;
    }
    if (!committed)
        decommit_pages(range);
    return committed;
}

void CudaMemory::decommit(driver::Memory range) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    decommit_pages(range);
}

void CudaMemory::decommit_pages(driver::Memory range) {
    const auto end = pages_.lower_bound(range.address.value + range.size);
    for (auto page = pages_.lower_bound(range.address.value); page != end;)
        page = unmap(page->first, page_.value, page->second) ? pages_.erase(page) : std::next(page);
}

ByteCount CudaMemory::available() const {
    if (context_.is_lost())
        return ByteCount{0};
    const CudaContext::Current current(context_);
    size_t free = 0;
    size_t total = 0;
    if (context_.api.memory_info(&free, &total) != code_success)
        return ByteCount{0};
    const Lock lock(mutex_);
    return ByteCount{std::min<uint64_t>(free, size_.memory_bytes - used_)};
}

bool CudaMemory::grant_to(Device peer) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    readers_.push_back(reader(peer));
    bool granted = true;
    for (const auto& [address, region] : regions_)
        granted = granted && grant(address, region.block.size.value) == code_success;
    for (const auto& [address, handle] : pages_)
        granted = granted && grant(address, page_.value) == code_success;
    if (!granted)
        readers_.pop_back();
    return granted;
}

}  // namespace polder::cuda
