// `reserve` creates physical memory, maps it at the next free addresses, and grants access to this GPU and its peers; a failure undoes
// the steps before it.
#include <cuda/cuda_memory.h>

namespace polder::cuda {
namespace {

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
    Code code = context_.api.memory_map(address, size, 0, handle, 0);
    if (code == code_success) {
        code = grant(address, size);
        if (code == code_success)
            return handle;
        context_.api.memory_unmap(address, size);
    }
    context_.api.memory_release(handle);
    return fail(context_.api.error(code, "cuMemMap"));
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
    regions_.emplace(address, Region{*block, *handle});
    return driver::Memory{DeviceAddress{address}, block->size.value};
}

void CudaMemory::release(driver::Memory memory) {
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    const auto found = regions_.find(memory.address.value);
    assert(found != regions_.end());
    if (!context_.is_lost()) {
        context_.api.memory_unmap(found->first, found->second.block.size.value);
        context_.api.memory_release(found->second.handle);
    }
    addresses_.free(found->second.block);
    regions_.erase(found);
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
}

}  // namespace polder::cuda
