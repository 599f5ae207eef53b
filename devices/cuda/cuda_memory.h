// CudaMemory: the memory of one GPU. For regions, addresses are reserved once, twice as many as there are bytes; physical memory is
// created and mapped into them for each region that the memory layer asks for, in multiples of the GPU's granularity
// (2 MiB), and is accessible to this GPU and to its peers. Regions and committed pages together never exceed `memory_bytes`.
//
// As virtual memory, addresses are reserved one by one, and are committed in pages that are each one physical allocation: CUDA
// unmaps no part of an allocation. So a page is larger than the granularity: a 256th of the memory, at most 32 MiB.
//
// Creating, mapping and granting access cost milliseconds: regions are large and rare. Any thread.
#pragma once

#include <base/mutex.h>
#include <bufalloc/region_allocator.h>

#include <cuda/cuda_context.h>
#include <map>
#include <polder/driver.h>
#include <vector>

namespace polder::cuda {

class CudaMemory {
public:
    [[nodiscard]] static Result<std::unique_ptr<CudaMemory>> create(CudaContext& context, uint64_t memory_bytes);
    CudaMemory(const CudaMemory&) = delete;
    CudaMemory& operator=(const CudaMemory&) = delete;
    ~CudaMemory();

    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size);
    void release(driver::Memory memory);
    // As driver::VirtualMemory.
    [[nodiscard]] Alignment page() const { return page_; }
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount size);
    void release_addresses(driver::Memory range);
    [[nodiscard]] Result<void> commit(driver::Memory range);
    void decommit(driver::Memory range);
    // The free memory that the GPU reports, which depends on other processes and libraries too.
    [[nodiscard]] ByteCount available() const;
    // Lets `peer` access all memory that is mapped now or later.
    // False when CUDA refuses; later mappings then do not grant access to `peer`.
    [[nodiscard]] bool grant_to(Device peer);

private:
    struct Region {
        RegionAllocator::Block block;
        MemoryHandle handle;
    };
    struct Size {
        uint64_t addresses;
        uint64_t memory_bytes;
    };
    CudaMemory(CudaContext& context, DevicePointer base, Size size, uint64_t granularity);
    [[nodiscard]] Result<MemoryHandle> map(DevicePointer address, uint64_t size) POLDER_REQUIRES(mutex_);
    // False when CUDA refuses; the memory stays mapped then.
    [[nodiscard]] bool unmap(DevicePointer address, uint64_t size, MemoryHandle handle) POLDER_REQUIRES(mutex_);
    void decommit_pages(driver::Memory range) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Code grant(DevicePointer address, uint64_t size) POLDER_REQUIRES(mutex_);
    [[nodiscard]] Result<void> commit_page(DevicePointer address) POLDER_REQUIRES(mutex_);

    CudaContext& context_;
    const DevicePointer base_;
    const Size size_;
    const Alignment granularity_;
    const Alignment page_;
    mutable Mutex mutex_;
    RegionAllocator addresses_ POLDER_GUARDED_BY(mutex_);
    uint64_t used_ POLDER_GUARDED_BY(mutex_) = 0;  // regions and pages
    std::map<DevicePointer, Region> regions_ POLDER_GUARDED_BY(mutex_);
    // The committed pages, and those that CUDA refused to unmap, which the next commit of the range uses again.
    std::map<DevicePointer, MemoryHandle> pages_ POLDER_GUARDED_BY(mutex_);
    std::vector<AccessDescription> readers_ POLDER_GUARDED_BY(mutex_);  // this GPU and its peers
};

}  // namespace polder::cuda
