// RegionSource: the source of an allocator's regions, either the operating system (host memory) or a device.
//
// Owned by one allocator. Any thread may call any function; the allocator calls without holding its lock. Sizes are bytes.
#pragma once

#include <polder/driver.h>
#include <polder/result.h>
#include <polder/types.h>

namespace polder::memory {

// Optional: regions that grow in place. Their addresses are reserved once and get memory part by part.
class GrowableRegions {
public:
    virtual ~GrowableRegions() = default;
    // Memory is added and removed in multiples of this.
    [[nodiscard]] virtual Alignment page() const = 0;
    // Reserves addresses without memory. Fails when there is no contiguous range of this size.
    [[nodiscard]] virtual Result<DeviceAddress> reserve_addresses(ByteCount size) = 0;
    virtual void release_addresses(driver::Memory range) = 0;
    // commit gives a range of whole pages memory; decommit removes the memory, whose contents are lost.
    [[nodiscard]] virtual Result<void> commit(driver::Memory range) = 0;
    virtual void decommit(driver::Memory range) = 0;
    // As driver::VirtualMemory::is_slow.
    [[nodiscard]] virtual bool is_slow() const { return false; }
};

class RegionSource {
public:
    virtual ~RegionSource() = default;

    // Contiguous memory of at least `size` bytes, or mem_object_allocation_failure.
    [[nodiscard]] virtual Result<driver::Memory> reserve(ByteCount size) = 0;
    virtual void release(driver::Memory memory) = 0;

    // How many bytes to reserve when an allocator that has reserved `reserved` bytes needs `needed` more. The allocator
    // reserves `needed` bytes when reserving so many fails.
    [[nodiscard]] virtual ByteCount preferred_size(ByteCount needed, ByteCount reserved) const = 0;
    // Bytes that `reserve` could still return.
    [[nodiscard]] virtual ByteCount available() const = 0;

    // The contents of this range of reserved memory are not needed any more. Only called
    // when discards() is true.
    virtual void discard(driver::Memory range) { static_cast<void>(range); }
    // A block is about to use this range, which has no pages yet: the source may choose the size of its pages.
    virtual void prepare(driver::Memory range) { static_cast<void>(range); }
    // True when other processes can use discarded or released memory at once. Then an allocator
    // should not keep much free memory.
    [[nodiscard]] virtual bool discards() const { return false; }
    // The bytes of a range of reserved memory that are backed by physical memory.
    [[nodiscard]] virtual ByteCount resident(driver::Memory range) const { return ByteCount{range.size}; }
    [[nodiscard]] virtual GrowableRegions* growable() { return nullptr; }
};

// Anonymous memory of this process. The first region has 64 MiB; later regions double. Pages do not count against the system's
// memory before they are written (MAP_NORESERVE). Large blocks get large pages where the system allows it.
class HostRegionSource final : public RegionSource {
public:
    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size) override;
    void release(driver::Memory memory) override;
    [[nodiscard]] ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override;
    // The bytes that the system could provide without swapping, within its commit limit; reads /proc/meminfo.
    [[nodiscard]] ByteCount available() const override;
    [[nodiscard]] ByteCount resident(driver::Memory range) const override;
    void discard(driver::Memory range) override;
    // Large pages only for large blocks: for a small block, a whole large page would be cleared for a few bytes.
    void prepare(driver::Memory range) override;
    [[nodiscard]] bool discards() const override { return true; }

    // The size of the machine's physical memory.
    [[nodiscard]] static ByteCount total();
};

// The memory of a device with its own memory. Where the driver has virtual memory, regions grow in place. Otherwise all of the
// memory is reserved at once, or, when DeviceInfo::region_bytes is set, regions that double in size.
class DeviceRegionSource final : public RegionSource, private GrowableRegions {
public:
    // `device` outlives the source.
    explicit DeviceRegionSource(driver::Device& device) : device_(device), virtual_(device.virtual_memory()) {}

    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size) override { return device_.reserve_memory(size); }
    void release(driver::Memory memory) override { device_.release_memory(memory); }
    [[nodiscard]] ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override;
    [[nodiscard]] ByteCount available() const override { return device_.available_memory(); }
    [[nodiscard]] GrowableRegions* growable() override { return virtual_ ? this : nullptr; }

private:
    [[nodiscard]] Alignment page() const override { return virtual_->page(); }
    [[nodiscard]] Result<DeviceAddress> reserve_addresses(ByteCount size) override {
        return virtual_->reserve_addresses(size);
    }
    void release_addresses(driver::Memory range) override { virtual_->release_addresses(range); }
    [[nodiscard]] Result<void> commit(driver::Memory range) override { return virtual_->commit(range); }
    void decommit(driver::Memory range) override { virtual_->decommit(range); }
    [[nodiscard]] bool is_slow() const override { return virtual_->is_slow(); }

    driver::Device& device_;
    driver::VirtualMemory* const virtual_;  // null: the driver has none
};

}  // namespace polder::memory
