// RegionSource: where an allocator's regions come from, the operating system (host memory) or a device.
//
// Owned by one allocator. Any thread may call any function: no lock of the allocator is held meanwhile. Sizes are bytes.
#pragma once

#include <polder/driver.h>
#include <polder/result.h>
#include <polder/types.h>

namespace polder::memory {

// Optional: regions that grow in place. Their addresses are reserved once and get memory part by part.
class GrowableRegions {
public:
    virtual ~GrowableRegions() = default;
    // Memory is added and removed in multiples of it.
    [[nodiscard]] virtual Alignment page() const = 0;
    // Addresses without memory. Fails when there are too few.
    [[nodiscard]] virtual Result<DeviceAddress> reserve_addresses(ByteCount size) = 0;
    virtual void release_addresses(driver::Memory range) = 0;
    // Backs a range of whole pages with memory, or removes the memory; its contents are lost.
    [[nodiscard]] virtual Result<void> commit(driver::Memory range) = 0;
    virtual void decommit(driver::Memory range) = 0;
};

class RegionSource {
public:
    virtual ~RegionSource() = default;

    // Contiguous memory of at least `size` bytes, or mem_object_allocation_failure.
    [[nodiscard]] virtual Result<driver::Memory> reserve(ByteCount size) = 0;
    virtual void release(driver::Memory memory) = 0;

    // How much to reserve when `needed` bytes are, by a pool that has `reserved` already. The pool
    // reserves `needed` instead when that fails.
    [[nodiscard]] virtual ByteCount preferred_size(ByteCount needed, ByteCount reserved) const = 0;
    // Bytes that `reserve` could still return.
    [[nodiscard]] virtual ByteCount available() const = 0;

    // The contents of this range, which lies in reserved memory, are not needed any more. Only called
    // when `discards`.
    virtual void discard(driver::Memory range) { static_cast<void>(range); }
    // A block of its own begins in this range, which has no pages yet: the source may choose their size.
    virtual void prepare(driver::Memory range) { static_cast<void>(range); }
    // True when discarded or released memory is available to other processes at once, so that an allocator
    // should not keep much free memory.
    [[nodiscard]] virtual bool discards() const { return false; }
    // The bytes of a range of reserved memory that are backed by physical memory.
    [[nodiscard]] virtual ByteCount resident(driver::Memory range) const { return ByteCount{range.size}; }
    [[nodiscard]] virtual GrowableRegions* growable() { return nullptr; }
};

// Anonymous memory of this process; regions double from 64 MiB on. Pages are not counted against the system's
// memory before they are written (MAP_NORESERVE), and are large in large blocks where the system allows.
class HostRegionSource final : public RegionSource {
public:
    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size) override;
    void release(driver::Memory memory) override;
    [[nodiscard]] ByteCount preferred_size(ByteCount needed, ByteCount reserved) const override;
    // The memory that the system has available without swapping, and may still promise; reads /proc/meminfo.
    [[nodiscard]] ByteCount available() const override;
    [[nodiscard]] ByteCount resident(driver::Memory range) const override;
    void discard(driver::Memory range) override;
    // Large pages only for large blocks: for a small block, a whole large page would be cleared for a few bytes.
    void prepare(driver::Memory range) override;
    [[nodiscard]] bool discards() const override { return true; }

    // Physical memory of the machine.
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

    driver::Device& device_;
    driver::VirtualMemory* const virtual_;  // null: the driver has none
};

}  // namespace polder::memory
